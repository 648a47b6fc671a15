"""What can't be done is said in one sentence, before anything is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pairs import write_pair

if TYPE_CHECKING:
    from tests.support.runs import Run, Runner

# A plugin that hides a package from every import.
HIDING = """
import sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name == "{package}" else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""


@pytest.fixture
def project(runner: Runner) -> Runner:
    write_pair(runner.path / "ops")
    write_pair(runner.path / "ops", "treble", "fast", factor=3.0)
    (runner.path / "empty").mkdir()
    return runner


def refusal(run: Run) -> str:
    """Return the sentence with which a run was refused."""
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in run.out + run.err
    assert "INTERNALERROR" not in run.out + run.err
    assert not run.reports
    lines = [line for line in run.err.splitlines() if line.startswith("ERROR: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["--verify-dir=nowhere"],
            ["--verify-dir", "there is no folder", "/nowhere"],
            id="no dir",
        ),
        pytest.param(
            ["--verify-dir=ops/double_torch.py"],
            ["--verify-dir", "double_torch.py is a file", "pytest path/to/"],
            id="a file",
        ),
        pytest.param(["-o", "verify_dirs=nowhere"], ["there is no folder", "/nowhere"], id="ini"),
        pytest.param(
            ["--verify-dir=ops", "--verify-op=tripl*"],
            ["'tripl*'", "double (triton_ascend_impl)", "treble (triton_fast)"],
            id="no op",
        ),
        pytest.param(
            ["--verify-dir=ops", "--verify-op=double", "--verify-impl=triton_fast"],
            ["'double'", "'triton_fast'", "treble (triton_fast)"],
            id="no impl",
        ),
        pytest.param(
            ["--verify-dir=ops", "--verify-output=one.json"],
            ["--verify-output names one file", "2 pairs", "--verify-op"],
            id="one output for two",
        ),
        pytest.param(
            ["--verify-dir=ops", "--verify-timeout=soon"],
            ["--verify-timeout", "'soon' is no number"],
            id="timeout word",
        ),
        pytest.param(
            ["--verify-dir=ops", "--verify-timeout=-3"],
            ["--verify-timeout", "'-3' is no positive number"],
            id="timeout negative",
        ),
        pytest.param(
            ["--verify-dir=ops", "-o", "verify_device=tpu"],
            ["verify_device", "'tpu'", "auto, npu, cuda, cpu"],
            id="ini device",
        ),
        pytest.param(
            ["--verify-dir=ops", "--verify-device=npu"],
            ["--verify-device=npu", "torch_npu"],
            id="npu",
        ),
    ],
)
def test_a_wish_that_cannot_be_met(project: Runner, arguments: list[str], said: list[str]) -> None:
    sentence = refusal(project.run(*arguments))
    for part in said:
        assert part in sentence


def test_an_unknown_device(project: Runner) -> None:
    run = project.run("--verify-dir=ops", "--verify-device=tpu")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "--verify-device: invalid choice: 'tpu' (choose from" in run.err


def test_an_absent_device(project: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    sentence = refusal(project.run("--verify-dir=ops", "--verify-device=cuda"))
    assert "--verify-device=cuda: there is none" in sentence
    assert "Looked for /dev/nvidia" in sentence
    assert "--verify-device=cpu" in sentence


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_a_missing_package(project: Runner, package: str) -> None:
    (project.path / "hiding.py").write_text(HIDING.format(package=package))
    sentence = refusal(project.run("-p", "hiding", "--verify-dir=ops", fresh=True))
    assert f"{package} is not installed" in sentence
    assert "pip install" in sentence


def test_nothing_to_judge_is_no_success(project: Runner) -> None:
    empty = project.run("--verify-dir=empty")
    assert empty.code == pytest.ExitCode.TESTS_FAILED
    assert "no pair was judged" in empty.out
    deselected = project.run("--verify-dir=ops", "-k", "nothing")
    assert deselected.code == pytest.ExitCode.TESTS_FAILED
    assert "6 deselected" in deselected.out
    assert not list((project.path / "ops").glob("*.json*"))

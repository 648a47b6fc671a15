"""A run that has nothing to do with kernels must not notice the plugin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.pairs import write_pair

if TYPE_CHECKING:
    from tests.support.runs import Run, Runner

# All of the plugin that may be imported by everybody's pytest.
LIGHT = {
    "pytest_tritonverify",
    "pytest_tritonverify.benchmark",
    "pytest_tritonverify.benchmark.options",
    "pytest_tritonverify.choices",
    "pytest_tritonverify.compilation",
    "pytest_tritonverify.compilation.options",
    "pytest_tritonverify.options",
    "pytest_tritonverify.plugin",
    "pytest_tritonverify.startup",
    "pytest_tritonverify.stash",
}
# What it takes to look for pairs.
LOOKING = {
    "pytest_tritonverify.discovery",
    "pytest_tritonverify.given",
    "pytest_tritonverify.isolation",
    "pytest_tritonverify.settings",
    "pytest_tritonverify.strictness",
    "pytest_tritonverify.strictness.limits",
}

CONFTEST = """
import json
import sys

def pytest_addoption(parser):
    parser.addoption("--benchmark", action="store_true")

def pytest_sessionfinish(session):
    session.config.rootpath.joinpath("modules.json").write_text(json.dumps(sorted(sys.modules)))
"""


def test_nothing_is_imported_and_nothing_is_said(runner: Runner, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        test_own="""
        def test_option(request):
            assert request.config.getoption("--benchmark")

        def test_failing():
            assert 1 == 2
        """
    )
    # Pairs that lie about concern nobody who does not ask for them.
    write_pair(runner.path / "ops")

    run = runner.run("--benchmark", fresh=True)

    assert run.code == 1
    assert run.by_name == {"test_option": "passed", "test_failing": "failed"}
    modules = set(json.loads((runner.path / "modules.json").read_text()))
    assert not modules & {"torch", "triton", "numpy", "safetensors"}
    assert {name for name in modules if name.startswith("pytest_tritonverify")} <= LIGHT
    assert all(line.startswith("plugins:") for line in lines_about_us(run))
    assert not (runner.path / "ops" / "verify_result.json").exists()


def lines_about_us(run: Run) -> list[str]:
    return [line for line in run.out.splitlines() if "triton" in line.lower()]


def test_test_files_with_names_like_ours_are_test_files(
    runner: Runner, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(CONFTEST)
    # By their names they are a pair; by what they define they are not.
    names = ["test_softmax_torch.py", "test_softmax_triton_speed.py"]
    for name in names:
        (runner.path / name).write_text("class TestModel:\n    def test_it(self): pass\n")

    run = runner.run("--benchmark", *names, fresh=True)

    assert run.code == 0
    assert list(run.outcomes) == [f"{name}::TestModel::test_it" for name in names]
    modules = set(json.loads((runner.path / "modules.json").read_text()))
    assert not modules & {"torch", "triton", "numpy", "safetensors"}
    assert "tritonverify:" not in run.out
    assert "Triton verification" not in run.out


def test_help_and_markers_are_shown_without_a_run(runner: Runner) -> None:
    write_pair(runner.path / "ops")
    helped = runner.run("--verify-dir=ops", "--help")
    marked = runner.run("--verify-dir=ops", "--markers")
    assert helped.code == marked.code == 0
    assert "--verify-timeout=SECONDS" in helped.out
    assert "verify_dirs (paths):" in helped.out
    assert "@pytest.mark.verify:" in marked.out
    assert "Triton verification" not in helped.out + marked.out


def test_a_run_that_collects_nothing_is_told_the_option(
    runner: Runner, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(CONFTEST)
    write_pair(runner.path / "all" / "my ops")

    run = runner.run("all", fresh=True)

    assert run.code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert any(line.endswith("pytest --verify-dir=all") for line in lines_about_us(run))
    modules = set(json.loads((runner.path / "modules.json").read_text()))
    assert not modules & {"torch", "triton", "numpy", "safetensors"}
    assert {name for name in modules if name.startswith("pytest_tritonverify")} <= LIGHT | LOOKING
    assert "pytest '--verify-dir=" not in run.out
    assert "--verify-dir='all/my ops'" in runner.run("all/my ops").out
    # Deselected tests are no mistake in naming a folder, nor is a folder without pairs.
    (runner.path / "test_own.py").write_text("def test_own(): pass\n")
    (runner.path / "empty").mkdir()
    for arguments in ((".", "-k", "nothing"), ("empty",)):
        run = runner.run(*arguments)
        assert run.code == pytest.ExitCode.NO_TESTS_COLLECTED
        assert "--verify-dir" not in run.out

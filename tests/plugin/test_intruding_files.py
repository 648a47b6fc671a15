"""Files beside candidates: pytest neither imports nor obeys them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pairs import case_names, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Run, Runner

IMPL = "ops/double_triton_ascend_impl.py"


@pytest.fixture
def ops(runner: Runner) -> Path:
    return write_pair(runner.path / "ops").folder


def plant(path: Path, marker: Path) -> None:
    """Write a module that tells of its import."""
    path.write_text(f"open({str(marker)!r}, 'a').write(__file__ + '\\n')\n")


def expect_refusal(run: Run, file: Path) -> None:
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {file} lies among the files to be judged" in run.err
    assert "--verify-allow-conftest" in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        pytest.param("ops", ["--verify-dir=ops"], id="dir"),
        pytest.param("ops/deep/er", ["--verify-dir=ops"], id="below the dir"),
        pytest.param("ops", ["-o", "verify_dirs=ops"], id="ini dir"),
        pytest.param("ops", [IMPL], id="implementation"),
        pytest.param("ops", [f"{IMPL}::case1-float32-1x8"], id="item"),
        pytest.param("ops", ["ops/double_torch.py"], id="task"),
    ],
)
def test_a_conftest_is_refused_before_it_is_imported(
    runner: Runner, ops: Path, where: str, arguments: list[str]
) -> None:
    marker = runner.path / "imported"
    conftest = runner.path / where / "conftest.py"
    conftest.parent.mkdir(parents=True, exist_ok=True)
    plant(conftest, marker)
    expect_refusal(runner.run(*arguments), conftest)
    assert not marker.exists()
    assert not list(ops.glob("*.json*"))


def test_the_user_can_allow_these_files_but_they_cannot_allow_themselves(
    runner: Runner, ops: Path
) -> None:
    marker = runner.path / "imported"
    plant(ops / "conftest.py", marker)
    ini = ops / "pytest.ini"
    ini.write_text("[pytest]\naddopts = --verify-allow-conftest --collect-only -q\n")
    expect_refusal(runner.run(IMPL), ops / "conftest.py")
    assert not marker.exists()

    allowed = runner.run(IMPL, "--verify-allow-conftest")
    assert allowed.code == 0
    assert len(allowed.listed) == 3
    assert marker.read_text() == f"{ops / 'conftest.py'}\n"


@pytest.mark.parametrize("name", ["pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"])
def test_an_ini_file_is_refused_where_pytest_would_obey_it(
    runner: Runner, ops: Path, name: str
) -> None:
    sections = {"setup.cfg": "tool:pytest", "pyproject.toml": "'tool'.\"pyt\\u0065st\".ini_options"}
    (ops / name).write_text(f"[{sections.get(name, 'pytest')}]\naddopts = '--co'\n")
    expect_refusal(runner.run("--verify-dir=ops", "ops"), ops / name)
    expect_refusal(runner.run(IMPL), ops / name)
    assert not list(ops.glob("*.json*"))


def test_other_files_are_neither_collected_nor_imported(runner: Runner, ops: Path) -> None:
    marker = runner.path / "imported"
    shadows = ("torch", "triton", "numpy", "json", "pytest", "sitecustomize")
    for name in ("__init__", "test_evil", "evil", *shadows):
        plant(ops / f"{name}.py", marker)
    for name in ("evil.txt", "test_evil.txt"):
        (ops / name).write_text(f">>> open({str(marker)!r}, 'a').write({name!r})\n")
    # Worthless here: no pytest takes its settings from this file.
    (ops / "pyproject.toml").write_text("[project]\nname = 'ops'\n")
    eager = ("--doctest-modules", "--doctest-glob=*.txt", "-o", "python_files=*.py")

    run = runner.run("--verify-dir=ops", *eager, fresh=True)
    assert run.by_name == dict.fromkeys(case_names(3), "passed")
    assert run.code == 0
    assert not marker.exists(), marker.read_text()

    for arguments in ([IMPL], ["--verify-dir=ops", IMPL]):
        run = runner.run(*arguments, "--setup-only", *eager)
        assert run.code == 0
        assert len(run.reports) == 6
        assert not marker.exists(), marker.read_text()

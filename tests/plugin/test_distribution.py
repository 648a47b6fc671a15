"""pytest-xdist: the same verdicts and the same files as without it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pairs import (
    CRASHES,
    LEAVES,
    RAISES,
    WRONG,
    case_name,
    error_types,
    write_pair,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Runner

PLUGINS = ("xdist", "randomly")
# What two runs of the same pairs may differ in.
VARYING = ("seconds", "timestamp", "start_time", "pid")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pairs that fail in most of the ways there are."""
    root = tmp_path_factory.mktemp("project")
    write_pair(root / "ops" / "a", cases=4, at={2: WRONG, 3: RAISES})
    write_pair(root / "ops" / "b", cases=3, at={1: LEAVES, 2: CRASHES})
    write_pair(root / "ops" / "c", cases=2)
    (root / "ops" / "d").mkdir()
    broken = write_pair(root / "ops" / "d")
    broken.task.write_text("import no_such_module\n")
    return root


def lasting(value: Any) -> Any:
    """Return JSON without what differs between any two runs."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in VARYING}
    if isinstance(value, list):
        return [lasting(item) for item in value]
    # Addresses in the stack of a crash.
    return re.sub(r"0x[0-9a-f]+", "0x", value) if isinstance(value, str) else value


def results(root: Path) -> dict[str, Any]:
    """Read the result files, less what varies, and remove them."""
    found = {}
    for path in sorted(root.glob("ops/*/*.json*")):
        found[str(path.relative_to(root))] = lasting(json.loads(path.read_text()))
        path.unlink()
    return found


def test_results_are_those_of_a_run_in_one_process(runner: Runner, project: Path) -> None:
    runner.move_to(project)
    serial = runner.run("--verify-dir=ops", fresh=True)
    expected = results(project)
    assert sorted(expected) == [f"ops/{name}/verify_result.json" for name in "abcd"]
    assert error_types(expected["ops/b/verify_result.json"]) == {
        1: "SystemExit",
        2: "WorkerCrash",
    }
    assert serial.code == 1
    assert len(serial.outcomes) == 10

    for arguments in (
        ["--dist=loadfile", "-p", "no:randomly"],
        ["--dist=load", "--verify-html=page.html"],
    ):
        run = runner.run("--verify-dir=ops", "-n2", *arguments, plugins=PLUGINS)
        assert run.outcomes == serial.outcomes
        assert run.code == 1
        assert results(project) == expected
        assert "failed: 1 AccuracyError, 1 ValueError" in run.out
        assert "failed: ModuleNotFoundError" in run.out
        assert "tritonverify: 4 pairs" in run.out
        rows = [line.split()[0] for line in run.out.splitlines() if "triton_ascend_impl  " in line]
        assert rows == [f"ops/{name}/double" for name in "abcd"]
    page = (project / "page.html").read_text("utf-8")
    assert re.findall('<li id=.* data-status="([a-z]*)"', page) == ["failed"] * 3 + ["passed"]
    assert "WorkerCrash" in page
    # Where the wrong elements of a failing output lie, and how large they are.
    assert "data:image/png;base64," in page
    assert "Histogram of error over limit" in page


def test_a_selection_in_workers_leaves_the_file_alone(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=3)
    result = pair.folder / "verify_result.json"
    result.write_text("old")
    chosen = f"ops/double_triton_ascend_impl.py::{case_name(2)}"
    run = runner.run(chosen, "--verify-dir=ops", "-n1", plugins=("xdist",))
    assert run.outcomes == {chosen: "passed"}
    assert run.code == 0
    assert result.read_text() == "old"
    assert "only 1 of 3 cases were selected" in run.out
    listed = runner.run("--verify-dir=ops", "-n1", "--collect-only", "-q", plugins=("xdist",))
    assert len(listed.listed) == 3
    assert result.read_text() == "old"


def test_a_usage_error_is_told_by_the_controller(runner: Runner) -> None:
    write_pair(runner.path / "ops")
    run = runner.run("--verify-dir=ops", "--verify-op=none", "-n2", plugins=("xdist",))
    assert run.code == 4
    assert run.err.count("no pair matches 'none'") == 1
    assert "Traceback" not in run.out + run.err


def test_maxfail_in_workers_counts_the_rest_as_failed(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=4, at={1: RAISES})
    run = runner.run("--verify-dir=ops", "-n1", "-x", "--maxschedchunk=1", plugins=("xdist",))
    result = pair.result()
    assert run.code in (1, 2)
    assert (result["total_cases"], len(result["cases"])) == (4, 4)
    assert error_types(result)[1] == "ValueError"
    # How many more cases xdist lets a busy worker finish is its own affair.
    assert set(error_types(result).values()) <= {"ValueError", "NotRun"}
    assert result["failed_cases"] == len(result["failures"])

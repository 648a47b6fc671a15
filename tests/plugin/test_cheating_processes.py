"""What an implementation's process may try against the verdict while the run lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pairs import error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

_FORGER = """
import json, pathlib, threading
path = pathlib.Path(__file__).with_name("verify_result.json")
forged = json.dumps({"op_name": "double", "total_cases": 1, "passed_cases": 1, "failures": []})
def forge():
    while True:
        try:
            if path.exists() and path.read_text() != forged:
                path.write_text(forged)
        except (OSError, ValueError):
            pass
threading.Thread(target=forge, daemon=True).start()
factor = 3.0
"""

# Looks through every process's memory files for one that holds a result of the right size.
_PEEPER = """
import glob
deadline = time.time() + 3
while time.time() < deadline:
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        if link.startswith(f"/proc/{os.getpid()}/"):
            continue
        try:
            data = open(link, "rb").read() if "memfd" in os.readlink(link) else b""
        except OSError:
            continue
        if len(data) == x.numel() * 4:
            found = torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(x.shape)
            if not torch.equal(found, x):
                return found
return torch.zeros_like(x)
"""


def test_a_forged_result_does_not_last(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=1, at={1: _FORGER})
    run = runner.run("--verify-dir=ops")
    assert run.code == 1
    assert error_types(pair.result()) == {1: "AccuracyError"}
    assert "schema_version" in pair.result()


def test_there_is_no_golden_to_find_while_the_implementation_runs(runner: Runner) -> None:
    # A factor of its own: other runs on this machine must not hold the same golden.
    pair = write_pair(runner.path / "ops", cases=2, factor=2.718281828, at={0: _PEEPER})
    run = runner.run("--verify-dir=ops")
    assert run.code == 1
    assert error_types(pair.result()) == {1: "AccuracyError", 2: "AccuracyError"}


@pytest.mark.parametrize("wish", ["verify_dirs = ops"])
def test_a_standing_wish_leaves_other_runs_alone(runner: Runner, wish: str) -> None:
    write_pair(runner.path / "ops", cases=1)
    (runner.path / "pytest.ini").write_text(f"[pytest]\n{wish}\n")
    (runner.path / "tests").mkdir()
    (runner.path / "tests/test_unit.py").write_text("def test_a():\n    pass\n")
    one = runner.run("tests/test_unit.py")
    assert (one.code, list(one.by_name)) == (0, ["test_a"])
    assert "tritonverify" not in one.out.replace("plugins:", "").split("\n")[-3]
    everything = runner.run("--collect-only", "-q")
    assert len(everything.listed) == 2
    deselected = runner.run("-m", "not verify")
    assert (deselected.code, list(deselected.by_name)) == (0, ["test_a"])

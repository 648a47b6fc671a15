"""--pdb, and runs inside of pytest's own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pairs import RAISES, case_name, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner


def test_a_debugger_reaches_the_frame_that_raised(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: RAISES})

    run = runner.run(
        "--verify-dir=ops", "--verify-in-process", "--pdb", stdin=b"p case * 1000\np x.shape\nc\n"
    )

    assert "tritonverify: in pytest's own process; nothing is isolated" in run.out
    assert f"{pair.implementation}({pair.line_of('raise')})forward()" in run.out
    assert "(Pdb) 2000" in run.out
    assert "(Pdb) torch.Size([2, 8])" in run.out
    # The other cases are judged, and the last one after the debugger was left.
    assert run.by_name == {
        case_name(1): "passed",
        case_name(2): "failed",
        case_name(3): "passed",
    }
    assert run.code == 1
    assert error_types(pair.result()) == {2: "ValueError"}


def test_a_debugger_beside_isolated_cases_does_no_harm(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: RAISES})
    run = runner.run("--verify-dir=ops", "--pdb", stdin=b"c\n")
    assert "E   ValueError: no such luck" in run.out
    assert run.by_name[case_name(3)] == "passed"
    assert run.code == 1
    assert error_types(pair.result()) == {2: "ValueError"}


def test_leaving_the_debugger_counts_the_rest_as_failed(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: RAISES})
    run = runner.run("--verify-dir=ops", "--verify-in-process", "--pdb", stdin=b"q\n")
    assert run.code == 2
    assert error_types(pair.result()) == {2: "ValueError", 3: "NotRun"}

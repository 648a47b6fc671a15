"""Runs of some cases: what is run, what is remembered, and what becomes of the result file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pairs import RAISES, WRONG, case_name, case_names, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

COLLECT = ("--collect-only", "-q")
FILE = "ops/double_triton_ascend_impl.py"


def ids(*cases: int) -> list[str]:
    return [f"{FILE}::{case_name(case)}" for case in cases]


def test_failures_are_found_again_and_a_partial_run_keeps_the_file(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=4, at={2: WRONG})

    first = runner.run("--verify-dir=ops", "--sw")
    assert first.by_name == {case_name(1): "passed", case_name(2): "failed"}
    # pytest's own code for a run that was cut short.
    assert first.code == 2
    result = pair.result()
    assert (result["total_cases"], result["passed_cases"], result["failed_cases"]) == (4, 1, 3)
    assert error_types(result) == {2: "AccuracyError", 3: "NotRun", 4: "NotRun"}

    listed = {
        option: runner.run("--verify-dir=ops", option, *COLLECT).listed
        # In this order: some versions of pytest forget where --sw stopped in a run without it.
        for option in ("--sw", "--lf", "--ff", "--nf")
    }
    assert listed == {
        "--lf": ids(2),
        "--ff": ids(2, 1, 3, 4),
        "--nf": ids(1, 2, 3, 4),
        "--sw": ids(2, 3, 4),
    }
    assert pair.result() == result

    write_pair(runner.path / "ops", cases=4)
    again = runner.run("--verify-dir=ops", "--lf")
    assert again.by_name == {case_name(2): "passed"}
    assert again.code == 0
    assert pair.result() == result
    assert (
        "double (triton_ascend_impl): only 1 of 4 cases were selected, "
        "so verify_result.json was left as it was"
    ) in again.out
    assert not list(pair.folder.glob("*.jsonl"))


def test_what_maxfail_keeps_from_running_counts_as_failed(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=4, at={1: WRONG, 2: RAISES})
    run = runner.run("--verify-dir=ops", "--maxfail=2")
    assert run.code == 1
    assert run.by_name == {case_name(1): "failed", case_name(2): "failed"}
    result = pair.result()
    assert error_types(result) == {
        1: "AccuracyError",
        2: "ValueError",
        3: "NotRun",
        4: "NotRun",
    }
    assert [entry["input_desc"] for entry in result["failures"]] == [
        [{"type": "tensor", "shape": [case, 8], "dtype": "torch.float32"}] for case in range(1, 5)
    ]
    assert result["failures"][2]["error_msg"] == "NotRun: the run ended before it"
    assert "failed: 1 AccuracyError, 2 NotRun, 1 ValueError" in run.out
    assert not list(pair.folder.glob("*.jsonl"))


def test_other_pairs_and_tests_run_on_beside_a_failing_one(runner: Runner) -> None:
    bad = write_pair(runner.path / "ops" / "a", at={0: RAISES}, cases=2)
    good = write_pair(runner.path / "ops" / "b", cases=2, factor=5.0)
    (runner.path / "test_own.py").write_text("def test_own(): pass\n")

    # Projects that take every warning for an error are common.
    strict = ("--strict-markers", "--strict-config", "-W", "error")
    shown = ("-vv", "--tb=no", "--no-header")
    run = runner.run("--verify-dir=ops", "test_own.py", *strict, *shown)

    assert run.code == 1
    assert run.outcomes == {
        "test_own.py::test_own": "passed",
        **{f"ops/a/{bad.implementation.name}::{name}": "failed" for name in case_names(2)},
        **{f"ops/b/{good.implementation.name}::{name}": "passed" for name in case_names(2)},
    }
    assert bad.result()["passed_cases"] == 0
    assert good.result()["passed_cases"] == good.result()["total_cases"] == 2
    assert f"ops/b/{good.implementation.name}::{case_name(1)} PASSED" in run.out
    assert (
        f"FAILED ops/a/{bad.implementation.name}::{case_name(1)} - ValueError: no such" in run.out
    )
    assert "E   ValueError" not in run.out
    assert "tritonverify: 2 pairs" not in run.out

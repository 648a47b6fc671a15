"""`decide`: strictly greater is an improvement, and only of the same cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.workflow import decision
from pytest_tritonverify.workflow.performance import Performance, Shape
from tests.support.workdirs import perf_result, record, verify_result, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.workflow.conftest import Commands

speedup = st.none() | st.floats(1e-3, 1e3)
mean = st.none() | st.floats(1e-6, 1e6)


def view(overall: float | None, speedups: Sequence[float | None]) -> Performance:
    shapes = {
        number: Shape(
            case_idx=number,
            measured=True,
            input_desc=[number],
            framework_ms=1.0,
            implementation_ms=1.0,
            speedup=value,
            method=None,
        )
        for number, value in enumerate(speedups, 1)
    }
    return Performance(
        path=Path("perf_result.json"),
        op_name="op",
        speedup=overall,
        latency_ms=1.0,
        framework_ms=1.0,
        shapes=shapes,
        content={},
    )


@given(mean, mean, st.lists(speedup, max_size=5), st.lists(speedup, max_size=5))
def test_the_documented_rule_and_no_other(
    before: float | None,
    after: float | None,
    cases_before: list[float | None],
    cases_after: list[float | None],
) -> None:
    found = decision.compare(view(before, cases_before), view(after, cases_after))
    in_mean = [
        {k for k, s in enumerate(cases) if s is not None} for cases in (cases_before, cases_after)
    ]
    same_cases = in_mean[0] == in_mean[1] and len(cases_before) == len(cases_after)
    comparable = before is not None and after is not None and same_cases
    assert found.outcome in ("improvement", "none")
    if comparable:
        assert before is not None
        assert after is not None
        assert found.improvement == (after > before)
        assert found.speedup_vs_baseline == pytest.approx(after / before)
        assert found.next_step == "continue"
    else:
        assert not found.improvement
        assert (found.baseline, found.optimized, found.speedup_vs_baseline) == (None, None, None)
        assert found.next_step == "4.5"


def files(tmp_path: Path, before: Any, after: Any) -> tuple[Path, Path]:
    verify = tmp_path / "verify" / "verify_result_optimized.json"
    write_json(verify, verify_result([record(1), record(2)]))
    return (
        write_json(tmp_path / "baseline_perf_result.json", before),
        write_json(tmp_path / "optimized_perf_result.json", after),
    )


@pytest.mark.parametrize(
    ("before", "after", "code", "outcome", "reason"),
    [
        ((1.0, 4.0), (2.0, 4.5), 0, "improvement", "greater"),
        ((1.0, 4.0), (1.0, 4.0), 1, "none", "equal"),
        ((1.0, 4.0), (1.0, 3.9), 1, "none", "less"),
        ((None, None), (1.0, 1.0), 1, "none", "null_speedup"),
        ((1.0, 1.0), (None, None), 1, "none", "null_speedup"),
        ((1.0, 1.0), (9.0, 9.0, 9.0), 1, "none", "other_cases"),
        ((1.0, 1.0), (9.0, None), 1, "none", "other_cases"),
    ],
)
def test_decisions_from_files(
    tmp_path: Path,
    commands: Commands,
    before: Sequence[float | None],
    after: Sequence[float | None],
    code: int,
    outcome: str,
    reason: str,
) -> None:
    paths = files(tmp_path, perf_result(before), perf_result(after))
    status, found = commands.json("decide", *paths)
    assert (status, found["outcome"], found["reason"]) == (code, outcome, reason)


def test_other_inputs_and_other_operators_are_other_cases(
    tmp_path: Path, commands: Commands
) -> None:
    after = perf_result((2.0, 2.0))
    after["per_shape_results"][1]["input_desc"] = [7]
    paths = files(tmp_path, perf_result((1.0, 1.0)), after)
    assert commands.json("decide", *paths)[1]["reason"] == "other_cases"
    paths = files(tmp_path, perf_result((1.0, 1.0)), perf_result((2.0, 2.0), op="relu"))
    assert commands.json("decide", *paths)[1]["reason"] == "other_cases"


@pytest.mark.parametrize("broken", ["missing", "{", "[]", '{"speedup_vs_torch": "2"}', "folder"])
@pytest.mark.parametrize("which", [0, 1])
def test_what_cannot_be_read_is_a_failure_without_figures(
    tmp_path: Path, commands: Commands, broken: str, which: int
) -> None:
    paths = files(tmp_path, perf_result((1.0, 1.0)), perf_result((2.0, 2.0)))
    paths[which].unlink()
    if broken == "folder":
        paths[which].mkdir()
    elif broken != "missing":
        paths[which].write_text(broken, encoding="utf-8")
    code, found = commands.json("decide", *paths)
    assert (code, found["outcome"], found["next"]) == (1, "failure", "4.5")
    assert str(paths[which]) in found["message"]
    assert len(found["message"].splitlines()) == 1


def test_code_that_was_not_verified_is_no_improvement(tmp_path: Path, commands: Commands) -> None:
    paths = files(tmp_path, perf_result((1.0, 1.0)), perf_result((2.0, 2.0)))
    verify = tmp_path / "verify" / "verify_result_optimized.json"
    write_json(verify, verify_result([record(1), record(2, "AccuracyError")]))
    code, found = commands.json("decide", *paths)
    assert (code, found["reason"]) == (1, "not_verified")
    verify.unlink()
    code, found = commands.json("decide", *paths)
    assert (code, found["outcome"]) == (0, "improvement")
    assert "was verified can't be seen here" in found["warnings"][0]


def test_a_baseline_under_another_name_is_the_same_baseline(
    tmp_path: Path, commands: Commands
) -> None:
    paths = files(tmp_path, perf_result((1.0, 1.0)), perf_result((2.0, 2.0)))
    renamed = paths[0].rename(tmp_path / "phase3-copy.json")
    assert commands.json("decide", renamed, paths[1])[0] == 0


def test_a_mean_that_is_not_that_of_its_cases_is_told(tmp_path: Path, commands: Commands) -> None:
    after = perf_result((2.0, 2.0))
    after["speedup_vs_torch"] = 5.0
    paths = files(tmp_path, perf_result((1.0, 1.0)), after)
    _, found = commands.json("decide", *paths)
    assert "speedup_vs_torch is 5.0000" in found["warnings"][0]


def test_a_verification_given_for_a_report_is_recognised(
    tmp_path: Path, commands: Commands
) -> None:
    paths = files(tmp_path, verify_result([record(1)]), perf_result((2.0, 2.0)))
    answer = commands.run("decide", *paths)
    assert "a verify_result.json was given for a perf_result.json" in answer.out

"""Verdicts as data and as text."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])


def judge(golden: object, actual: object, **rules: bool) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules(**rules))


def builtins_only(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and builtins_only(inner) for key, inner in value.items())
    return type(value) in {bool, int, float, str, type(None)}


ONES = torch.ones(4)
CASES: list[tuple[Any, Any]] = [
    (ONES, ONES),
    (ONES, ONES + 1),
    (ONES.double(), ONES.double() + 1),
    (torch.tensor([1e308]).double(), torch.tensor([-1e308]).double()),
    (ONES.half() * 65504, ONES * 70000),
    (ONES * math.nan, ONES * math.nan),
    (ONES[:0], ONES[:0]),
    (ONES.int(), ONES.int() + 3),
    (ONES.int()[:0], ONES.int()[:0]),
    (ONES > 0, ONES > 2),
    (ONES * (1 + 1j), ONES * 1j),
    (2**80, 0),
]


@pytest.mark.parametrize(("golden", "actual"), CASES)
@pytest.mark.parametrize("non_compute", [False, True])
def test_metrics_are_strict_json_made_of_builtins(
    golden: Any, actual: Any, *, non_compute: bool
) -> None:
    verdict = judge(golden, actual, non_compute=non_compute)
    for output in verdict.outputs:
        assert builtins_only(output.metrics)
        json.dumps(output.metrics, allow_nan=False)
        assert type(output.passed) is bool
        assert output.shape is not None
        assert all(type(extent) is int for extent in output.shape)


def test_the_text_of_an_accuracy_failure() -> None:
    golden = torch.ones(3, 4)
    actual = golden.clone()
    actual[2, 1] = 3.0
    actual[0, 3] = 1.5
    lines = judge(golden, actual).message.splitlines()
    assert lines[0] == (
        "output (torch.float32, shape [3, 4]) is not accurate by the open ecosystem accuracy "
        "standard (eco_open_source): 10 of 12 finite elements within atol + rtol*|golden| "
        "(required ratio 0.99), 2 above the absolute limit (0 allowed)"
    )
    assert lines[-2] == "    [2, 1]: got 3.0, expected 1.0, difference 2.0, allowed 0.01"
    assert lines[-1] == "    [0, 3]: got 1.5, expected 1.0, difference 0.5, allowed 0.01"


def test_the_worst_of_many_elements_are_shown() -> None:
    golden = torch.zeros(1000)
    verdict = judge(golden, torch.arange(1000.0))
    assert "worst 10 of 999:" in verdict.message
    assert "[999]: got 999.0, expected 0.0" in verdict.message
    assert "[989]" not in verdict.message


def test_elements_above_the_limit_come_before_unmatched_ones() -> None:
    golden = torch.tensor([1e4] * 50 + [0.0])
    actual = torch.tensor([1e4] * 50 + [0.02])
    actual[0] += 9.0
    verdict = judge(golden, actual)
    listed = [line for line in verdict.message.splitlines() if ": got " in line]
    assert len(listed) == 1
    assert listed[0].endswith("allowed 0.01")


def test_the_original_value_is_shown_where_a_cast_took_place() -> None:
    # 0.1 is no float16.
    verdict = judge(torch.zeros(3, dtype=torch.float16), torch.full((3,), 0.1, dtype=torch.float64))
    assert "[0]: got 0.1, expected 0.0, difference 0.0999755859375, allowed" in verdict.message


def test_a_passing_case_says_so() -> None:
    assert judge(ONES, ONES).message == "1 output agrees with the golden"
    assert judge((ONES, ONES), [ONES, ONES]).message == "2 outputs agree with the golden"
    assert (
        judge(ONES, ONES).outputs[0].message.startswith("output (torch.float32, shape [4]) agrees")
    )


def test_many_failures_are_all_listed_but_not_all_in_full() -> None:
    verdict = judge([0] * 60, [9] * 60)
    assert len(verdict.failures) == 60
    lines = verdict.message.splitlines()
    assert lines[0].startswith("60 of 60 outputs failed; first: output[0] ")
    for number in range(60):
        assert any(line.startswith(f"output[{number}] ") for line in lines)
    assert sum(": got 9, expected 0" in line for line in lines) == 20


def test_the_first_failing_output_speaks_for_the_case() -> None:
    verdict = judge((ONES, ONES, ONES), (ONES, ONES + 1, ONES[:2]))
    assert verdict.error_type == "AccuracyError"
    assert verdict.metrics is verdict.outputs[1].metrics
    verdict = judge((ONES, ONES, ONES), (ONES, ONES[:2], ONES + 1))
    assert verdict.error_type == "AssertionError"
    assert verdict.metrics is None


def test_verdicts_and_rules_cannot_be_changed() -> None:
    verdict = judge(ONES, ONES)
    for frozen, name in (
        (verdict, "outputs"),
        (verdict.outputs[0], "passed"),
        (Rules(), "exact_int"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, name, None)


def test_judging_leaves_both_sides_alone() -> None:
    golden, actual = torch.randn(50, 40), torch.randn(50, 40).t().contiguous().t()
    copies = golden.clone(), actual.clone()
    judge(golden, actual)
    judge(golden, actual, non_compute=True)
    assert torch.equal(golden, copies[0])
    assert torch.equal(actual, copies[1])
    values = torch.randn(5, dtype=torch.complex64)
    kept = values.clone()
    judge(values.conj(), values)
    assert torch.equal(values, kept)

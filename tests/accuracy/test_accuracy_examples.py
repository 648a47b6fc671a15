"""Worked examples at exact thresholds, computed with exact fractions beforehand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.floats import scan_floats
from pytest_tritonverify.accuracy.limits import cap_limits, npu_limits
from pytest_tritonverify.accuracy.npu_benchmark import NpuBenchmarkTally
from pytest_tritonverify.accuracy.offenders import Addressing

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2

Pair = tuple[float, float]
PAD: Pair = (1.0, 1.0)

TOL_AT_1 = 65 * 2**-16
TOL_AT_10 = 657 * 2**-16
FLOAT32_CENT = 0.00999999977648258209228515625
ABOVE_CENT = 0.010000000707805156707763671875


def tensors(dtype: torch.dtype, pairs: list[Pair]) -> tuple[torch.Tensor, torch.Tensor]:
    """Build both sides; every number has to be exact in the dtype."""
    both = torch.tensor(pairs, dtype=torch.float64)
    assert torch.equal(both.to(dtype).double(), both)
    golden, actual = both.to(dtype).T.unbind(0)
    return golden, actual


def eco(dtype: torch.dtype, pairs: list[Pair]) -> tuple[bool, dict[str, Any]]:
    golden, actual = tensors(dtype, pairs)
    verdict = judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules())
    assert verdict.outputs[0].category == "eco_open_source"
    return verdict.passed, verdict.outputs[0].metrics


def fallback(dtype: torch.dtype, pairs: list[Pair]) -> tuple[bool, dict[str, Any]]:
    """Judge by the three-way test, whatever rule the dtype would be routed to."""
    golden, actual = tensors(dtype, pairs)
    name = str(dtype).removeprefix("torch.")
    tally = NpuBenchmarkTally(npu_limits(name), cap_limits(name))
    scan_floats(golden, actual, tally)
    finding = tally.finding(Addressing(tuple(golden.shape)))
    return finding.passed, finding.metrics


# (row, dtype, the pairs beside 99 or no equal ones, passes the first standard, passes the fallback)
EXAMPLES: list[tuple[str, torch.dtype, list[Pair], bool, bool]] = [
    ("1", F32, [(1, 1 + TOL_AT_1)], True, False),
    ("2", F32, [(1, 1 + TOL_AT_1 + 2**-23)], False, False),
    ("4 at", F32, [*[PAD] * 99, (0, FLOAT32_CENT)], True, False),
    ("4 above", F32, [*[PAD] * 99, (0, ABOVE_CENT)], False, False),
    ("5 at", F32, [*[PAD] * 99, (10.25, 10.25 + TOL_AT_10)], True, False),
    ("5 above", F32, [*[PAD] * 99, (10.25, 10.25 + TOL_AT_10 + 2**-20)], False, False),
    ("6 at", F16, [(1, 1 + 2**-8)], True, False),
    ("6 above", F16, [(1, 1 + 5 * 2**-10)], False, False),
    ("6 below", F16, [(1, 1 + 2**-10)], True, True),
    ("7 up", F16, [*[PAD] * 99, (4, 4.125)], True, False),
    ("7 down", F16, [*[PAD] * 99, (4, 3.875)], True, False),
    ("7 above", F16, [*[PAD] * 99, (4, 4.12890625)], False, False),
    ("9 at 4", BF16, [*[PAD] * 99, (4, 5)], True, False),
    ("9 above 4", BF16, [*[PAD] * 99, (4, 5.03125)], False, False),
    ("9 at 8", BF16, [*[PAD] * 99, (8, 10)], True, False),
    ("9 above 8", BF16, [*[PAD] * 99, (8, 10.0625)], False, False),
    ("10 one ulp", BF16, [(1, 1 + 2**-7)], True, True),
    ("10 at", BF16, [(1, 1 + 2**-5)], True, False),
    ("10 above", BF16, [(1, 1 + 2**-5 + 2**-7)], False, False),
    ("11 at", E4M3, [(0.25, 0.375)], True, False),
    ("11 above", E4M3, [(0.25, 0.40625)], False, False),
    ("11 cap at", E4M3, [*[PAD] * 99, (1, 5)], True, False),
    ("11 cap above", E4M3, [*[PAD] * 99, (1, 5.5)], False, False),
    ("12 at", E5M2, [(0, 0.125)], True, False),
    ("12 above", E5M2, [*[PAD] * 99, (0, 0.15625)], False, False),
    ("12 cap at", E5M2, [*[PAD] * 99, (1, 8)], True, False),
    ("12 cap above", E5M2, [*[PAD] * 99, (1, 10)], False, False),
    ("15 in float32", F32, [*[PAD] * 99, (0, 2**-30)], True, True),
    ("15 twice in float32", F32, [*[PAD] * 98, *[(0.0, 2**-30)] * 2], True, False),
    ("16", F32, [(-(2**-80), 2**-16)], True, False),
]


@pytest.mark.parametrize(
    ("dtype", "pairs", "by_eco", "by_fallback"),
    [pytest.param(*rest, id=row) for row, *rest in EXAMPLES],
)
def test_both_standards_decide_as_computed(
    dtype: torch.dtype, pairs: list[Pair], *, by_eco: bool, by_fallback: bool
) -> None:
    assert eco(dtype, pairs)[0] is by_eco
    assert fallback(dtype, pairs)[0] is by_fallback


def test_example_1_fails_the_fallback_although_its_cap_holds() -> None:
    _, metrics = fallback(F32, [(1, 1 + TOL_AT_1)])
    assert metrics["checks"] == {
        "max_error_cap": True,
        "required_matched_ratio": False,
        "MERE": False,
    }


def test_example_2_breaks_the_ratio_but_not_the_limit() -> None:
    _, metrics = eco(F32, [(1, 1 + TOL_AT_1 + 2**-23)])
    assert (metrics["matched_count"], metrics["total_finite"], metrics["over_count"]) == (0, 1, 0)
    assert metrics["checks"] == {"matched_ratio": False, "abs_limit": True}


def test_example_4_the_limit_is_a_double_and_the_mean_counts_zeros() -> None:
    _, at = eco(F32, [*[PAD] * 99, (0, FLOAT32_CENT)])
    _, above = eco(F32, [*[PAD] * 99, (0, ABOVE_CENT)])
    assert (at["over_count"], above["over_count"]) == (0, 1)
    assert at["matched_count"] == above["matched_count"] == 99
    _, metrics = fallback(F32, [*[PAD] * 99, (0, FLOAT32_CENT)])
    assert metrics["MERE"] == pytest.approx(1000, rel=1e-6)
    assert metrics["max_error_cap_violation_count"] == 1


def test_example_5_the_mixed_tolerance_widens_the_limit() -> None:
    _, at = eco(F32, [*[PAD] * 99, (10.25, 10.25 + TOL_AT_10)])
    assert (at["matched_count"], at["over_count"]) == (100, 0)
    _, above = eco(F32, [*[PAD] * 99, (10.25, 10.25 + TOL_AT_10 + 2**-20)])
    assert (above["matched_count"], above["over_count"]) == (99, 1)


def test_example_14_float64_is_evaluated_in_float64() -> None:
    golden, actual = tensors(torch.float64, [(1024, 1024.125)])
    verdict = judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules())
    assert verdict.passed
    assert verdict.outputs[0].category == "float_compute"
    # In float32 the 1e-7 vanishes beside 1024, and 2**-13 is not below 2**-13.
    passed, metrics = fallback(F32, [(1024, 1024.125)])
    assert not passed
    assert metrics["MERE"] == 2**-13


@pytest.mark.parametrize(("small", "passed"), [(1, True), (2, False)])
def test_example_15_small_values_match_and_yet_lift_the_mean(small: int, *, passed: bool) -> None:
    pairs = [*[PAD] * (100 - small), *[(0.0, 2**-30)] * small]
    golden, actual = tensors(torch.float64, pairs)
    verdict = judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules())
    metrics = verdict.outputs[0].metrics
    assert verdict.passed is passed
    assert metrics["matched_count"] == 100
    assert metrics["MERE"] == pytest.approx(small * 9.313225746e-05, rel=1e-9)


@pytest.mark.parametrize(
    ("dtype", "golden", "actual", "passed", "difference"),
    [
        (torch.int64, -(2**63), 2**63 - 1, False, 2**64 - 1),
        (torch.int64, 3, 4, True, 1),
        (torch.int64, 3, 5, False, 2),
        (torch.uint8, 0, 255, False, 255),
    ],
)
def test_example_18_integer_differences_do_not_wrap(
    dtype: torch.dtype, golden: int, actual: int, *, passed: bool, difference: int
) -> None:
    verdict = judge_outputs(
        torch.tensor([golden], dtype=dtype),
        torch.tensor([actual], dtype=dtype),
        input_type=FLOAT_INPUTS,
        rules=Rules(),
    )
    assert verdict.passed is passed
    assert verdict.outputs[0].category == "quant_fp_to_int"
    assert verdict.outputs[0].metrics["max_abs_diff"] == difference
    codes = [caution.code for caution in verdict.cautions]
    assert codes == (["index_by_quantisation_rule"] if passed else [])

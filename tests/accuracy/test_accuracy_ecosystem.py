"""The first standard against a slow oracle: Python floats, element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])


@dataclass(frozen=True)
class Row:
    """The standard's row, typed anew from the document, and the format's bits."""

    rtol: float
    atol: float
    limit: float
    mantissa_bits: int
    smallest_normal_exponent: int


ROWS = {
    "float16": Row(2**-9, 2**-9, 1e-1, 10, -14),
    "bfloat16": Row(2**-6, 2**-6, 1e-0, 7, -126),
    "float32": Row(2**-10, 2**-16, 1e-2, 23, -126),
    "hifloat32": Row(2**-9, 2**-10, 1e-1, 11, -126),
    "float8_e4m3fn": Row(0.25, 0.0625, 1e-0, 3, -6),
    "float8_e4m3fnuz": Row(0.25, 0.0625, 1e-0, 3, -7),
    "float8_e5m2": Row(0.5, 0.125, 1e-1, 2, -14),
    "float8_e5m2fnuz": Row(0.5, 0.125, 1e-1, 2, -15),
}
FORMATS = [name for name in ROWS if hasattr(torch, name)]
SIGNED_VIEWS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def oracle_ulp(value: float, row: Row) -> float:
    if abs(value) < 2.0 ** (row.smallest_normal_exponent + 1):
        return 2.0 ** (row.smallest_normal_exponent - row.mantissa_bits)
    exponent = math.frexp(abs(value))[1] - 1
    return 2.0 ** (exponent - row.mantissa_bits)


@dataclass(frozen=True)
class Expected:
    """What the oracle says of a pair of vectors."""

    error_type: str | None
    matched: int
    finite: int
    over: int
    max_abs_diff: float | None


def classify(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return str(value) if math.isinf(value) else "finite"


def oracle(golden: list[float], actual: list[float], cast: list[float], row: Row) -> Expected:
    """Judge vectors; `actual` is compared for non-finite values, `cast` for accuracy."""
    matched = finite = over = 0
    greatest = 0.0
    for expected, got, judged in zip(golden, actual, cast, strict=True):
        if classify(expected) != classify(got):
            return Expected("AssertionError", 0, 0, 0, None)
        if classify(expected) != "finite":
            continue
        finite += 1
        difference = abs(judged - expected)
        tolerance = row.atol + row.rtol * abs(expected)
        limit = max(row.limit, 32 * oracle_ulp(expected, row), tolerance)
        matched += difference <= tolerance
        over += not difference <= limit
        greatest = math.nan if math.isnan(difference) else max(greatest, difference)
    passed = matched * 100 >= 99 * finite and not over
    measured = greatest if finite and math.isfinite(greatest) else None
    return Expected(None if passed else "AccuracyError", matched, finite, over, measured)


def judge(golden: torch.Tensor, actual: torch.Tensor, **rules: bool) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules(**rules))


def check(golden: torch.Tensor, actual: torch.Tensor, name: str) -> None:
    cast = [
        math.nan if name == "float8_e4m3fn" and abs(exact) > 464 else rounded
        for exact, rounded in zip(
            actual.double().tolist(), actual.to(golden.dtype).double().tolist(), strict=True
        )
    ]
    expected = oracle(golden.double().tolist(), actual.double().tolist(), cast, ROWS[name])
    verdict = judge(golden, actual, hf32=name == "hifloat32")
    assert verdict.error_type == expected.error_type
    assert verdict.passed is (expected.error_type is None)
    if expected.error_type == "AssertionError":
        assert verdict.metrics is None
        return
    metrics = verdict.outputs[0].metrics
    assert metrics["matched_count"] == expected.matched
    assert metrics["total_finite"] == expected.finite
    assert metrics["over_count"] == expected.over
    assert metrics["max_abs_diff"] == expected.max_abs_diff
    ratio = expected.matched / expected.finite if expected.finite else None
    assert metrics["matched_ratio"] == ratio


def from_bits(bits: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Make a tensor from bit patterns, whatever they mean."""
    size = dtype.itemsize
    wrapped = torch.tensor(bits, dtype=torch.int64).to(SIGNED_VIEWS[size])
    return wrapped.view(dtype)


def bits_of(values: torch.Tensor) -> torch.Tensor:
    return values.view(SIGNED_VIEWS[values.element_size()]).to(torch.int64)


def nudged(values: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Move every value by some bit patterns: neighbours in the format, now and then NaN or Inf."""
    return from_bits((bits_of(values) + steps).tolist(), values.dtype)


def borderline(golden: torch.Tensor, modes: torch.Tensor, row: Row) -> torch.Tensor:
    """Place values at the golden, at its tolerance or at its limit, above or below."""
    exact = golden.double()
    ulps = torch.tensor(
        [oracle_ulp(value, row) if math.isfinite(value) else 1.0 for value in exact.tolist()],
        dtype=torch.float64,
    )
    tolerance = row.atol + row.rtol * exact.abs()
    limits = torch.maximum((32 * ulps).clamp(min=row.limit), tolerance)
    distances = torch.stack((torch.zeros_like(exact), tolerance, -tolerance, limits, -limits))
    return (exact + distances[modes, torch.arange(len(modes))]).to(golden.dtype)


ELEMENT = st.tuples(
    st.integers(0, 2**32 - 1),  # the golden's bits
    st.integers(0, 4),  # where the other side stands
    st.sampled_from([0, 0, 0, 0, 1, -1, 2, -2]),  # and by how many neighbours it is off
)


# hifloat32 has no dtype: it is float32, judged by other limits.
@pytest.mark.parametrize("name", [*FORMATS, "hifloat32"])
@settings(max_examples=150, deadline=None)
@given(elements=st.lists(ELEMENT, min_size=1, max_size=50), equal=st.integers(0, 300))
def test_every_format_agrees_with_the_oracle_at_the_thresholds(
    name: str, elements: list[tuple[int, int, int]], equal: int
) -> None:
    dtype = getattr(torch, name.removeprefix("hi"))
    bits, modes, steps = zip(*elements, strict=True)
    golden = from_bits(list(bits), dtype)
    actual = nudged(borderline(golden, torch.tensor(modes), ROWS[name]), torch.tensor(steps))
    same = torch.ones(equal).to(dtype)
    golden, actual = joined(golden, same), joined(actual, same)
    check(golden, actual, name)
    # Non-finite values in the same places leave the rule to decide.
    finite = golden.double().isfinite() & actual.double().isfinite()
    check(golden[finite], actual[finite], name)


def joined(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    both = torch.cat((bits_of(left), bits_of(right)))
    return from_bits(both.tolist(), left.dtype)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=50, deadline=None)
@given(
    bits=st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=60),
    other=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
)
def test_another_float_width_is_cast_after_its_non_finite_values_were_compared(
    name: str, bits: list[int], other: str
) -> None:
    golden = from_bits(bits, getattr(torch, name))
    actual = golden.double() * torch.linspace(1.0, 1.01, len(bits), dtype=torch.float64)
    check(golden, actual.to(getattr(torch, other)), name)


@pytest.mark.parametrize("name", FORMATS)
def test_special_values_against_each_other(name: str) -> None:
    dtype = getattr(torch, name)
    largest = torch.finfo(dtype).max
    subnormal = 2.0 ** (ROWS[name].smallest_normal_exponent - ROWS[name].mantissa_bits)
    specials = [0.0, -0.0, subnormal, -subnormal, 1.0, largest, -largest]
    specials += [math.nan, math.inf, -math.inf]
    for expected in specials:
        for got in specials:
            golden = torch.tensor([expected]).to(dtype)
            check(golden, torch.tensor([got]).to(dtype), name)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("bad", "passed"), [(0, True), (1, True), (2, False)])
def test_one_percent_may_miss_the_tolerance_but_not_the_limit(
    name: str, bad: int, *, passed: bool
) -> None:
    dtype = getattr(torch, name)
    row = ROWS[name]
    # Where the tolerance exceeds the floor, only 32 ULP leave room between the two bounds.
    at_zero = row.limit > row.atol
    outside = 2 * row.atol if at_zero else 1.0 + 2 * (row.rtol + row.atol)
    golden = torch.tensor([0.0 if at_zero else 1.0] * 100).to(dtype)
    actual = golden.double()
    actual[:bad] = outside
    verdict = judge(golden, actual.to(dtype))
    assert verdict.passed is passed
    assert verdict.outputs[0].metrics["matched_count"] == 100 - bad
    assert verdict.outputs[0].metrics["over_count"] == 0


def test_the_ratio_is_taken_over_finite_elements_in_integers() -> None:
    golden = torch.zeros(200)
    golden[:99] = math.nan
    actual = golden.clone()
    actual[-1] = 0.005
    assert judge(golden, actual).outputs[0].metrics["total_finite"] == 101
    assert judge(golden, actual).passed
    # 98 of 99 is below 99 %, 99 of 100 is not.
    assert not judge(golden[97:196].nan_to_num(0), actual[101:].clone()).passed


def test_an_overflow_in_the_cast_is_a_violation_with_an_unknown_difference() -> None:
    golden = torch.full((100,), 65504.0, dtype=torch.float16)
    actual = torch.full((100,), 65504.0)
    actual[3] = 70000.0
    verdict = judge(golden, actual)
    assert verdict.error_type == "AccuracyError"
    assert verdict.metrics is not None
    assert verdict.metrics["over_count"] == 1
    assert verdict.metrics["max_abs_diff"] is None
    assert "70000.0" in verdict.message


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz"])
def test_overflow_in_a_cast_is_a_violation_even_where_torch_saturates(name: str) -> None:
    golden = torch.full((100,), 240.0).to(getattr(torch, name))
    actual = torch.full((100,), 240.0)
    actual[3] = 1e6
    verdict = judge(golden, actual)
    assert verdict.error_type == "AccuracyError"
    assert verdict.metrics is not None
    assert verdict.metrics["max_abs_diff"] is None
    assert (verdict.metrics["over_count"], verdict.metrics["matched_count"]) == (1, 99)


def test_metrics_have_the_documented_keys_in_order() -> None:
    metrics = judge(torch.ones(3), torch.ones(3)).outputs[0].metrics
    assert list(metrics) == [
        "category",
        "dtype",
        "matched_ratio",
        "required_matched_ratio",
        "matched_count",
        "total_finite",
        "max_abs_diff",
        "rtol",
        "atol",
        "max_abs_error_limit",
        "over_count",
        "checks",
    ]
    assert metrics["category"] == "eco_open_source"
    assert metrics["dtype"] == "torch.float32"
    assert metrics["required_matched_ratio"] == 0.99
    assert (metrics["rtol"], metrics["atol"]) == (2**-10, 2**-16)
    assert metrics["max_abs_error_limit"] == 0.01
    assert metrics["checks"] == {"matched_ratio": True, "abs_limit": True}


def test_hf32_widens_the_limits_of_float32_alone() -> None:
    golden = torch.full((1000,), 3.0)
    golden[0] = 0.0
    actual = golden.clone()
    actual[1:] += 2**-9 * 3
    assert not judge(golden, actual).passed
    verdict = judge(golden, actual, hf32=True)
    assert verdict.passed
    metrics = verdict.outputs[0].metrics
    assert verdict.outputs[0].dtype == "torch.float32"
    found = [metrics[key] for key in ("dtype", "rtol", "atol", "max_abs_error_limit")]
    assert found == ["hifloat32", 2**-9, 2**-10, 1e-1]
    # 32 ULP of a format with eleven bits are 0.125 from 8 on.
    for difference, within in ((0.12, True), (0.13, False)):
        golden[0], actual[0] = 8.0, 8.0 + difference
        assert judge(golden, actual, hf32=True).passed is within
    for other in (torch.float16, torch.float64, torch.complex64):
        plain, wide = (judge(golden.to(other), actual.to(other), hf32=on) for on in (False, True))
        assert plain == wide


def test_hf32_is_said_in_the_log() -> None:
    lines: list[str] = []
    rules = Rules(hf32=True)
    x = torch.ones(2)
    judge_outputs(x, x, input_type=FLOAT_INPUTS, rules=rules, log=lines.append)
    assert "输出 dtype=hifloat32" in lines[0]
    assert "[atol=9.766e-04, rtol=1.953e-03]" in lines[0]

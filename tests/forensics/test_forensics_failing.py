"""The rules' tests of elements against the rules themselves."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.limits import CAP_LIMITS, ECO_LIMITS, NPU_LIMITS
from pytest_tritonverify.forensics.failing import (
    bits,
    eco,
    exact,
    failing_by,
    non_finite,
    three_way,
)

NAN, INF = math.nan, math.inf
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, NAN, INF, -INF, 1.0, 65504.0, 1e-7, 2.0**-16, 3e38, -3e38]),
    st.floats(width=32),
)
PAIRS = st.lists(
    st.tuples(NUMBERS, st.one_of(NUMBERS, st.floats(-0.01, 0.01).map(lambda share: share + 1))),
    min_size=1,
    max_size=20,
)


def sides(pairs: list[tuple[float, float]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a golden, and values some of which are close to it."""
    golden = torch.tensor([left for left, _ in pairs], dtype=torch.float32)
    given_values = torch.tensor([right for _, right in pairs], dtype=torch.float32)
    close = (given_values - 1).abs() <= 0.01
    return golden, torch.where(close, golden * given_values, given_values)


def differs(golden: float, actual: float) -> bool:
    """Tell whether one side is NaN or an infinity that the other is not."""
    if math.isnan(golden) or math.isnan(actual):
        return math.isnan(golden) != math.isnan(actual)
    return (math.isinf(golden) or math.isinf(actual)) and golden != actual


@settings(max_examples=300, deadline=None)
@given(PAIRS)
def test_the_ecosystem_standard_element_by_element(pairs: list[tuple[float, float]]) -> None:
    golden, actual = sides(pairs)
    row = ECO_LIMITS["float32"]
    for expected, got, fails in zip(
        golden.tolist(), actual.tolist(), eco(row)(golden, actual).tolist(), strict=True
    ):
        if math.isfinite(expected) and math.isfinite(got):
            assert fails == (abs(got - expected) > row.atol + row.rtol * abs(expected))
        else:
            assert fails == differs(expected, got)


@settings(max_examples=300, deadline=None)
@given(PAIRS)
def test_the_three_way_test_element_by_element(pairs: list[tuple[float, float]]) -> None:
    golden, actual = (side.double() for side in sides(pairs))
    row, cap = NPU_LIMITS["float32"], CAP_LIMITS["float32"]
    mask = three_way(torch.float64)(golden, actual).tolist()
    for expected, got, fails in zip(golden.tolist(), actual.tolist(), mask, strict=True):
        if math.isfinite(expected) and math.isfinite(got):
            off, size = abs(got - expected), abs(expected)
            relative = off / (size + 1e-7)
            matches = (
                off <= row.small_value_error
                if size < row.small_value_threshold
                else relative <= row.rel_threshold
            )
            within = off <= cap.atol + cap.rtol * size
            assert fails == (not (matches and within and relative < row.rel_threshold))
        else:
            assert fails == differs(expected, got)


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_non_finite_differences(pairs: list[tuple[float, float]]) -> None:
    golden, actual = sides(pairs)
    expected = [differs(*pair) for pair in zip(golden.tolist(), actual.tolist(), strict=True)]
    assert non_finite(golden, actual).tolist() == expected


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1
    ),
    st.integers(0, 2),
)
def test_integers_by_their_distance(pairs: list[tuple[int, int]], tolerance: int) -> None:
    golden, actual = torch.tensor(pairs).T
    expected = [abs(left - right) > tolerance for left, right in pairs]
    assert exact(tolerance)(golden, actual).tolist() == expected


def test_bits_tell_zeros_apart() -> None:
    zeros = torch.tensor([0.0, 0.0, NAN])
    assert bits(zeros, torch.tensor([0.0, -0.0, NAN])).tolist() == [False, True, False]


def test_values_are_rounded_to_the_golden_s_format_first() -> None:
    golden = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float16)
    actual = torch.tensor([1.0002, 1e6, 2.5])
    assert failing_by(None, torch.float16)(golden, actual).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.bool, torch.uint8]
)
@pytest.mark.parametrize("non_compute", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_an_output_without_failing_elements_passes(
    dtype: torch.dtype, non_compute: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    golden = torch.randn(200, generator=generator)
    # The more seeds, the greater the errors: some outputs pass and some do not.
    actual = golden * (1 + torch.randn(200, generator=generator) * 10.0 ** (seed // 2 - 9))
    left, right = (golden * 50).to(dtype), (actual * 50).to(dtype)
    kind = infer_input_type([torch.zeros(1)])
    verdict = judge_outputs(left, right, input_type=kind, rules=Rules(non_compute=non_compute))
    (output,) = verdict.outputs
    tolerance = output.metrics.get("tolerance", 0)
    assert isinstance(tolerance, int)
    failing = failing_by(output.category, dtype, tolerance)(left, right)
    if not output.passed:
        assert bool(failing.any())
    if not bool(failing.any()):
        assert output.passed

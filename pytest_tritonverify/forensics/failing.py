"""The rules' tests of single elements, as masks.

Whether an output passes is decided elsewhere, with ratios and means; these say which elements
speak against it. The thresholds are those of `accuracy.limits`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.dtypes import bit_view, dtype_name, kind_of, wide_integers
from pytest_tritonverify.accuracy.floats import measurable
from pytest_tritonverify.accuracy.limits import (
    CAST_BOUNDS,
    MERE_EPSILON,
    EcoLimits,
    cap_limits,
    eco_limits,
    npu_limits,
)

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.verdict import Category
    from pytest_tritonverify.forensics.facts import Failing


def failing_by(category: Category | None, dtype: torch.dtype, tolerance: int = 0) -> Failing:
    """Return the test that belongs to a verdict.

    Args:
        category: The rule that decided; None where non-finite positions did.
        dtype: The golden's dtype.
        tolerance: Greatest difference of integers.
    """
    if category == "non_compute":
        return bits
    if kind_of(dtype) in {"float", "complex"}:
        limits = eco_limits(dtype_name(dtype))
        if category == "float_compute" or limits is None:
            return three_way(dtype)
        return eco(limits)
    return exact(tolerance)


def eco(limits: EcoLimits) -> Failing:
    """Return the open ecosystem accuracy standard's test: `|diff| <= atol + rtol * |golden|`.

    Elements whose non-finite values differ fail too.

    Args:
        limits: The table's row.
    """

    def failing(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
        expected = measurable(golden).to(torch.float64)
        got = as_golden(actual, golden.dtype).to(torch.float64)
        tolerance = expected.abs().mul_(limits.rtol).add_(limits.atol)
        difference = (got - expected).abs_()
        failing = _unless(expected, got, difference, difference <= tolerance)
        return _with_cast(failing, golden, actual)

    return failing


def three_way(dtype: torch.dtype) -> Failing:
    """Return the NPU Benchmark standard's test: cap, matching threshold and the mean's bound.

    Elements whose non-finite values differ fail too.

    Args:
        dtype: The golden's dtype.
    """
    limits, cap = npu_limits(dtype_name(dtype)), cap_limits(dtype_name(dtype))

    def failing(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if golden.dtype == torch.float64 else torch.float32
        expected = measurable(golden).to(wide)
        got = as_golden(actual, golden.dtype).to(wide)
        difference = (got - expected).abs_()
        magnitude = expected.abs()
        relative = difference / (magnitude + MERE_EPSILON)
        small = magnitude < limits.small_value_threshold
        matches = torch.where(
            small, difference <= limits.small_value_error, relative <= limits.rel_threshold
        )
        matches &= relative < limits.rel_threshold
        matches &= difference <= magnitude.mul_(cap.rtol).add_(cap.atol)
        return _with_cast(_unless(expected, got, difference, matches), golden, actual)

    return failing


def exact(tolerance: int = 0) -> Failing:
    """Return the test of integers and booleans: equal, or within a tolerance that integers have."""

    def failing(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
        if tolerance == 0 and golden.dtype == actual.dtype:
            return bit_view(golden) != bit_view(actual)
        expected, got = wide_integers(golden), wide_integers(actual)
        difference = got - expected
        # A difference that wraps is none that a tolerance allows: its sign contradicts the order.
        beyond = difference.abs() > tolerance
        return beyond | ((got < expected) != (difference < 0))

    return failing


def bits(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Test elements for equal bits: NaN payloads and the sign of zero count."""
    return bit_view(golden) != bit_view(actual)


def non_finite(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Test elements for NaN and infinities, signs included, that only one side has."""
    return _non_finite_differs(measurable(golden), measurable(actual))


def as_golden(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to the golden's dtype; NaN where it has no counterpart, non-finite values as they are.

    Complex outputs arrive as their parts, so that both sides are real here.
    """
    original = measurable(values)
    if values.dtype == dtype:
        return original
    rounded = measurable(values.to(dtype)).to(original.dtype)
    bounds = CAST_BOUNDS.get(dtype_name(dtype))
    if bounds is not None:
        rounded.masked_fill_((original < bounds[0]) | (original > bounds[1]), math.nan)
    return torch.where(torch.isfinite(original), rounded, original)


def _unless(
    golden: torch.Tensor, actual: torch.Tensor, difference: torch.Tensor, matches: torch.Tensor
) -> torch.Tensor:
    """Return what fails: what does not match, or is non-finite on one side only."""
    failing = ~matches
    # Differences are finite where both sides are.
    if math.isfinite(float(difference.sum())):
        return failing
    # An infinite golden allows anything; NaN and infinite differences match nothing.
    failing |= difference == math.inf
    failing &= golden != actual
    failing &= ~(golden.isnan() & actual.isnan())
    return failing


def _with_cast(failing: torch.Tensor, golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Add what is non-finite on one side only before the cast to the golden's dtype."""
    return failing if golden.dtype == actual.dtype else failing | non_finite(golden, actual)


def _non_finite_differs(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    differs = golden.isnan() != actual.isnan()
    for infinity in (math.inf, -math.inf):
        differs |= (golden == infinity) != (actual == infinity)
    return differs

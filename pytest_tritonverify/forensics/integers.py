"""Whole numbers: wrapped, one off, or rounded the wrong way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.contents import REQUIRED_SURPRISE, Content, held
from pytest_tritonverify.forensics.sampling import numbers, take

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_WIDTHS = (32, 16, 8)
_FEWEST = 3
_FEWEST_ONES = 5
_LARGEST = float(1 << 53)
_TRUNCATED_DIVISION = (
    "Division truncates towards zero where the golden rounds down: integer division in a kernel "
    "is C's, not Python's."
)
_TRUNCATED_CONVERSION = (
    "Values are truncated towards zero where the golden rounds to the nearest: a conversion to "
    "integers cuts off the fraction."
)


def find_wrap(_case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain integers that overflowed a narrower width."""
    pairs = _whole(survey)
    if pairs is None or pairs.count < _FEWEST:
        return None
    difference = pairs.actual - pairs.golden
    for width in _WIDTHS:
        if not held(difference % (1 << width) == 0):
            continue
        signed = held(_fits(pairs.actual, -(1 << width - 1), (1 << width - 1) - 1))
        unsigned = held(_fits(pairs.actual, 0, (1 << width) - 1))
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        if not (signed or unsigned) or not held(~_fits(pairs.golden, low, high)):
            return None
        name = f"{'int' if signed else 'uint'}{width}"
        everywhere = not survey.passing.count or held(_fits(survey.passing.golden, low, high))
        return Content(
            "integer_wrap",
            f"Integers wrapped around: they were computed or stored in {width} bits, which the "
            f"golden's values exceed.",
            f"they hold values wrapped to {width} bits",
            (
                f"all differences are multiples of 2**{width}",
                f"every failing golden lies outside the range of {name}, every value inside",
            ),
            everywhere=everywhere,
            confidence="clear" if everywhere else "likely",
            decisive=everywhere,
        )
    return None


def find_off_by_one(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain whole numbers that are one off, by the direction of rounding where it shows."""
    pairs = _whole(survey)
    if pairs is None or survey.golden.dtype == torch.bool or pairs.count < _FEWEST_ONES:
        return None
    difference = pairs.actual - pairs.golden
    if not held(difference.abs() == 1) or _narrow(pairs):
        return None
    up, down = int((difference == 1).sum()), int((difference == -1).sum())
    evidence = (
        f"differences of {pairs.count} sampled failing elements: {up} times +1, {down} times -1",
    )
    truncated = _truncated(case, survey, pairs, difference)
    if truncated is not None:
        cause, fact, sure = truncated
        return Content(
            "truncation",
            cause,
            "they are rounded the wrong way",
            (*evidence, fact),
            everywhere=True,
            confidence="clear" if sure else "likely",
            decisive=True,
        )
    return Content(
        "off_by_one",
        "Whole numbers are off by one: an index starts at the wrong end, a bound is inclusive "
        "where it should not be, or a result is rounded the wrong way.",
        "they are one off",
        evidence,
        everywhere=not survey.passing.count,
        confidence="likely" if survey.passing.count else "clear",
    )


def _truncated(
    case: FailedOutput, survey: Survey, pairs: Pairs, difference: torch.Tensor
) -> tuple[str, str, bool] | None:
    """Say how rounding towards zero shows: the cause, the fact, and whether it is sure."""
    golden = pairs.golden
    rest = survey.passing.golden
    if held((difference == 1) & (golden < 0)):
        quotient = _quotient(case, survey)
        others = int((rest >= 0).sum())
        if quotient is None and others * int((golden < 0).sum()) < _FEWEST_ONES**2:
            return None
        fact = f"only negative values fail; none of {others} sampled others that are not negative"
        return _TRUNCATED_DIVISION, quotient or fact, True
    towards_zero = difference.sign() == -golden.sign()
    both = min(int((golden > 0).sum()), int((golden < 0).sum()))
    if not held(towards_zero) or both < _FEWEST or not rest.numel():
        return None
    fact = f"all sampled differences point towards zero, on both sides of it ({both} or more each)"
    return _TRUNCATED_CONVERSION, fact, both >= REQUIRED_SURPRISE


def _quotient(case: FailedOutput, survey: Survey) -> str | None:
    """Say which truncated quotient of inputs the output is, whose floor the golden is."""
    pairs = survey.failing
    inputs = [
        (f"input {position}", numbers(take(tensor, pairs.positions)))
        for position, tensor in enumerate(case.inputs)
        if tensor.numel() == survey.total and not tensor.is_complex() and tensor.dim()
    ]
    for left, dividend in inputs:
        for right, divisor in (*inputs, *_constants(dividend, pairs)):
            if left == right or bool((divisor == 0).any()):
                continue
            truncated = torch.div(dividend, divisor, rounding_mode="trunc")
            floor = torch.div(dividend, divisor, rounding_mode="floor")
            if held(truncated == pairs.actual) and held(floor == pairs.golden):
                return f"the values are {left} / {right}, truncated; the golden is rounded down"
    return None


def _constants(dividend: torch.Tensor, pairs: Pairs) -> list[tuple[str, torch.Tensor]]:
    """Return the constant that a dividend may have been divided by."""
    nonzero = pairs.golden != 0
    if not bool(nonzero.any()):
        return []
    ratio = (dividend[nonzero].double() / pairs.golden[nonzero].double()).abs()
    # Rounding down makes the quotient greater in magnitude, so the ratio smaller.
    largest = math.ceil(float(ratio.max())) if bool(torch.isfinite(ratio).all()) else 0
    return [
        (str(value), torch.full_like(dividend, value))
        for value in (largest, largest + 1)
        if 1 < value < _LARGEST
    ]


def _whole(survey: Survey) -> Pairs | None:
    """Return failing elements as integers, or None where they are not all whole numbers."""
    pairs = survey.failing
    if survey.is_integer:
        return pairs
    for values in (pairs.golden, pairs.actual):
        if not held(torch.isfinite(values) & (values == values.trunc())):
            return None
    whole = torch.isfinite(pairs.golden) & torch.isfinite(pairs.actual)
    whole &= (pairs.golden == pairs.golden.trunc()) & (pairs.actual == pairs.actual.trunc())
    whole &= (pairs.golden.abs() < _LARGEST) & (pairs.actual.abs() < _LARGEST)
    if not held(whole):
        return None
    pairs = pairs.where(whole)
    return type(pairs)(pairs.positions, pairs.golden.long(), pairs.actual.long())


def _fits(values: torch.Tensor, low: int, high: int) -> torch.Tensor:
    return (values >= low) & (values <= high)


def _narrow(pairs: Pairs) -> bool:
    """Tell whether the values are so few that differences of one come about by chance."""
    low, high = torch.aminmax(pairs.golden)
    values = int(high) - int(low) + 1
    # Two of the other values are next to each one.
    return values <= 3 or (2 / (values - 1)) ** pairs.count > REQUIRED_SURPRISE**-5  # noqa: PLR2004

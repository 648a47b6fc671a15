"""Infinity, and NaN made from it, where the golden is finite."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.absent import untouched
from pytest_tritonverify.forensics.contents import Content, held, number
from pytest_tritonverify.forensics.sampling import numbers, take

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Survey

_HALF_MAX = 65504.0
_FEW = 512
_LARGEST_ROW = 1 << 14
_AGREEING = 0.98
_FEWEST = 3
_ZERO = (
    "A division by zero, or a logarithm of it: what keeps the golden's denominator from zero is "
    "missing."
)
# exp() of more than these overflows float16 and float32.
_EXP_LIMITS = ((88.72, "float32"), (11.08, "float16"))


def find_overflow(case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain infinities, and NaN from them, by magnitudes that a number format cannot hold."""
    pairs = survey.failing
    if survey.is_integer or not survey.actual.dtype.is_floating_point:
        return None
    infinite = pairs.actual.isinf() & torch.isfinite(pairs.golden)
    bad = infinite | (pairs.actual.isnan() & ~pairs.golden.isnan())
    some = bool(infinite.any())
    # NaN with the bits of fresh memory come from no infinity.
    if not held(bad) or (not some and held(untouched(survey))):
        return None
    counted = f"{survey.count} elements are not finite, where the golden is"
    zero = _divided_by_zero(case, survey)
    if zero is not None:
        return replace(
            _content((counted, zero), certain=True), code="division_by_zero", cause=_ZERO
        )
    evidence = (_by_golden(survey, bad) if some else None) or _by_inputs(case, survey)
    if evidence is not None:
        return _content((counted, evidence), certain=True)
    if not held(infinite) or survey.count < _FEWEST or region.special:
        return None
    return _content((f"{counted}; all of them are infinite",), certain=False)


def _content(evidence: tuple[str, ...], *, certain: bool) -> Content:
    return Content(
        "overflow_to_infinity",
        "An overflow to infinity: a value on the way, or the result, is too large for the number "
        "format that it is held in.",
        "they hold infinities",
        evidence,
        everywhere=True,
        confidence="clear" if certain else "likely",
        decisive=certain,
    )


def _by_golden(survey: Survey, bad: torch.Tensor) -> str | None:
    """Say how the golden's magnitude divides infinite elements from the others."""
    failing = survey.failing.golden[bad].abs()
    passing = survey.passing.golden.abs()
    passing = passing[torch.isfinite(passing)]
    least = float(failing.min())
    wide = survey.actual.element_size() > 2  # noqa: PLR2004 - bytes of a half
    if wide and least >= _HALF_MAX and (not passing.numel() or float(passing.max()) <= least):
        return (
            f"each of their goldens exceeds {number(_HALF_MAX)}, the largest float16 "
            f"(the least is {number(least)})"
        )
    return _divided("the golden", failing, passing)


def _by_inputs(case: FailedOutput, survey: Survey) -> str | None:
    """Say how an input's magnitude divides the failing elements or rows from the others."""
    for number_of, tensor in enumerate(case.inputs):
        if tensor.numel() != survey.total or not tensor.is_floating_point():
            continue
        name = f"input {number_of}"
        failing = numbers(take(tensor, survey.failing.positions)).abs()
        passing = numbers(take(tensor, survey.passing.positions)).abs()
        found = _divided(name, failing, passing)
        if found is None and tensor.dim() > 1 and 1 < tensor.shape[-1] <= _LARGEST_ROW:
            failing, passing = _row_maxima(tensor, survey)
            found = _divided(f"the greatest value of a row of {name}", failing, passing)
            found = found or _beyond_exp(name, failing, passing, half=tensor.dtype == torch.float16)
        if found is not None:
            return found
    return None


def _row_maxima(tensor: torch.Tensor, survey: Survey) -> tuple[torch.Tensor, torch.Tensor]:
    row = tensor.shape[-1]
    bad = torch.unique(survey.failing.positions // row)
    good = torch.unique(survey.passing.positions // row)
    good = good[~torch.isin(good, bad)]
    most = max(1, min(_FEW, (1 << 20) // row))
    maxima = []
    for rows in (bad, good):
        places = rows[:most].unsqueeze(1) * row + torch.arange(row)
        maxima.append(numbers(take(tensor, places)).amax(dim=1))
    return maxima[0], maxima[1]


def _divided(name: str, failing: torch.Tensor, passing: torch.Tensor) -> str | None:
    """Say that all failing elements' magnitudes lie above all others', if that is no chance."""
    if failing.numel() == 0 or passing.numel() == 0:
        return None
    least, most = float(failing.min()), float(passing.max())
    total = failing.numel() + passing.numel()
    part = min(failing.numel(), passing.numel())
    # How many ways there are to choose as many of the elements.
    odds = math.lgamma(total + 1) - math.lgamma(part + 1) - math.lgamma(total - part + 1)
    required = 10.0
    if not least > most or odds < required:
        return None
    return (
        f"{name} divides them from the rest: it is {number(least)} or more where they fail, "
        f"{number(most)} or less elsewhere"
    )


def _beyond_exp(
    name: str, failing: torch.Tensor, passing: torch.Tensor, *, half: bool
) -> str | None:
    for limit, form in _EXP_LIMITS:
        if form == "float16" and not (passing.numel() or half):
            continue
        beyond = (failing > limit).double().mean() if failing.numel() else torch.tensor(0.0)
        within = (passing <= limit).double().mean() if passing.numel() else torch.tensor(1.0)
        if float(beyond) >= _AGREEING and float(within) >= _AGREEING:
            return f"exp() of {name} overflows {form} in their rows: values exceed {limit}"
    return None


def _divided_by_zero(case: FailedOutput, survey: Survey) -> str | None:
    """Say which input is zero just where elements are not finite."""
    for position, tensor in enumerate(case.inputs):
        if tensor.numel() != survey.total or tensor.is_complex() or survey.count < _FEWEST:
            continue
        zero = numbers(take(tensor, survey.failing.positions)) == 0
        if held(zero) and held(numbers(take(tensor, survey.passing.positions)) != 0):
            return f"input {position} is zero at each of them, and nowhere else"
    return None

"""Values that differ from the golden by one operation: a factor, an offset, a sign."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.forensics.contents import (
    REQUIRED_SHARE,
    REQUIRED_SURPRISE,
    Closeness,
    Content,
    held,
    number,
    scale,
    surprise,
)

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_FEWEST = 3
_NEGLIGIBLE = 2.0**-6
_EXACT_FLOATS = 1 << 53
_DIMENSION_PRECISION = 1e-3
_SAME_FACTOR = 1e-4
_NAMED = {
    math.log2(math.e): "log2(e): exp2 and exp, or log and log2, are mixed up",
    math.log(2): "ln(2): log2 and log, or exp and exp2, are mixed up",
    math.pi: "pi",
    math.sqrt(2): "sqrt(2)",
    math.sqrt(0.5): "1/sqrt(2)",
}


class _Change(NamedTuple):
    """An operation that takes the golden to the output.

    Attributes:
        parameter: The factor or offset.
        factor: What values are multiplied by.
        offset: What is added then.
        residual: The median of what is left to explain.
        everywhere: Whether the passing elements agree with it too.
    """

    parameter: float
    factor: float
    offset: float
    residual: float
    everywhere: bool

    def expected(self, golden: torch.Tensor) -> torch.Tensor:
        """Return what the operation makes of golden values."""
        if golden.is_floating_point():
            return golden * self.factor + self.offset
        return golden * int(self.factor) + int(self.offset)


def find_sign(_case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain values with the wrong sign, and booleans that are inverted."""
    if survey.golden.dtype == torch.bool:
        return _inverted(survey)
    if not survey.is_integer and held(survey.failing.golden.isinf()):
        return _infinite(survey)
    change = _fitted(survey, -1.0, -1.0, 0.0, parameters=0)
    if change is None:
        return None
    golden = survey.failing.golden
    negative = int((golden < 0).sum())
    evidence = [f"the failing elements are -1 times the golden ({survey.count} elements)"]
    if negative in {0, golden.numel()} and survey.passing.count:
        side = "negative" if negative else "positive"
        evidence.append(f"it happens where the golden is {side} only")
    return Content(
        "sign_flipped",
        "The sign is flipped: operands of a subtraction are exchanged, a negation is missing or "
        "too many, or an absolute value is.",
        "they hold the golden with its sign flipped",
        tuple(evidence),
        everywhere=change.everywhere,
        confidence="clear" if change.everywhere else "likely",
    )


def find_change(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain values by a constant factor or a constant offset, whichever fits better."""
    if survey.golden.dtype == torch.bool:
        return None
    factor, offset = _factor(survey), _offset(survey)
    scalar = None if factor or offset else _scalar_factor(case, survey)
    if scalar is not None:
        return scalar
    if factor and (offset is None or factor.residual <= offset.residual):
        return _multiplied(case, survey, factor)
    return _shifted(survey, offset) if offset else None


def _multiplied(case: FailedOutput, survey: Survey, change: _Change) -> Content:
    value = number(change.parameter)
    evidence = [f"the failing elements are {value} times the golden ({survey.count} elements)"]
    meaning = _meaning(case, change.parameter)
    if meaning:
        evidence.append(meaning)
    return Content(
        "constant_factor",
        f"Values are off by a constant factor, {value}: a scale is missing, applied twice or "
        f"wrong.",
        f"they hold {value} times the golden",
        tuple(evidence),
        everywhere=change.everywhere,
        confidence="clear" if change.everywhere else "likely",
    )


def _shifted(survey: Survey, change: _Change) -> Content:
    value = number(change.parameter)
    return Content(
        "constant_offset",
        f"Values are off by a constant offset, {value}: an added constant is missing, applied "
        f"twice or wrong.",
        f"they hold the golden plus {value}",
        (f"the failing elements are the golden plus {value} ({survey.count} elements)",),
        everywhere=change.everywhere,
        confidence="clear" if change.everywhere else "likely",
    )


def _factor(survey: Survey) -> _Change | None:
    pairs = _finite(survey.failing)
    golden, actual = pairs.golden.double(), pairs.actual.double()
    sizeable = golden.abs() > _NEGLIGIBLE * scale(survey)
    if int(sizeable.sum()) < _FEWEST:
        return None
    value = float((actual[sizeable] / golden[sizeable]).median())
    if survey.is_integer:
        value = float(round(value))
        greatest = float(golden.abs().max()) * max(abs(value), 1.0)
        if greatest >= _EXACT_FLOATS:
            return None
    if value in {0.0, 1.0} or not math.isfinite(value):
        return None
    return _fitted(survey, value, value, 0.0, parameters=1)


def _offset(survey: Survey) -> _Change | None:
    pairs = _finite(survey.failing)
    if pairs.count < _FEWEST:
        return None
    value = float((pairs.actual - pairs.golden).median())
    if value == 0 or not math.isfinite(value) or abs(value) >= _EXACT_FLOATS:
        return None
    return _fitted(survey, value, 1.0, value, parameters=1)


def _fitted(
    survey: Survey, parameter: float, factor: float, offset: float, *, parameters: int
) -> _Change | None:
    """Return an operation if it accounts for the failing elements, and not by chance."""
    change = _Change(parameter, factor, offset, 0.0, everywhere=False)
    pairs = _finite(survey.failing)
    if pairs.count < max(_FEWEST, REQUIRED_SHARE * survey.failing.count):
        return None
    closeness = Closeness.of(survey)
    expected = change.expected(pairs.golden)
    if not held(closeness.same(expected, pairs.actual, max(abs(factor), 1.0))):
        return None
    odds = surprise(expected, pairs, closeness, max(abs(factor), 1.0))
    if odds * (pairs.count - parameters) / pairs.count < REQUIRED_SURPRISE:
        return None
    rest = _finite(survey.passing)
    agrees = closeness.same(change.expected(rest.golden), rest.actual, max(abs(factor), 1.0))
    residual = float((pairs.actual - expected).double().abs().median())
    return change._replace(residual=residual, everywhere=not rest.count or held(agrees))


def _scalar_factor(case: FailedOutput, survey: Survey) -> Content | None:
    """Explain one or two numbers by a factor that is an extent of an input."""
    pairs = survey.failing
    if survey.is_integer or survey.total >= _FEWEST or not bool((pairs.golden != 0).all()):
        return None
    ratios = pairs.actual / pairs.golden
    value = float(ratios[0])
    same = (ratios - value).abs() <= _SAME_FACTOR * abs(value)
    if not math.isfinite(value) or value == 0 or not bool(same.all()):
        return None
    meaning = _meaning(case, value)
    if meaning is None:
        return None
    return Content(
        "constant_factor",
        f"Values are off by the factor {number(value)}: a scale is missing, applied twice or "
        f"wrong.",
        f"they hold {number(value)} times the golden",
        (meaning,),
        everywhere=True,
        confidence="likely",
    )


def _meaning(case: FailedOutput, value: float) -> str | None:
    """Say what a factor equals: an extent, its root, or a constant that conversions use."""
    for constant, name in _NAMED.items():
        if math.isclose(abs(value), constant, rel_tol=_DIMENSION_PRECISION):
            return f"the factor is close to {name}"
    larger = max(abs(value), 1 / abs(value))
    relation = "" if abs(value) > 1 else "1 over "
    for position, tensor in enumerate(case.inputs):
        sizes = [*((extent, f"axis {axis}") for axis, extent in enumerate(tensor.shape))]
        sizes.append((tensor.numel(), "all elements"))
        for extent, what in sizes:
            if extent > 1 and math.isclose(larger, extent, rel_tol=_DIMENSION_PRECISION):
                return (
                    f"the factor is close to {relation}{extent}, the size of {what} of input "
                    f"{position}: a sum stands for a mean or the other way round"
                )
            if extent > 3 and math.isclose(  # noqa: PLR2004 - roots of small sizes say nothing
                larger, math.sqrt(extent), rel_tol=_DIMENSION_PRECISION
            ):
                return (
                    f"the factor is close to {relation}the square root of {extent}, the size of "
                    f"{what} of input {position}"
                )
    return None


def _infinite(survey: Survey) -> Content | None:
    if not held(survey.failing.actual == -survey.failing.golden):
        return None
    return Content(
        "sign_flipped",
        "Infinities have the wrong sign: the sign of a zero that is divided by, or a negation, is "
        "lost.",
        "they hold infinities of the other sign",
        (f"{survey.count} infinities have the other sign",),
        everywhere=True,
        confidence="likely",
        decisive=True,
    )


def _inverted(survey: Survey) -> Content | None:
    if survey.count < survey.total or survey.total < 8:  # noqa: PLR2004 - fewer may be chance
        return None
    return Content(
        "sign_flipped",
        "Every boolean is inverted: a condition is negated.",
        "they hold the golden inverted",
        (f"all {survey.total} elements are inverted",),
        everywhere=True,
        confidence="likely",
    )


def _finite(pairs: Pairs) -> Pairs:
    if not pairs.golden.is_floating_point():
        return pairs
    return pairs.where(torch.isfinite(pairs.golden) & torch.isfinite(pairs.actual))

"""What failing elements hold: a finding about values, and how it is held against chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.dtypes import dtype_name
from pytest_tritonverify.accuracy.limits import eco_limits

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import Confidence
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

REQUIRED_SURPRISE = 10.0
"""Natural logarithm of the odds against chance that an explanation of values must reach."""

REQUIRED_SHARE = 0.98
"""Share of the elements that an explanation must account for."""

_DEFAULT_RTOL = 2.0**-16
_FLOOR = 2.0**-6
_POOL = 96


@dataclass(frozen=True)
class Content:
    """An explanation of the failing elements' values.

    Attributes:
        code: Machine word of the diagnosis where the place says nothing further.
        cause: The likely cause in one sentence.
        holds: What the elements hold, to end a sentence with: `they hold zeros`.
        evidence: Short facts with numbers.
        everywhere: Whether it accounts for the passing elements as well.
        unwritten: Whether it looks like memory that nothing was written to.
        confidence: How sure it is by itself.
        decisive: Whether it is a better explanation than the place is, whatever that is.
    """

    code: str
    cause: str
    holds: str
    evidence: tuple[str, ...] = ()
    everywhere: bool = False
    unwritten: bool = False
    confidence: Confidence = "clear"
    decisive: bool = False


@dataclass(frozen=True)
class Closeness:
    """When two values count as the same: equal integers, floats within a tolerance.

    Attributes:
        rtol: Relative tolerance; 0 for integers.
        atol: Absolute tolerance.
    """

    rtol: float
    atol: float

    @classmethod
    def of(cls, survey: Survey) -> Closeness:
        """Return what an output's format and typical magnitude call for.

        The relative part is that of the open ecosystem accuracy standard's table.
        """
        if survey.is_integer:
            return cls(0.0, 0.0)
        formats = (survey.golden.dtype, survey.actual.dtype)
        rows = [eco_limits(dtype_name(dtype)) for dtype in formats]
        rtol = max((row.rtol for row in rows if row is not None), default=_DEFAULT_RTOL)
        return cls(rtol, rtol * _FLOOR * scale(survey))

    def same(self, expected: torch.Tensor, got: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        """Compare element by element.

        Args:
            expected: float64 or int64.
            got: The same.
            factor: What magnitudes are multiplied by against the golden's.
        """
        if not expected.is_floating_point():
            return expected == got
        allowed = expected.abs() * self.rtol + self.atol * abs(factor)
        return (got - expected).abs() <= allowed


def scale(survey: Survey) -> float:
    """Return the typical magnitude of the golden's finite values, 0 where there are none."""
    values = torch.cat((survey.failing.golden, survey.passing.golden)).double().abs()
    values = values[torch.isfinite(values)]
    return float(values.median()) if values.numel() else 0.0


def held(hits: torch.Tensor) -> bool:
    """Tell whether enough elements agree with an explanation; none do not."""
    return hits.numel() > 0 and int(hits.sum()) >= REQUIRED_SHARE * hits.numel()


def surprise(
    expected: torch.Tensor, pairs: Pairs, closeness: Closeness, factor: float = 1.0
) -> float:
    """Return how unlikely it is that failing elements are as expected by chance.

    What an element would hold by chance is taken from the other elements, of both sides.

    Args:
        expected: What an explanation expects of each element, shape `[m]`.
        pairs: The elements, all of which are as expected.
        closeness: When values count as the same.
        factor: See `Closeness.same`.

    Returns:
        The natural logarithm of the odds against chance.
    """
    count = min(pairs.count, _POOL)
    chosen = torch.linspace(0, pairs.count - 1, count).long()
    rows = expected[chosen].unsqueeze(1)
    hits = 0
    for side in (pairs.actual, pairs.golden):
        hits += int(closeness.same(rows, side[chosen].unsqueeze(0), factor).sum())
        hits -= int(closeness.same(expected[chosen], side[chosen], factor).sum())
    rate = (hits + 1) / (2 * count * (count - 1) + 2)
    return pairs.count * -math.log(rate)


def rarity(value: float, survey: Survey) -> float:
    """Return the logarithm of the odds against one element holding a value by chance.

    Taken from how often the golden holds it.
    """
    golden = torch.cat((survey.failing.golden, survey.passing.golden))
    rate = (int((golden == value).sum()) + 1) / (golden.numel() + 2)
    return -math.log(rate)


def number(value: float) -> str:
    """Return a number for people: six digits, integers in full."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:  # noqa: PLR2004 - exact
        return str(int(value))
    return f"{value:.6g}"

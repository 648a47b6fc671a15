"""How often something happens, by how often it did in some runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ERROR = 0.05
_STEPS = 60  # halvings of [0, 1], to the last bit of a double


@dataclass(frozen=True)
class Rate:
    """A share of independent runs.

    Attributes:
        count: in how many of them it happened.
        of: how many there were; at least one.
    """

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The exact two-sided 95 % confidence interval of the rate.

        It covers the true rate in at least 95 % of all cases, however few runs there are, and
        whatever the rate is. Source: C. J. Clopper and E. S. Pearson, "The use of confidence or
        fiducial limits illustrated in the case of the binomial", Biometrika 26 (1934), 404-413.
        """
        low, high = 0.0, 1.0
        if self.count:
            low = _where(lambda p: _at_most(self.count - 1, self.of, p), 1 - _ERROR / 2)
        if self.count < self.of:
            high = _where(lambda p: _at_most(self.count, self.of, p), _ERROR / 2)
        return low, high

    def to_json(self, name: str) -> dict[str, Any]:
        """Return the rate and its interval under names for the result file."""
        return {f"{name}_rate": self.value, f"{name}_rate_ci95": list(self.interval)}

    def __str__(self) -> str:
        """Return the figures, as in "3 of 50 (6.0 %, 95 % confidence interval ...)"."""
        low, high = (f"{100 * end:.1f} %" for end in self.interval)
        share = f"{100 * self.value:.1f} %"
        return f"{self.count} of {self.of} ({share}, 95 % confidence interval {low} to {high})"


def _at_most(count: int, of: int, rate: float) -> float:
    """Return the probability of at most `count` among `of` runs."""
    if rate <= 0:
        return 1.0
    if rate >= 1:
        return float(count >= of)
    # By logarithms: the factors leave the range of a double long before their product does.
    hit, miss = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(of + 1)
    terms = (
        whole - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * hit + (of - k) * miss
        for k in range(count + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))


def _where(falling: Callable[[float], float], level: float) -> float:
    """Return where a falling function of [0, 1] meets a level."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if falling(middle) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2

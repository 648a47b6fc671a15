"""Statistics of timed forwards, in plain Python.

All times are in milliseconds. Every function takes samples that `usable` accepts.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIDENCE = 0.95

RESAMPLES = 1000
"""Resamples behind an interval: its ends then stand on the 25th smallest and largest value."""

MIN_SAMPLES = 10
"""Fewer samples of either side give no interval: a percentile bootstrap is too narrow there."""

MAX_DRAWS = 200
"""Draws of one resample. More samples than that would take long in plain Python; the resamples
are then drawn from fewer and moved towards the mean accordingly."""

MAX_STORED = 200
"""Samples of one side that a file holds as they are; more are stored as that many quantiles."""

NOISE_LIMIT = 0.10
"""Relative spread from which on a measurement is called noisy. The interquartile range over the
median is what `torch.utils.benchmark` warns about at the same value, and the standard deviation
over the mean is what `pyperf` warns about."""

LONGEST_MS = 1e12
"""Thirty years. What claims to be longer is no time, and its squares need not fit a float."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Timed forwards of one side in a few figures.

    Attributes:
        count: how many there are.
        mean_ms, median_ms: milliseconds.
        quantiles_ms: by `QUANTILES`.
        cv: coefficient of variation, standard deviation (n - 1) over the mean; None for fewer than
            two samples or a mean of 0.
        iqr: interquartile range over the median; None where that is 0.
    """

    count: int
    mean_ms: float
    median_ms: float
    quantiles_ms: Mapping[float, float]
    cv: float | None
    iqr: float | None

    @property
    def noisy(self) -> bool:
        """Whether the spread is so large that the mean says little."""
        return self.spread > NOISE_LIMIT

    @property
    def spread(self) -> float:
        """The larger one of the two relative spreads; 0 where there is none."""
        return max(self.cv or 0.0, self.iqr or 0.0)


def usable(samples: Sequence[float]) -> bool:
    """Say whether there are samples, and all of them are times."""
    return bool(samples) and all(0 <= ms <= LONGEST_MS for ms in samples)


def summarise(samples: Sequence[float]) -> Summary:
    """Sum up samples.

    Args:
        samples: milliseconds, at least one.
    """
    ordered = sorted(samples)
    mean = statistics.fmean(ordered)
    points = {p: quantile(ordered, p) for p in QUANTILES}
    median = points[0.5]
    deviation = statistics.stdev(ordered, mean) if len(ordered) > 1 else None
    return Summary(
        count=len(ordered),
        mean_ms=mean,
        median_ms=median,
        quantiles_ms=points,
        cv=None if deviation is None or mean == 0 else deviation / mean,
        iqr=None if median == 0 else (points[0.75] - points[0.25]) / median,
    )


def quantile(ordered: Sequence[float], p: float) -> float:
    """Return a quantile, linear between neighbours: type 7 of Hyndman and Fan (1996), as numpy.

    Args:
        ordered: ascending, at least one.
        p: from 0 to 1.
    """
    place = p * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    rest = place - low
    # In this form equal neighbours give themselves, and the result stays between them.
    if rest == 0 or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] * (1 - rest) + ordered[high] * rest


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Samples as a file holds them.

    Attributes:
        count: how many there were.
        values_ms: the samples in the order in which they ran, or where there were more than
            `MAX_STORED` the means of so many equal parts of their distribution, ascending. The
            mean of these is the mean of the samples.
    """

    count: int
    values_ms: tuple[float, ...]

    @classmethod
    def of(cls, samples: Sequence[float]) -> Stored:
        """Take samples in."""
        if len(samples) <= MAX_STORED:
            return cls(count=len(samples), values_ms=tuple(samples))
        return cls(count=len(samples), values_ms=_parts(sorted(samples), MAX_STORED))

    def to_json(self) -> dict[str, Any]:
        """Return the samples as builtins, with nine digits each: finer than any clock."""
        return {
            "count": self.count,
            "compressed": self.count > len(self.values_ms),
            "values_ms": [digits(ms) for ms in self.values_ms],
        }


def digits(value: float, count: int = 9) -> float:
    """Return a number with so many significant digits; small ones never become 0."""
    return float(f"{value:.{count}g}")


def _parts(ordered: Sequence[float], count: int) -> tuple[float, ...]:
    """Return the means of equal parts of a distribution.

    A part's ends may lie within a sample, which then counts in proportion to what is inside.
    """
    size = len(ordered) / count
    sums = [0.0, *_running(ordered)]

    def up_to(place: float) -> float:
        whole = min(math.floor(place), len(ordered))
        rest = place - whole
        return sums[whole] + (rest * ordered[whole] if whole < len(ordered) else 0.0)

    return tuple((up_to((k + 1) * size) - up_to(k * size)) / size for k in range(count))


def _running(values: Sequence[float]) -> list[float]:
    sums, total = [], 0.0
    for value in values:
        total += value
        sums.append(total)
    return sums


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval; both ends belong to it."""

    low: float
    high: float

    def to_json(self) -> list[float]:
        """Return the interval as builtins."""
        return [self.low, self.high]


def resampled_ratios(over: Stored, under: Stored, seed: int) -> tuple[float, ...] | None:
    """Return ratios of means of resamples, `over` by `under`; None where there can be none.

    The ratio is that of the means, since these are the latencies that the speed-up is made of.
    Each side is resampled on its own: they ran one after the other, in processes of their own.
    What varies from one process to the next is not in it. See T. Kalibera and R. Jones,
    "Quantifying Performance Changes with Effect Size Confidence Intervals" (2012), for ratios of
    mean times and their intervals, and B. Efron, "Bootstrap Methods: Another Look at the
    Jackknife" (1979), for the resampling.

    Args:
        over: samples of one side.
        under: samples of the other side.
        seed: the same one with the same samples gives the same ratios. Cases that are to be
            combined need different ones: with the same they would vary together.
    """
    if min(over.count, under.count) < MIN_SAMPLES:
        return None
    if not (usable(over.values_ms) and usable(under.values_ms)):
        return None
    generator = random.Random(seed)  # noqa: S311 - nothing secret
    above = _resampled_means(over, generator)
    below = _resampled_means(under, generator)
    if min(below) <= 0:
        return None
    return tuple(a / b for a, b in zip(above, below, strict=True))


def _resampled_means(stored: Stored, generator: random.Random) -> list[float]:
    values, choices = stored.values_ms, generator.choices
    if min(values) == max(values):
        return [values[0]] * RESAMPLES
    draws = min(stored.count, MAX_DRAWS)
    mean = statistics.fmean(values)
    # A mean of n draws deviates by 1 / sqrt(n).
    narrower = math.sqrt(draws / stored.count)
    means = (sum(choices(values, k=draws)) / draws for _ in range(RESAMPLES))
    return [mean + narrower * (drawn - mean) for drawn in means]


def interval(resampled: Sequence[float]) -> Interval:
    """Return the percentile interval of resampled values, by `CONFIDENCE`."""
    ordered = sorted(resampled)
    tail = (1 - CONFIDENCE) / 2
    return Interval(low=quantile(ordered, tail), high=quantile(ordered, 1 - tail))


def combined(cases: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return resamples of the geometric mean over cases, from the resampled ratios of each.

    Args:
        cases: equally many positive ratios each.
    """
    logs = [[math.log(ratio) for ratio in case] for case in cases]
    return tuple(math.exp(statistics.fmean(column)) for column in zip(*logs, strict=True))

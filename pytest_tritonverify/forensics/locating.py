"""Find the form of the place where failing elements lie.

A form is accepted where it explains the positions better than chance. The measure is the logarithm
of how much rarer it is that as many elements, drawn at random, all fall into the form than into
the output, less the logarithm of the number of forms that were looked at.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.forensics.parts import (
    LARGEST_COUNTED,
    Box,
    Failures,
    Part,
    Period,
    Slices,
    Span,
    hull,
    region,
)
from pytest_tritonverify.forensics.region import Region, borders_text, share
from pytest_tritonverify.forensics.sampling import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_tritonverify.forensics.layout import Layout, View

    Fit = Callable[[torch.Tensor], Part]
    Refine = Callable[[View, int, int], tuple[int, int]]

REQUIRED_SURPRISE = 8.0
"""Natural logarithm of the odds against chance that a form must reach."""

_FEWEST = 3
_SCREENED = 1 << 13
_SCREENED_PERIODS = 1 << 11
_TRIED = 6
_FEWEST_PERIODS = 3
_SMALL_PERIODS = 64
_LARGEST_PERIOD = 1 << 17
_NEARLY_ALL = 0.98
_FULL = 0.9
_MERGED_COST = 2.0
_WIDEST_BORDER = 4


class _Form(NamedTuple):
    """A way to fit a part around positions.

    Attributes:
        score: How much better than chance it explains a sample of them.
        cost: Logarithm of the number of ways that were tried.
        fit: Returns the smallest part that holds positions.
    """

    score: float
    cost: float
    fit: Fit


def locate(
    positions: torch.Tensor,
    layout: Layout,
    *,
    count: int,
    blocks: Sequence[int] = (),
    refine: Refine | None = None,
) -> Region:
    """Return the smallest form that holds all positions, or `scattered`.

    Args:
        positions: Flat row-major positions of failing elements, ascending, int64; all or a sample.
        layout: The output's shape.
        count: How many elements fail.
        blocks: Block sizes that the kernels were launched with.
        refine: Widens an interval that a sample gave to the exact one; None where all are known.
    """
    total = math.prod(layout.shape)
    if count == 0:
        return Region("none", 0, total, "no element fails")
    if count == total:
        return Region("all", count, total, f"all {total} elements" if total > 1 else "the element")
    if count == 1:
        place = int(positions[0])
        text = f"one element of {total}, at {layout.coordinates(place)}"
        return Region("one_element", 1, total, text, start=place, stop=place + 1)
    failures = Failures(positions, count, layout)
    found = _Finder(failures, tuple(blocks), refine).best() or _borders(failures)
    if found is not None:
        return found
    everywhere = count >= _NEARLY_ALL * total
    words = "everywhere" if everywhere else "in no order that was recognised"
    text = f"{count} of {total} elements ({share(count, total)}), {words}"
    return Region("all" if everywhere else "scattered", count, total, text)


class _Finder:
    """Looks at positions in every way that it knows."""

    def __init__(self, failures: Failures, blocks: tuple[int, ...], refine: Refine | None) -> None:
        self._failures = failures
        self._few = failures.few(_SCREENED)
        self._blocks = blocks
        self._refine = refine
        self._views = failures.layout.views()

    def best(self) -> Region | None:
        """Return the best form that stands up to a look at all positions."""
        if self._failures.positions.numel() < _FEWEST:
            return self._pair()
        forms = [form for view in self._views for form in self._forms(view)]
        forms.append(self._form(self._box, 0.0))
        forms = [form for form in forms if form.score >= REQUIRED_SURPRISE]
        forms.sort(key=lambda form: -form.score)
        exact = []
        for form in forms[:_TRIED]:
            part = form.fit(self._failures.positions)
            score = _gain(self._failures, part.share) - part.freedom - form.cost
            if score >= REQUIRED_SURPRISE:
                exact.append((score, part))
        exact.sort(key=lambda scored: -scored[0])
        for _, part in exact:
            if part.even(self._failures):
                return part.region(self._failures)
        return None

    def _pair(self) -> Region | None:
        """Two elements have a form only at the end of a large output, side by side."""
        first, second = self._failures.positions.tolist()
        view = self._views[-1]
        if second - first != 1 or second != view.size - 1:
            return None
        box = Box((Span(view, first, second + 1),))
        enough = _gain(self._failures, box.share) - box.freedom >= REQUIRED_SURPRISE
        return box.region(self._failures) if enough else None

    def _form(self, fit: Fit, cost: float) -> _Form:
        part = fit(self._few.positions)
        return _Form(_gain(self._few, part.share) - part.freedom - cost, cost, fit)

    def _forms(self, view: View) -> Iterator[_Form]:
        # A form over fewer axes is the simpler one; the flat output is simple too.
        cost = math.log(len(self._views))
        if not view.whole:
            cost += _MERGED_COST * (view.axes[1] - view.axes[0])
        yield self._form(lambda positions: Box((self._span(view, positions),)), cost)
        if view.single and view.size <= LARGEST_COUNTED:
            yield self._form(lambda positions: _slices(view, positions), cost)
        for period, periods in self._periods(view):
            yield self._form(partial(_period, view, period), cost + math.log(periods))

    def _span(self, view: View, positions: torch.Tensor) -> Span:
        low, high = hull(view.index(positions))
        exact = positions is self._failures.positions and self._refine is not None
        if exact and self._refine is not None:
            low, high = self._refine(view, low, high)
        return Span(view, low, high)

    def _box(self, positions: torch.Tensor) -> Part:
        axes = self._failures.layout.axes()
        return Box(tuple(self._span(view, positions) for view in axes))

    def _periods(self, view: View) -> Iterator[tuple[int, int]]:
        """Yield the most promising period, and how many were compared."""
        index = view.index(self._few.positions)
        periods = self._candidate_periods(view, index)
        if not periods:
            return
        few = index[spread(index.numel(), _SCREENED_PERIODS)]
        lengths = torch.tensor(periods)
        residues = few.unsqueeze(0) % lengths.unsqueeze(1)
        low, high = residues.amin(dim=1), residues.amax(dim=1) + 1
        shares = (high - low) / lengths
        # Multiples of a period have its share: the first one is the shortest.
        best = int(torch.nonzero(shares == shares.min())[0])
        if float(shares[best]) < 1:
            yield periods[best], len(periods)

    def _candidate_periods(self, view: View, index: torch.Tensor) -> list[int]:
        most = min(view.size // _FEWEST_PERIODS, _LARGEST_PERIOD)
        periods = set(range(2, _SMALL_PERIODS + 1))
        periods |= {1 << power for power in range(1, _LARGEST_PERIOD.bit_length())}
        periods |= {block * times for block in self._blocks for times in (1, 2)}
        # A sample drawn from all over hides the steps: neighbours are looked at where they are
        # known.
        positions = self._failures.positions
        near = positions[:_SCREENED_PERIODS] if view.whole else torch.unique(index)
        starts = torch.nonzero(near.diff() > 1).flatten() + 1
        if starts.numel() > 1:
            periods.add(int(near[starts].diff().mode().values))
        return sorted(period for period in periods if 1 < period <= most)


def _gain(failures: Failures, share_inside: float) -> float:
    """Return how much rarer a choice from all elements is than one from a part of them."""
    drawn = failures.positions.numel()
    # A sample is taken for an output of its own, as densely filled as the real one.
    total = failures.total * failures.density
    inside = max(float(drawn), total * share_inside)
    return _choices(total, drawn) - _choices(inside, drawn)


def _choices(total: float, part: float) -> float:
    """Return the logarithm of the number of ways to choose a part."""
    return math.lgamma(total + 1) - math.lgamma(part + 1) - math.lgamma(total - part + 1)


def _slices(view: View, positions: torch.Tensor) -> Slices:
    counts = torch.bincount(view.index(positions), minlength=view.size)
    return Slices(view, tuple(torch.nonzero(counts).flatten().tolist()))


def _period(view: View, period: int, positions: torch.Tensor) -> Period:
    return Period(view, period, *hull(view.index(positions) % period))


def _borders(failures: Failures) -> Region | None:
    """Return first and last lines that hold all failing elements, if they do."""
    positions = failures.positions
    borders: list[tuple[int, int, int]] = []
    outside = torch.ones_like(positions, dtype=torch.bool)
    inner = 1.0
    for view in failures.layout.axes():
        if view.size > LARGEST_COUNTED:
            continue
        index = view.index(positions)
        counts = torch.bincount(index, minlength=view.size)
        full = counts >= _FULL * failures.density * (failures.total // view.size)
        first, last = _leading(full), _leading(full.flip(0))
        if not 0 < first + last < view.size:
            continue
        borders.append((view.axes[0], first, last))
        outside &= (index >= first) & (index < view.size - last)
        inner *= (view.size - first - last) / view.size
    if not borders or len(failures.layout.axes()) == 1 or bool(outside.any()):
        return None
    # Tails may be wide; a border is not.
    widest = max(max(first, last) for _, first, last in borders)
    if widest > _WIDEST_BORDER and any(first for _, first, _ in borders):
        return None
    cost = sum(2 * math.log(failures.layout.shape[axis]) for axis, _, _ in borders)
    if _gain(failures, 1 - inner) - cost < REQUIRED_SURPRISE:
        return None
    found = tuple(sorted(borders))
    return region(failures, "borders", borders_text(failures.layout, found), borders=found)


def _leading(mask: torch.Tensor) -> int:
    """Return how many leading elements are true."""
    misses = torch.nonzero(~mask).flatten()
    return int(misses[0]) if misses.numel() else mask.numel()

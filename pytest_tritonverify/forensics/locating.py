"""Find the form of the place where failing elements lie.

A form is accepted where it explains the positions better than chance. The measure is the logarithm
of how much rarer it is that elements drawn at random from the whole output all fall into the form
than into the output, less the logarithm of the number of forms that were looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .layout import Layout, View
from .region import (
    Region,
    borders_text,
    interval_text,
    periodic_text,
    share,
    slices_text,
)
from .sampling import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

REQUIRED_SURPRISE = 8.0
"""Natural logarithm of the odds against chance that a form must reach."""

_FEWEST = 3
_SCREENED = 1 << 13
_SCREENED_PERIODS = 1 << 11
_TRIED = 6
_FEWEST_PERIODS = 3
_SMALL_PERIODS = 64
_LARGEST_PERIOD = 1 << 17
_LARGEST_SLICED = 1 << 20
_NEARLY_ALL = 0.98
_RUNS_LOW = 0.05
_COUNTED = 60
_SPARSEST = 0.15
_FULL = 0.9
_GAP_SLACK = 9.0
_STEADY = 1 << 15


@dataclass(frozen=True)
class _Form:
    """A form that fits a sample of the positions, and how well; see `Region`."""

    score: float
    kind: str
    view: View
    period: int = 0


def locate(
    positions: torch.Tensor,
    layout: Layout,
    *,
    count: int,
    blocks: Sequence[int] = (),
    refine: Callable[[View, int, int], tuple[int, int]] | None = None,
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
        where = layout.coordinates(int(positions[0]))
        return Region("one_element", 1, total, f"one element of {total}, at {where}")
    finder = _Finder(positions, layout, count, total, tuple(blocks), refine)
    region = finder.best() or finder.borders()
    if region is not None:
        return region
    kind = "all" if count >= _NEARLY_ALL * total else "scattered"
    words = "everywhere" if kind == "all" else "in no order that was recognised"
    return Region(
        kind, count, total, f"{count} of {total} elements ({share(count, total)}), {words}"
    )


class _Finder:
    def __init__(
        self,
        positions: torch.Tensor,
        layout: Layout,
        count: int,
        total: int,
        blocks: tuple[int, ...],
        refine: Callable[[View, int, int], tuple[int, int]] | None,
    ) -> None:
        self._positions = positions
        self._few = positions[spread(positions.numel(), _SCREENED)]
        self._layout = layout
        self._count = count
        self._total = total
        self._blocks = blocks
        self._refine = refine
        self._views = layout.views()

    def best(self) -> Region | None:
        """Return the best form that stands up to a look at all positions."""
        if self._positions.numel() < _FEWEST:
            return self._pair()
        forms = [form for view in self._views for form in self._forms(view)]
        forms.extend(self._box())
        forms = [form for form in forms if form.score >= REQUIRED_SURPRISE]
        forms.sort(key=lambda form: -form.score)
        for form in forms[:_TRIED]:
            region = self._confirmed(form)
            if region is not None:
                return region
        return None

    def _pair(self) -> Region | None:
        """Two elements have a form only at an end of a large output, side by side."""
        first, second = self._positions.tolist()
        if second - first != 1 or second != self._total - 1:
            return None
        view = self._views[-1]
        if 2 * math.log(self._total / 2) - math.log(self._total) < REQUIRED_SURPRISE:
            return None
        return self._interval(view, first, second + 1)

    def _forms(self, view: View) -> Iterable[_Form]:
        index = view.index(self._few)
        # A form over fewer axes is the simpler one; the flat output is simple too.
        cost = math.log(len(self._views))
        if not view.whole:
            cost += view.axes[1] - view.axes[0]
        low, high = _hull(index)
        if high - low < view.size:
            score = self._gain((high - low) / view.size) - _freedom(low, high, view.size)
            yield _Form(score - cost, "interval", view)
            yield from self._slices(view, index, cost)
        yield from self._periods(view, index, cost)

    def _gain(self, share_inside: float) -> float:
        """Return how much rarer a choice from all elements is than one from a part of them."""
        inside = max(self._count, round(self._total * share_inside))
        return _choices(self._total, self._count) - _choices(inside, self._count)

    def _slices(self, view: View, index: torch.Tensor, cost: float) -> Iterable[_Form]:
        if view.size > _LARGEST_SLICED:
            return
        used = int(torch.count_nonzero(torch.bincount(index, minlength=view.size)))
        if 1 < used < view.size:
            choices = used * (1 + math.log(view.size / used)) + 2
            yield _Form(self._gain(used / view.size) - choices - cost, "slices", view)

    def _periods(self, view: View, index: torch.Tensor, cost: float) -> Iterable[_Form]:
        periods = self._candidate_periods(view, index)
        if not periods:
            return
        few = index[spread(index.numel(), _SCREENED_PERIODS)]
        residues = few.unsqueeze(0) % torch.tensor(periods).unsqueeze(1)
        lows, highs = residues.amin(dim=1).tolist(), (residues.amax(dim=1) + 1).tolist()
        for period, low, high in zip(periods, lows, highs, strict=True):
            if high - low < period:
                score = self._gain((high - low) / period) - _freedom(low, high, period)
                yield _Form(score - cost - math.log(len(periods)), "periodic", view, period)

    def _candidate_periods(self, view: View, index: torch.Tensor) -> list[int]:
        most = min(view.size // _FEWEST_PERIODS, _LARGEST_PERIOD)
        periods = set(range(2, _SMALL_PERIODS + 1))
        periods |= {1 << power for power in range(1, _LARGEST_PERIOD.bit_length())}
        periods |= {block * times for block in self._blocks for times in (1, 2)}
        # A sample drawn from all over hides the steps: neighbours are looked at where they are
        # known.
        near = self._positions[:_SCREENED_PERIODS] if view.whole else torch.unique(index)
        steps = near.diff()
        starts = torch.nonzero(steps > 1).flatten() + 1
        if starts.numel() > 1:
            periods.add(int(near[starts].diff().mode().values))
        return sorted(period for period in periods if 1 < period <= most)

    def _box(self) -> Iterable[_Form]:
        """Bounds along more than one axis."""
        cost, inside, restricted = 2.0, 1.0, 0
        axes = self._layout.axes()
        for view in axes:
            low, high = _hull(view.index(self._few))
            cost += 1.5
            if high - low < view.size:
                restricted += 1
                inside *= (high - low) / view.size
                cost += _freedom(low, high, view.size)
        if restricted > 1:
            yield _Form(self._gain(inside) - cost, "box", axes[0])

    def _confirmed(self, form: _Form) -> Region | None:
        if form.kind == "box":
            return self._confirmed_box()
        index = form.view.index(self._positions)
        if form.kind == "interval":
            low, high = _hull(index)
            if self._refine is not None:
                low, high = self._refine(form.view, low, high)
            if not self._filled({form.view.axes: (low, high)}):
                return None
            return self._interval(form.view, low, high)
        if form.kind == "slices":
            return self._confirmed_slices(form.view, index)
        return self._confirmed_period(form, index)

    def _interval(self, view: View, low: int, high: int) -> Region:
        text = interval_text(self._layout, view, low, high)
        return self._region("interval", text, view=view, start=low, stop=high)

    def _confirmed_box(self) -> Region | None:
        bounds = {}
        for view in self._layout.axes():
            low, high = _hull(view.index(self._positions))
            if self._refine is not None:
                low, high = self._refine(view, low, high)
            bounds[view.axes] = (low, high)
        if not self._filled(bounds):
            return None
        whole = tuple(
            bounds.get((axis, axis), (0, extent)) for axis, extent in enumerate(self._layout.shape)
        )
        text = ", ".join(
            interval_text(self._layout, view, *bounds[view.axes])
            for view in self._layout.axes()
            if bounds[view.axes] != (0, view.size)
        )
        return self._region("box", text, bounds=whole)

    def _confirmed_slices(self, view: View, index: torch.Tensor) -> Region | None:
        counts = torch.bincount(index, minlength=view.size)
        used = torch.nonzero(counts).flatten()
        if not self._even(counts[used], self._total // view.size):
            return None
        indices = tuple(used.tolist())
        text = slices_text(self._layout, view, indices)
        return self._region("slices", text, view=view, indices=indices)

    def _confirmed_period(self, form: _Form, index: torch.Tensor) -> Region | None:
        view, period = form.view, form.period
        low, high = _hull(index % period)
        width = high - low
        counts = torch.bincount(index % period - low, minlength=width)
        repeats = view.size // period
        outside = self._total // view.size
        if width == period or not self._even(counts, repeats * outside):
            return None
        turns = index // period
        first, last = _hull(turns)
        if last - first < repeats - 1 or not self._steady(turns, repeats):
            return None
        text = periodic_text(self._layout, view, period, low, high)
        return self._region("periodic", text, view=view, start=low, stop=high, period=period)

    def _region(self, kind: str, text: str, **facts: object) -> Region:
        words = f"{text}; {self._count} of {self._total} elements fail"
        return Region(kind, self._count, self._total, words, **facts)  # type: ignore[arg-type]

    def _even(self, counts: torch.Tensor, capacity: int) -> bool:
        """Tell whether indices hold about equally many failing elements, and not too few."""
        share_kept = self._positions.numel() / self._count
        expected = float(counts.double().mean())
        if expected < _SPARSEST * capacity * share_kept:
            return False
        return expected < _COUNTED or int(counts.min()) >= _RUNS_LOW * expected

    def _steady(self, index: torch.Tensor, size: int) -> bool:
        """Tell whether no stretch of an axis is left out that chance would not leave out."""
        ordered = torch.unique(index[spread(index.numel(), _STEADY)])
        steps = ordered.diff()
        if not steps.numel():
            return True
        drawn = min(index.numel(), _STEADY)
        gap = (int(steps.max()) - 1) * drawn / size
        return gap <= math.log(drawn) + _GAP_SLACK

    def _filled(self, bounds: dict[tuple[int, int], tuple[int, int]]) -> bool:
        """Tell whether the failing elements fill a box evenly."""
        inside = 1
        rank = torch.zeros_like(self._positions)
        restricted = {axis for first, last in bounds for axis in range(first, last + 1)}
        views = [view for view in self._views if view.axes in bounds]
        views += [view for view in self._layout.axes() if view.axes[0] not in restricted]
        for view in sorted(views, key=lambda view: view.axes):
            low, high = bounds.get(view.axes, (0, view.size))
            index = view.index(self._positions) - low
            rank = rank * (high - low) + index
            inside *= high - low
            if high - low <= _LARGEST_SLICED and high - low > 1:
                counts = torch.bincount(index, minlength=high - low)
                if not self._even(counts, 0):
                    return False
        if self._count < _SPARSEST * inside:
            return False
        return self._steady(rank, inside)

    def borders(self) -> Region | None:
        """Return first and last lines that hold all failing elements, if they do."""
        found: list[tuple[int, int, int]] = []
        outside = torch.ones_like(self._positions, dtype=torch.bool)
        inner = 1.0
        kept = self._positions.numel() / self._count
        for view in self._layout.axes():
            index = view.index(self._positions)
            if view.size > _LARGEST_SLICED:
                continue
            counts = torch.bincount(index, minlength=view.size)
            full = counts >= _FULL * kept * (self._total // view.size)
            first = _leading(full)
            last = _leading(full.flip(0))
            if not 0 < first + last < view.size:
                continue
            found.append((view.axes[0], first, last))
            outside &= (index >= first) & (index < view.size - last)
            inner *= (view.size - first - last) / view.size
        if len(found) < 1 or bool(outside.any()):
            return None
        cost = sum(2 * math.log(self._layout.shape[axis]) for axis, _, _ in found)
        if self._positions.numel() * -math.log1p(-inner) - cost < REQUIRED_SURPRISE:
            return None
        borders = tuple(sorted(found))
        return self._region("borders", borders_text(self._layout, borders), borders=borders)


def _choices(total: int, part: int) -> float:
    """Return the logarithm of the number of ways to choose a part."""
    return math.lgamma(total + 1) - math.lgamma(part + 1) - math.lgamma(total - part + 1)


def _hull(index: torch.Tensor) -> tuple[int, int]:
    low, high = torch.aminmax(index)
    return int(low), int(high) + 1


def _freedom(low: int, high: int, size: int) -> float:
    """Return the logarithm of how many intervals of that kind there are."""
    ends = low == 0 or high == size or high - low == 1
    return math.log(size) * (1 if ends else 2)


def _leading(mask: torch.Tensor) -> int:
    """Return how many leading elements are true."""
    misses = torch.nonzero(~mask).flatten()
    return int(misses[0]) if misses.numel() else mask.numel()

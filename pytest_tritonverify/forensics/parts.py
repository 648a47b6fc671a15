"""Parts of an output that have a form, fitted around failing elements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from pytest_tritonverify.forensics.region import (
    Kind,
    Region,
    interval_text,
    periodic_text,
    slices_text,
)
from pytest_tritonverify.forensics.sampling import spread

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.layout import Layout, View

LARGEST_COUNTED = 1 << 20
"""Most indices of an axis that are counted one by one."""

_EMPTY_SHARE = 0.05
_COUNTED = 60
_SPARSEST = 0.3
_WELL_FILLED = 0.6
_GAP_SLACK = 9.0
_LOOKED_AT = 1 << 16


@dataclass(frozen=True)
class Failures:
    """Failing elements of an output.

    Attributes:
        positions: Flat row-major positions, ascending, int64; all or a random sample.
        count: How many fail.
        layout: The output's shape.
    """

    positions: torch.Tensor
    count: int
    layout: Layout

    @property
    def total(self) -> int:
        """Elements of the output."""
        return math.prod(self.layout.shape)

    @property
    def density(self) -> float:
        """The share of the failing elements that is known."""
        return self.positions.numel() / self.count

    def few(self, most: int) -> Failures:
        """Return a sample of at most that many."""
        kept = spread(self.positions.numel(), most)
        return Failures(self.positions[kept], self.count, self.layout)


class Part(Protocol):
    """A form with its parameters."""

    @property
    def share(self) -> float:
        """The part's share of all elements."""

    @property
    def freedom(self) -> float:
        """Natural logarithm of how many parts of that form there are."""

    def even(self, failures: Failures) -> bool:
        """Tell whether failing elements, all of which lie inside, fill the part evenly."""

    def region(self, failures: Failures) -> Region:
        """Return the part as a region."""


@dataclass(frozen=True)
class Span:
    """Neighbouring indices along a view.

    Attributes:
        view: The axis.
        low: The first index.
        high: One above the last.
    """

    view: View
    low: int
    high: int

    @property
    def share(self) -> float:
        """The share of the axis."""
        return (self.high - self.low) / self.view.size

    @property
    def freedom(self) -> float:
        """How many such spans there are; see `Part`."""
        return _freedom(self.low, self.high, self.view.size)


@dataclass(frozen=True)
class Box:
    """Spans along one or more axes that do not overlap; all indices of the others."""

    spans: tuple[Span, ...]

    @property
    def share(self) -> float:
        """See `Part`."""
        return math.prod(span.share for span in self.spans)

    @property
    def freedom(self) -> float:
        """See `Part`."""
        cost = sum(span.freedom for span in self.spans if span.share < 1)
        return cost + (2 + 1.5 * len(self.spans) if len(self.spans) > 1 else 0)

    def even(self, failures: Failures) -> bool:
        """See `Part`."""
        positions = failures.few(_LOOKED_AT).positions
        inside = 1
        rank = torch.zeros_like(positions)
        for span in sorted(self._all(failures.layout), key=lambda span: span.view.axes):
            width = span.high - span.low
            index = span.view.index(positions) - span.low
            rank = rank * width + index
            inside *= width
            if width <= LARGEST_COUNTED and not _balanced(index, width):
                return False
        return failures.count >= _SPARSEST * inside and _steady(rank, inside)

    def region(self, failures: Failures) -> Region:
        """See `Part`."""
        layout = failures.layout
        restricted = [span for span in self.spans if span.share < 1]
        text = ", ".join(
            interval_text(layout, span.view, span.low, span.high) for span in restricted
        )
        if len(restricted) == 1:
            (span,) = restricted
            return region(
                failures, "interval", text, view=span.view, start=span.low, stop=span.high
            )
        bounds = [(0, extent) for extent in layout.shape]
        for span in restricted:
            bounds[span.view.axes[0]] = (span.low, span.high)
        return region(failures, "box", text, bounds=tuple(bounds))

    def _all(self, layout: Layout) -> list[Span]:
        taken = {axis for s in self.spans for axis in range(s.view.axes[0], s.view.axes[1] + 1)}
        others = [view for view in layout.axes() if view.axes[0] not in taken]
        return [*self.spans, *(Span(view, 0, view.size) for view in others)]


@dataclass(frozen=True)
class Slices:
    """Any choice of indices along a view."""

    view: View
    indices: tuple[int, ...]

    @property
    def share(self) -> float:
        """See `Part`."""
        return len(self.indices) / self.view.size

    @property
    def freedom(self) -> float:
        """See `Part`."""
        return len(self.indices) * (1 - math.log(self.share)) + 2

    def even(self, failures: Failures) -> bool:
        """See `Part`."""
        if len(self.indices) < 2 or self.share == 1:  # noqa: PLR2004 - one is a span
            return False
        sparse = _SPARSEST * self.share * failures.total
        index = self.view.index(failures.few(_LOOKED_AT).positions)
        place = torch.searchsorted(torch.tensor(self.indices), index)
        return failures.count >= sparse and _balanced(place, len(self.indices))

    def region(self, failures: Failures) -> Region:
        """See `Part`."""
        text = slices_text(failures.layout, self.view, self.indices)
        return region(failures, "slices", text, view=self.view, indices=self.indices)


@dataclass(frozen=True)
class Period:
    """A span that repeats along a view."""

    view: View
    period: int
    low: int
    high: int

    @property
    def share(self) -> float:
        """See `Part`."""
        return (self.high - self.low) / self.period

    @property
    def freedom(self) -> float:
        """See `Part`."""
        return _freedom(self.low, self.high, self.period)

    def even(self, failures: Failures) -> bool:
        """See `Part`."""
        index = self.view.index(failures.few(_LOOKED_AT).positions)
        width = self.high - self.low
        if not _balanced(index % self.period - self.low, width):
            return False
        least = _SPARSEST if width == 1 else _WELL_FILLED
        if failures.count < least * self.share * failures.total:
            return False
        turns = index // self.period
        repeats = self.view.size // self.period
        low, high = hull(turns)
        return high - low >= repeats - 1 and _steady(turns, repeats)

    def region(self, failures: Failures) -> Region:
        """See `Part`."""
        text = periodic_text(failures.layout, self.view, self.period, self.low, self.high)
        return region(
            failures,
            "periodic",
            text,
            view=self.view,
            period=self.period,
            start=self.low,
            stop=self.high,
        )


def region(failures: Failures, kind: Kind, text: str, **facts: Any) -> Region:
    """Return a region of failing elements, with their count in its text."""
    words = f"{text}; {failures.count} of {failures.total} elements fail"
    return Region(kind, failures.count, failures.total, words, **facts)


def hull(index: torch.Tensor) -> tuple[int, int]:
    """Return the least index, and one above the greatest."""
    low, high = torch.aminmax(index)
    return int(low), int(high) + 1


def _freedom(low: int, high: int, size: int) -> float:
    # Both ends of an axis, and single indices, are simpler than any two bounds.
    simple = low == 0 or high == size or high - low == 1
    return math.log(size) * (1 if simple else 2)


def _balanced(index: torch.Tensor, size: int) -> bool:
    """Tell whether no index below `size` is left out that chance would not leave out."""
    expected = index.numel() / size
    if expected < _COUNTED:
        return True
    return int(torch.bincount(index, minlength=size).min()) >= _EMPTY_SHARE * expected


def _steady(index: torch.Tensor, size: int) -> bool:
    """Tell whether no stretch below `size` is left out that chance would not leave out."""
    steps = torch.unique(index).diff()
    if not steps.numel():
        return True
    gap = (int(steps.max()) - 1) * index.numel() / size
    return gap <= math.log(index.numel()) + _GAP_SLACK

"""How failing elements are spread over the slices of an output.

One element in a hundred may fail by the standard. Where they are a row, a column, a batch or a
channel, something was not computed there.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.strictness.regions import unravel

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.strictness.limits import StrictLimits

_MOST_SLICES = 1 << 20
"""Slices along one axis that are counted at the same time, which takes 16 MiB."""

_NO_ROW = (-1, 0, 0)


@dataclass(frozen=True)
class Slice:
    """A slice with failing elements.

    Attributes:
        name: Its index, such as `[3, :]` or `[:, 7, :]`.
        failing: How many of its elements fail.
        judged: How many could: those that are finite.
    """

    name: str
    failing: int
    judged: int

    @property
    def share(self) -> float:
        """The share of failing elements."""
        return self.failing / self.judged


class SliceTally:
    """Counts failing elements along every axis, and in every row along the last one.

    Axes with more than 2^20 slices are left out, rows excepted, and so are outputs without two
    axes, whose slices are single elements. The real and imaginary part of an element count each.

    Args:
        shape: The output's shape.
        parts: Numbers per element: 2 for complex ones.
        limits: Which slices are looked at.
    """

    def __init__(self, shape: tuple[int, ...], parts: int, limits: StrictLimits) -> None:
        self._shape = shape
        self._parts = parts
        self._fewest = limits.slice_elements
        total = math.prod(shape)
        fewest = self._fewest
        self._row = shape[-1] if len(shape) > 1 and shape[-1] >= fewest else 0
        self._axes = [
            axis
            for axis, extent in enumerate(shape)
            if len(shape) > 1 and 1 < extent <= _MOST_SLICES and total // extent >= fewest
            # In a matrix the rows are the slices along the first axis.
            if not (len(shape) == 2 and axis == 0 and self._row)  # noqa: PLR2004 - a matrix
        ]
        self._failing: dict[int, torch.Tensor] = {}
        self._skipped: dict[int, torch.Tensor] = {}
        self._run = _NO_ROW
        self._worst: Slice | None = None

    def add(self, positions: torch.Tensor, skipped: torch.Tensor, start: int, count: int) -> None:
        """Take in a piece, in order; see `pieces`.

        Args:
            positions: Flat positions of failing numbers, ascending.
            skipped: Flat positions of numbers that can't be judged.
            start: Flat position of the piece's first number.
            count: Its numbers.
        """
        if self._row:
            self._add_rows(positions, skipped, start, count)
        for axis in self._axes:
            for counts, found in ((self._failing, positions), (self._skipped, skipped)):
                if found.numel():
                    step = math.prod(self._shape[axis + 1 :]) * self._parts
                    extent = self._shape[axis]
                    index = found.div(step, rounding_mode="floor").remainder_(extent)
                    added = torch.bincount(index, minlength=extent)
                    counts[axis] = counts[axis].add_(added) if axis in counts else added

    def _add_rows(
        self, positions: torch.Tensor, skipped: torch.Tensor, start: int, count: int
    ) -> None:
        width = self._row * self._parts
        first, last = start // width, (start + count - 1) // width
        if self._run[0] != first:
            self._close_row()
        if first == last:
            row, failing, missing = self._run if self._run[0] == first else (first, 0, 0)
            self._run = row, failing + positions.numel(), missing + skipped.numel()
        elif positions.numel():
            rows = last - first + 1
            failing_in, skipped_in = (
                torch.bincount(found.div(width, rounding_mode="floor").sub_(first), minlength=rows)
                for found in (positions, skipped)
            )
            self._consider(failing_in, skipped_in, width, lambda at: self._row_name(first + at))

    def _close_row(self) -> None:
        """Look at a row that may have come in several pieces."""
        row, failing, skipped = self._run
        self._run = _NO_ROW
        if failing:
            counts = torch.tensor([failing]), torch.tensor([skipped])
            self._consider(*counts, self._row * self._parts, lambda _: self._row_name(row))

    def _row_name(self, row: int) -> str:
        index = unravel(row, self._shape[:-1])
        return f"[{', '.join(map(str, index))}, :]"

    def _axis_name(self, axis: int, at: int) -> str:
        places = [":"] * len(self._shape)
        places[axis] = str(at)
        return f"[{', '.join(places)}]"

    def _consider(
        self, failing: torch.Tensor, skipped: torch.Tensor, size: int, name: Callable[[int], str]
    ) -> None:
        judged = size - skipped
        shares = (failing / judged.clamp(min=1)).masked_fill_(judged < self._fewest, 0.0)
        at = int(shares.argmax())
        if int(failing[at]) and float(shares[at]) > (self._worst.share if self._worst else 0.0):
            self._worst = Slice(name(at), int(failing[at]), int(judged[at]))

    def finish(self) -> Slice | None:
        """Return the slice with the greatest share of failing elements; None without any."""
        self._close_row()
        total = math.prod(self._shape) * self._parts
        for axis, failing in self._failing.items():
            size = total // self._shape[axis]
            skipped = self._skipped.get(axis, torch.zeros_like(failing))
            self._consider(failing, skipped, size, functools.partial(self._axis_name, axis))
        return self._worst

"""Where a null candidate differs from the golden, in flat positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import chunk_pairs
from pytest_tritonverify.accuracy.floats import measurable

if TYPE_CHECKING:
    from types import EllipsisType

FEWEST = 8
"""Elements that make a row or column worth being called one; as `StrictLimits.slice_elements`."""

_TRIED = 64
"""Rows or columns that are looked at: an end of zeros is what it would be blanked to anyway."""


@dataclass(frozen=True)
class Region:
    """The last row or column of an output that is not zero anyway.

    An output is a matrix here: its last axis runs along the rows.

    Attributes:
        name: For messages, such as `row [3, 7]` or `column 63`.
        index: What selects it from the golden.
        period: Its flat positions are those whose remainder by this number,
        low, high: is at least `low` and below `high`.
    """

    name: str
    index: tuple[int | EllipsisType, ...]
    period: int
    low: int
    high: int

    def inside(self, start: int, count: int) -> torch.Tensor:
        """Return a mask, shape `[count]`, of the positions from `start` on that belong to it."""
        at = torch.arange(start, start + count).remainder_(self.period)
        return (at >= self.low) & (at < self.high)


def edges(golden: torch.Tensor) -> list[Region]:
    """Return the last row and the last column that hold something else than zeros.

    Args:
        golden: A floating-point or complex tensor.

    Returns:
        None, one or two; none of an output without two axes, whose rows are single elements.
    """
    if golden.dim() < 2:  # noqa: PLR2004 - rows and columns
        return []
    columns = golden.shape[-1]
    if golden.numel() == 0:
        return []
    rows = golden.numel() // columns
    found = []
    if columns >= FEWEST:
        found.append(_row(golden, rows, columns))
    if rows >= FEWEST:
        found.append(_column(golden, columns))
    return [region for region in found if region is not None]


def _row(golden: torch.Tensor, rows: int, columns: int) -> Region | None:
    leading = golden.shape[:-1]
    parts = 2 if golden.is_complex() else 1
    for row in range(rows - 1, max(-1, rows - 1 - _TRIED), -1):
        index = unravel(row, tuple(leading))
        if _holds_values(golden[index]):
            width = columns * parts
            name = f"row {list(index) if len(index) > 1 else index[0]}"
            return Region(name, index, golden.numel() * parts, row * width, (row + 1) * width)
    return None


def _column(golden: torch.Tensor, columns: int) -> Region | None:
    parts = 2 if golden.is_complex() else 1
    for column in range(columns - 1, max(-1, columns - 1 - _TRIED), -1):
        if _holds_values(golden[..., column]):
            low = column * parts
            return Region(f"column {column}", (..., column), columns * parts, low, low + parts)
    return None


def _holds_values(values: torch.Tensor) -> bool:
    return any(bool(measurable(piece.golden).any()) for piece in chunk_pairs(values, values))


def unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of a flat row-major position."""
    index = []
    for axis in range(len(shape)):
        step = math.prod(shape[axis + 1 :])
        index.append(position // step % shape[axis])
    return tuple(index)

"""A picture of where an output fails, in text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.region import share
from pytest_tritonverify.forensics.sampling import Survey, spread

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput

SHADES = " .:-=+*#%@"
"""Characters of a cell by its share of failing elements: none, up to a ninth, ..., all."""

_FEWEST_CELLS = 4
_FEWEST_FAILING = 8
_NEARLY_ALL = 0.99


def heat_map(case: FailedOutput, width: int = 64, height: int = 16, shades: str = SHADES) -> str:
    """Draw the share of failing elements over an output.

    The last two axes are drawn, with all other axes folded onto them; a one-dimensional output is
    drawn in reading order. A cell is blank only where no element fails and has the last shade only
    where all do.

    Args:
        case: The output.
        width: Most characters across.
        height: Most lines.
        shades: Characters from none to all, at least three.

    Returns:
        Lines joined by newlines, a legend last; empty where a picture says nothing: if fewer than
        8 elements or at least 99 % of them fail, or the output is too small to draw.
    """
    with torch.no_grad():
        found = case.survey
        if found.count < _FEWEST_FAILING or found.count >= _NEARLY_ALL * found.total:
            return ""
        rows, columns = plane(tuple(found.golden.shape), width * height, width)
        if rows * columns < _FEWEST_CELLS:
            return ""
        down, across = min(height, rows), min(width, columns)
        cells = _shares(found, rows, columns, (down, across))
    lines = [f"|{''.join(_shade(value, shades) for value in row)}|" for row in cells.tolist()]
    edge = f"+{'-' * across}+"
    return "\n".join((edge, *lines, edge, _legend(found, rows, columns, (down, across), shades)))


def plane(shape: tuple[int, ...], cells: int, width: int) -> tuple[int, int]:
    """Return rows and columns of what is drawn."""
    extents = [extent for extent in shape if extent > 1] or [1]
    if len(extents) > 1:
        return extents[-2], extents[-1]
    length = extents[0]
    if length <= width:
        return 1, length
    # Reading order: lines of equally many elements, the last one shorter.
    lines = -(-cells // width)
    return lines, -(-length // lines)


def _shares(found: Survey, rows: int, columns: int, grid: tuple[int, int]) -> torch.Tensor:
    down, across = grid
    hits = cells_of(found.positions, rows, columns, grid)
    failing = torch.bincount(hits, minlength=down * across)
    if found.complete:
        row = torch.bincount(torch.arange(rows) * down // rows, minlength=down)
        column = torch.bincount(torch.arange(columns) * across // columns, minlength=across)
        tried = row.unsqueeze(1) * column * max(1, found.total // (rows * columns))
    else:
        drawn = cells_of(spread(found.total, found.draws), rows, columns, grid)
        tried = torch.bincount(drawn, minlength=down * across).view(down, across)
    return failing.view(down, across) / tried.clamp(min=1)


def cells_of(
    positions: torch.Tensor, rows: int, columns: int, grid: tuple[int, int]
) -> torch.Tensor:
    """Return the flat cell of each flat position.

    Args:
        positions: int64, shape `[n]`.
        rows: Elements down; further axes are folded onto them.
        columns: Elements across.
        grid: Cells down and across.
    """
    down, across = grid
    row = positions // columns % rows
    return row * down // rows * across + positions % columns * across // columns


def _shade(value: float, shades: str) -> str:
    if value <= 0:
        return shades[0]
    if value >= 1:
        return shades[-1]
    steps = len(shades) - 2
    return shades[1 + min(steps - 1, int(value * steps))]


def _legend(found: Survey, rows: int, columns: int, grid: tuple[int, int], shades: str) -> str:
    shape = [extent for extent in found.golden.shape if extent > 1]
    if len(shape) > 1:
        cell = f"{-(-rows // grid[0])} x {-(-columns // grid[1])}"
        where = f"rows 0 to {rows - 1} down, columns 0 to {columns - 1} across"
        folded = len(shape) - 2
        if folded:
            where += f", {folded} more {'axis' if folded == 1 else 'axes'} folded onto them"
    else:
        cell, where = f"{-(-columns // grid[1])}", f"{found.total} elements in reading order"
    return (
        f"{where}; a cell is up to {cell} element{'' if cell == '1' else 's'}; "
        f"'{shades[0]}' none fails, '{shades[1]}' to '{shades[-2]}' some, '{shades[-1]}' all; "
        f"{share(found.count, found.total)} fail"
    )

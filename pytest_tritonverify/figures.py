"""Figures as they are written: four decimals, and never fewer than four digits that count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DECIMALS = 4


def number(value: object) -> float | None:
    """Return a finite number of JSON as a float, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def positive(value: object) -> float | None:
    """Return a finite number above 0, None for anything else."""
    found = number(value)
    return found if found is not None and found > 0 else None


def _decimals(value: float) -> int:
    """Return how many decimals a figure needs: a latency of 0.002072 ms has six."""
    if value == 0 or abs(value) >= 0.1:  # noqa: PLR2004 - from here on four decimals hold four digits
        return DECIMALS
    return DECIMALS - 1 - math.floor(math.log10(abs(value)))


def rounded(value: float | None) -> float | None:
    """Round a figure to four decimals, small ones to four significant digits.

    So nothing that was measured becomes 0, and no ratio of small figures loses its meaning.
    """
    return None if value is None else round(value, _decimals(value))


def shown(value: float | None) -> str:
    """Return a figure for people; `-` where there is none."""
    return "-" if value is None else f"{value:.{_decimals(value)}f}"


def numbers_text(numbers: Iterable[int]) -> str:
    """Return case numbers in short: `1-3, 7`."""
    parts: list[str] = []
    runs: list[list[int]] = []
    for found in sorted(set(numbers)):
        if runs and found == runs[-1][-1] + 1:
            runs[-1].append(found)
        else:
            runs.append([found])
    for run in runs:
        parts += [str(run[0])] if len(run) == 1 else [f"{run[0]}-{run[-1]}"]
    return ", ".join(parts)


def inputs_text(input_desc: object, limit: int = 120) -> str:
    """Return descriptions of inputs in short: `float16[128, 256], 0.5`."""
    items = input_desc if isinstance(input_desc, list) else []
    text = ", ".join(_input_text(item) for item in items)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _input_text(item: object) -> str:
    if not isinstance(item, dict):
        return str(item)
    if item.get("type") == "tensor":
        shape = item.get("shape")
        sizes = ", ".join(map(str, shape)) if isinstance(shape, list) else ""
        return f"{str(item.get('dtype', '')).removeprefix('torch.')}[{sizes}]"
    items = item.get("items")
    if isinstance(items, dict):
        items = list(items.values())
    if isinstance(items, list):
        return f"{item.get('type', '')}({', '.join(_input_text(entry) for entry in items)})"
    return str(item.get("value", item.get("type", "")))


def first_shape(input_desc: object) -> list[int] | None:
    """Return the shape of the first tensor among descriptions of inputs."""
    items: Sequence[object] = input_desc if isinstance(input_desc, list) else []
    for item in items:
        if isinstance(item, dict) and item.get("type") == "tensor":
            shape = item.get("shape")
            if isinstance(shape, list) and all(type(size) is int for size in shape):
                return list(shape)
    return None

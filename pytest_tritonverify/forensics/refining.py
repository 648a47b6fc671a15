"""Exact ends of an interval that only a sample of the failing elements gave."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.sampling import spread, take

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.forensics.facts import Failing
    from pytest_tritonverify.forensics.layout import View
    from pytest_tritonverify.forensics.sampling import Survey

_LOOKED_AT = 1 << 16
_ROUNDS = 32


def refiner(found: Survey, failing: Failing) -> Callable[[View, int, int], tuple[int, int]]:
    """Return a function that widens an interval along an axis as far as elements fail.

    Args:
        found: The survey that the interval comes from.
        failing: The rule's test of elements.
    """

    def refine(view: View, low: int, high: int) -> tuple[int, int]:
        # Where chance left out an end, it left out few indices.
        width = max(1, 64 * view.size // found.positions.numel())
        for _ in range(_ROUNDS):
            reach = _failing_indices(found, failing, view, max(0, low - width), low)
            if reach is None:
                break
            low = reach[0]
        for _ in range(_ROUNDS):
            reach = _failing_indices(found, failing, view, high, min(view.size, high + width))
            if reach is None:
                break
            high = reach[1]
        return low, high

    return refine


def _failing_indices(
    found: Survey, failing: Failing, view: View, start: int, stop: int
) -> tuple[int, int] | None:
    """Return the first failing index of a strip, and one above the last; None without any."""
    if start >= stop:
        return None
    inner = 1 if view.whole else view.inner
    outer = found.total // (view.size * inner)
    count = (stop - start) * outer * inner
    chosen = spread(count, _LOOKED_AT) if count > _LOOKED_AT else torch.arange(count)
    across = chosen % inner
    index = chosen // inner % (stop - start) + start
    turn = chosen // (inner * (stop - start))
    positions = turn * (view.size * inner) + index * inner + across
    mask = failing(take(found.golden, positions), take(found.actual, positions))
    hits = index[mask]
    if not hits.numel():
        return None
    return int(hits.min()), math.ceil(int(hits.max()) + 1)

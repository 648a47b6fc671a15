"""How large the errors of an output are beside what its rule allows, for people who look.

A histogram and a map of `|actual - golden| / allowed`, in bounded time and memory. Nothing here
decides whether an output passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.accuracy.chunks import serial_operators
from pytest_tritonverify.accuracy.dtypes import dtype_name, kind_of
from pytest_tritonverify.accuracy.limits import (
    ECO_LIMIT_ULPS,
    FLOAT_FORMATS,
    MERE_EPSILON,
    cap_limits,
    eco_limits,
    npu_limits,
)
from pytest_tritonverify.accuracy.ulp import ulp
from pytest_tritonverify.forensics.failing import as_golden
from pytest_tritonverify.forensics.picture import cells_of, plane
from pytest_tritonverify.forensics.sampling import numbers, real_numbers, spread, take

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_tritonverify.accuracy.verdict import Category

MEASURED = 1 << 14
"""Elements that are looked at: all of an output up to this size, an even sample of a larger one."""

STEP = 0.25
"""Width of a bar of the histogram, in decades."""

DECADES = 6
"""The histogram spans so many decades below the limit and above it; its ends hold the rest."""

MAP_ROWS, MAP_COLUMNS = 32, 64
"""Cells of a map at most."""

LEVELS = (0.0, 1e-3, 1e-2, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0)
"""Upper ends of a cell's levels, as ratios of error to limit; the last level, 9, has none."""

_HALF = round(DECADES / STEP)
_FAILING = LEVELS.index(1.0) + 1
_MOST_FAILING = 1 << 16


@dataclass(frozen=True)
class Bounds:
    """What a rule allows of single elements.

    Attributes:
        allowed: From goldens as float64 of shape `[n]`, the difference at which an element stops
            matching, of shape `[n]`.
        hard: The same of what no element may exceed; None where every failing one is too many.
        relative: Errors between zero and the limit mean something, so that a histogram does.
    """

    allowed: Callable[[torch.Tensor], torch.Tensor]
    hard: Callable[[torch.Tensor], torch.Tensor] | None = None
    relative: bool = True


def bounds_of(
    category: Category | None, dtype: torch.dtype, metrics: Mapping[str, object]
) -> Bounds:
    """Return what the rule allowed that has judged an output.

    Args:
        category: The rule; None where non-finite positions decided.
        dtype: The golden's dtype.
        metrics: The rule's figures, which name the format by whose row it was judged.
    """
    if category != "non_compute" and kind_of(dtype) in {"float", "complex"}:
        name = str(metrics.get("dtype") or dtype).removeprefix("torch.")
        if category != "float_compute" and eco_limits(name) is not None:
            return _eco(name)
        return _three_way(dtype_name(dtype))
    tolerance = metrics.get("tolerance")
    limit = float(tolerance) if isinstance(tolerance, int) else 0.0
    return Bounds(lambda golden: torch.full_like(golden, max(limit, 1.0)), relative=False)


def _eco(name: str) -> Bounds:
    row, form = eco_limits(name), FLOAT_FORMATS.get(name)
    assert row is not None  # noqa: S101 - the caller has asked

    def allowed(golden: torch.Tensor) -> torch.Tensor:
        return golden.abs().mul_(row.rtol).add_(row.atol)

    def hard(golden: torch.Tensor) -> torch.Tensor:
        limit = allowed(golden).clamp_(min=row.max_abs_error_limit)
        if form is None:
            return limit
        finite = golden.abs().nan_to_num_(nan=0.0, posinf=0.0)
        return torch.maximum(limit, ulp(finite, form).mul_(ECO_LIMIT_ULPS))

    return Bounds(allowed, hard)


def _three_way(name: str) -> Bounds:
    limits, cap = npu_limits(name), cap_limits(name)

    def allowed(golden: torch.Tensor) -> torch.Tensor:
        magnitude = golden.abs()
        small = magnitude < limits.small_value_threshold
        return (
            magnitude.add_(MERE_EPSILON)
            .mul_(limits.rel_threshold)
            .masked_fill_(small, limits.small_value_error)
        )

    return Bounds(allowed, lambda golden: golden.abs().mul_(cap.rtol).add_(cap.atol))


def spectrum(
    golden: torch.Tensor,
    actual: torch.Tensor,
    bounds: Bounds,
    failing: torch.Tensor | None = None,
) -> dict[str, Any]:
    """Measure the errors of an output.

    Args:
        golden: A strided CPU tensor with at least one element.
        actual: A strided CPU tensor of the same shape and kind.
        bounds: What the rule allows.
        failing: Flat positions of elements that fail, int64; given, they are looked at beside the
            sample, and there is a map. None where the output passes.

    Returns:
        JSON-able: the numbers of `elements`, of those `measured`, of those `equal` on both sides
        and of those `non_finite` on one side only or differently; `histogram`, None where nothing
        is to be seen in it, with the lower end `lowest` of the first bar as a decimal logarithm of
        error over limit, the `step` between bars, their `counts`, and how many of each, `over`,
        are above the hard limit; and `heat_map`, with its `rows` and `columns` of elements and
        `cells`, a text for each line with the worst level of every cell as a digit (see `LEVELS`).
    """
    with torch.no_grad(), serial_operators():
        golden, actual = real_numbers(golden.detach()), real_numbers(actual.detach())
        total = golden.numel()
        places = spread(total, MEASURED)
        if failing is not None and total > MEASURED:
            some = failing[spread(failing.numel(), _MOST_FAILING)]
            places = torch.unique(torch.cat((places, some)))
        got = take(actual, places)
        if got.dtype != golden.dtype and got.dtype.is_floating_point:
            got = as_golden(got, golden.dtype)
        expected, got = numbers(take(golden, places)).double(), numbers(got).double()
        same = (expected == got) | (expected.isnan() & got.isnan())
        difference = (got - expected).abs_().masked_fill_(same, 0.0)
        apart = ~torch.isfinite(difference)
        ratio = (difference / bounds.allowed(expected)).masked_fill_(same, 0.0)
        return {
            "elements": total,
            "measured": places.numel(),
            "equal": int(same.sum()),
            "non_finite": int(apart.sum()),
            "histogram": _histogram(expected, difference, ratio, bounds, ~(same | apart)),
            "heat_map": None
            if failing is None
            else _heat_map(tuple(golden.shape), places, _levels(ratio, places, failing)),
        }


def _histogram(
    golden: torch.Tensor,
    difference: torch.Tensor,
    ratio: torch.Tensor,
    bounds: Bounds,
    chosen: torch.Tensor,
) -> dict[str, Any] | None:
    if not bounds.relative or not bool(chosen.any()):
        return None
    golden, difference, ratio = golden[chosen], difference[chosen], ratio[chosen]
    # A bar holds its upper end: what is exactly at the limit is within it.
    bars = torch.log10(ratio).div_(STEP).ceil_().sub_(1).clamp_(-_HALF, _HALF - 1).long()
    within = ratio <= 1
    bars = torch.where(within, bars.clamp(max=-1), bars.clamp(min=0)) + _HALF
    counts = torch.bincount(bars, minlength=2 * _HALF)
    used = torch.nonzero(counts).flatten()
    first, end = int(used[0]), int(used[-1]) + 1
    over = None
    if bounds.hard is not None:
        beyond = difference > bounds.hard(golden)
        over = torch.bincount(bars[beyond], minlength=2 * _HALF)[first:end].tolist()
    return {
        "lowest": (first - _HALF) * STEP,
        "step": STEP,
        "counts": counts[first:end].tolist(),
        "over": over,
    }


def _levels(ratio: torch.Tensor, places: torch.Tensor, failing: torch.Tensor) -> torch.Tensor:
    edges = torch.tensor(LEVELS, dtype=torch.float64)
    # What is non-finite on one side has no ratio, or an endless one.
    levels = torch.bucketize(ratio.nan_to_num(nan=torch.inf), edges)
    # Rules of bits fail elements whose values are equal, such as zeros of either sign.
    wrong = torch.isin(places, failing)
    return torch.where(wrong, levels.clamp(min=_FAILING), levels)


def _heat_map(shape: tuple[int, ...], places: torch.Tensor, levels: torch.Tensor) -> dict[str, Any]:
    rows, columns = plane(shape, MAP_ROWS * MAP_COLUMNS, MAP_COLUMNS)
    down, across = min(MAP_ROWS, rows), min(MAP_COLUMNS, columns)
    cells = torch.zeros(down * across, dtype=torch.int64)
    at = cells_of(places, rows, columns, (down, across))
    cells.scatter_reduce_(0, at, levels, "amax")
    lines = cells.view(down, across).tolist()
    return {
        "rows": rows,
        "columns": columns,
        "cells": ["".join(map(str, line)) for line in lines],
    }

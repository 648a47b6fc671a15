"""Weigh where failing elements lie against what they hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.absent import (
    find_dropped_nan,
    find_filler,
    find_nan,
    find_saturation,
    find_zeros,
)
from pytest_tritonverify.forensics.arithmetic import find_change, find_sign
from pytest_tritonverify.forensics.blocks import known_sizes
from pytest_tritonverify.forensics.contents import Closeness
from pytest_tritonverify.forensics.copies import find_broadcast, find_moved, find_other_output
from pytest_tritonverify.forensics.facts import UNCLEAR, Diagnosis
from pytest_tritonverify.forensics.integers import find_off_by_one, find_wrap
from pytest_tritonverify.forensics.layout import Layout
from pytest_tritonverify.forensics.locating import locate
from pytest_tritonverify.forensics.neutral import find_neutral
from pytest_tritonverify.forensics.overflow import find_overflow
from pytest_tritonverify.forensics.places import Placement
from pytest_tritonverify.forensics.reductions import find_other_axis
from pytest_tritonverify.forensics.refining import refiner
from pytest_tritonverify.forensics.rounding import find_rounding
from pytest_tritonverify.forensics.sampling import SAMPLE, Pairs, Survey, pairs_at, spread
from pytest_tritonverify.forensics.terms import find_input, find_term

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.forensics.contents import Content
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region

# The first that explains the values is taken: the more specific come first.
_FINDERS = (
    find_overflow,
    find_nan,
    find_dropped_nan,
    find_saturation,
    find_neutral,
    find_zeros,
    find_filler,
    find_other_output,
    find_input,
    find_broadcast,
    find_sign,
    find_wrap,
    find_off_by_one,
    find_moved,
    find_change,
    find_term,
    find_rounding,
    find_other_axis,
)

_SEVERE = 1.0 / 16
_LEAST_PART = 0.02
_MOST_PART = 0.999
_FEWEST = 16
_PIECE = 1 << 16
_NEARLY_INFINITE = 0.125
_WIDE_RANGE = 1e30
_TINY = 1e-300
_HUGE = 1e300


def diagnose(case: FailedOutput) -> Diagnosis:
    """Explain where and why an output fails.

    Runs in a time linear in the output's size with a small constant: one pass of the rule's own
    test, then work on samples. Extra memory stays below 64 MiB whatever the size.

    Args:
        case: The output and what is known of the call.

    Returns:
        The diagnosis; its code is `unclear` where no known pattern explains the data.
    """
    with torch.no_grad():
        found = case.survey
        # What is non-finite on one side only breaks every rule, whatever else is wrong.
        worst = _part(found, _non_finite)
        if worst is not None:
            diagnosis = _explained(case, worst)
            if diagnosis.code != UNCLEAR:
                others = found.count - worst.count
                return _with_fact(diagnosis, f"{others} further elements fail, but are finite")
        first = _explained(case, found)
        if first.code != UNCLEAR or first.region["kind"] != "scattered":
            return first
        # Rounding fails some elements by little beside any other fault.
        severe = _part(found, _severe) if found.count >= _FEWEST else None
        second = first if severe is None else _explained(case, severe)
    if severe is None or second.code == UNCLEAR:
        return first
    others = found.count - severe.count
    fact = f"{others} further elements fail by far less and lie elsewhere"
    return replace(_with_fact(second, fact), confidence="likely")


def _with_fact(diagnosis: Diagnosis, fact: str) -> Diagnosis:
    return replace(diagnosis, evidence=(*diagnosis.evidence, fact))


def _explained(case: FailedOutput, found: Survey) -> Diagnosis:
    layout = Layout(tuple(found.golden.shape), parts=case.golden.is_complex())
    region = locate(
        found.positions,
        layout,
        count=found.count,
        blocks=known_sizes(case.launches),
        refine=None if found.complete else refiner(found, case.failing),
    )
    if region.kind == "none":
        return Diagnosis(UNCLEAR, None, (), region.to_json())
    content = _content(case, found, region)
    if content is not None and (content.everywhere or content.decisive):
        placed = Placement(layout, case.launches).name(region, content)
        if placed is None or content.decisive or not content.unwritten or region.kind == "all":
            return _by_content(content, region)
        return placed
    placed = Placement(layout, case.launches).name(region, content)
    if placed is not None:
        return placed
    if content is not None:
        return _by_content(content, region)
    return Diagnosis(UNCLEAR, None, (), region.to_json())


def _content(case: FailedOutput, found: Survey, region: Region) -> Content | None:
    for finder in _FINDERS:
        content = finder(case, found, region)
        if content is not None:
            return content
    return None


def _by_content(content: Content, region: Region) -> Diagnosis:
    partial = content.unwritten and region.kind == "scattered"
    confidence = "likely" if partial else content.confidence
    return Diagnosis(content.code, content.cause, content.evidence, region.to_json(), confidence)


def _part(found: Survey, chosen: Callable[[Survey, Pairs], torch.Tensor]) -> Survey | None:
    """Return a survey of some failing elements only; None where they are too few or nearly all."""
    share = float(chosen(found, found.failing).double().mean()) if found.count else 0.0
    if not _LEAST_PART <= share <= _MOST_PART:
        return None
    positions = torch.cat(
        [
            piece[chosen(found, pairs_at(found.golden, found.actual, piece))]
            for piece in torch.split(found.positions, _PIECE)
        ]
    )
    count = max(1, round(found.count * positions.numel() / found.positions.numel()))
    kept = positions[spread(positions.numel(), SAMPLE)]
    failing = pairs_at(found.golden, found.actual, kept)
    return replace(found, count=count, positions=positions, failing=failing)


def _non_finite(found: Survey, pairs: Pairs) -> torch.Tensor:
    """Return where only one side is finite; the largest numbers count as not finite."""
    golden, actual = pairs.golden, pairs.actual
    differs = (torch.isfinite(golden) != torch.isfinite(actual)) | (
        golden.isnan() != actual.isnan()
    )
    if found.actual.dtype.is_floating_point:
        largest = torch.finfo(found.actual.dtype).max
        bound = largest * _NEARLY_INFINITE if largest > _WIDE_RANGE else largest
        differs |= (actual.abs() >= bound) & (golden.abs() < bound)
    return differs


def _severe(found: Survey, pairs: Pairs) -> torch.Tensor:
    worst = torch.quantile(_severity(found, found.failing), 0.9)
    return _severity(found, pairs) >= worst * _SEVERE


def _severity(found: Survey, pairs: Pairs) -> torch.Tensor:
    closeness = Closeness.of(found)
    golden, actual = pairs.golden.double(), pairs.actual.double()
    allowed = golden.abs() * closeness.rtol + closeness.atol
    severity = (actual - golden).abs() / allowed.clamp_(min=_TINY)
    return severity.nan_to_num_(nan=_HUGE, posinf=_HUGE).clamp_(max=_HUGE)

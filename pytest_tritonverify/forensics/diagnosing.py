"""Weigh where failing elements lie against what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .absent import find_dropped_nan, find_filler, find_nan, find_saturation, find_zeros
from .arithmetic import find_change, find_sign
from .blocks import known_sizes
from .contents import Closeness
from .copies import find_broadcast, find_moved, find_other_output
from .facts import UNCLEAR, Diagnosis
from .integers import find_off_by_one, find_wrap
from .layout import Layout
from .locating import locate
from .overflow import find_overflow
from .places import Placement
from .reductions import find_other_axis
from .refining import refiner
from .rounding import find_rounding
from .sampling import Pairs, Survey, pairs_at, spread, survey

if TYPE_CHECKING:
    from .contents import Content
    from .facts import FailedOutput
    from .region import Region

# The first that explains the values is taken: the more specific come first.
_FINDERS = (
    find_overflow,
    find_nan,
    find_dropped_nan,
    find_saturation,
    find_zeros,
    find_filler,
    find_other_output,
    find_broadcast,
    find_moved,
    find_wrap,
    find_sign,
    find_off_by_one,
    find_change,
    find_rounding,
    find_other_axis,
)

_SEVERE = 1.0 / 16
_LEAST_SEVERE = 0.2
_MOST_SEVERE = 0.999
_FEWEST = 16
_SAMPLE = 4096


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
        found = survey(case.golden, case.actual, case.failing)
        first = _explained(case, found)
        if first.code != UNCLEAR or first.region["kind"] != "scattered":
            return first
        severe = _severe(found)
        if severe is None:
            return first
        second = _explained(case, severe)
    if second.code == UNCLEAR:
        return first
    fact = f"{found.count - severe.count} further elements fail by far less and lie elsewhere"
    evidence = (*second.evidence, fact)
    return Diagnosis(second.code, second.cause, evidence, second.region, "likely")


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
    return Diagnosis(
        content.code, content.cause, content.evidence, region.to_json(), content.confidence
    )


def _severe(found: Survey) -> Survey | None:
    """Leave out elements that fail by little: rounding fails some beside any other fault."""
    if found.count < _FEWEST:
        return None
    severity = _severity(found, found.failing)
    bound = float(torch.quantile(severity.nan_to_num(posinf=1e300), 0.9)) * _SEVERE
    share = float((severity >= bound).double().mean())
    if not _LEAST_SEVERE <= share <= _MOST_SEVERE:
        return None
    everything = pairs_at(found.golden, found.actual, found.positions)
    kept = _severity(found, everything) >= bound
    positions = found.positions[kept]
    count = round(found.count * positions.numel() / found.positions.numel())
    return Survey(
        found.golden,
        found.actual,
        found.total,
        count,
        positions,
        found.complete,
        pairs_at(found.golden, found.actual, positions[spread(positions.numel(), _SAMPLE)]),
        found.passing,
    )


def _severity(found: Survey, pairs: Pairs) -> torch.Tensor:
    closeness = Closeness.of(found)
    golden, actual = pairs.golden.double(), pairs.actual.double()
    allowed = golden.abs() * closeness.rtol + closeness.atol
    severity = (actual - golden).abs() / allowed.clamp_(min=1e-300)
    differs = torch.isfinite(golden) != torch.isfinite(actual)
    return severity.masked_fill_(differs | severity.isnan(), float("inf"))

"""Values that nobody computed: memory as it was before, zeros, NaN, the ends of a number range."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.dtypes import kind_of
from pytest_tritonverify.forensics.contents import REQUIRED_SURPRISE, Content, held, number, rarity
from pytest_tritonverify.forensics.sampling import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.forensics.facts import FailedOutput, MaskedLoad
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Survey

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_WIDE = 4
_ODD_CHANCE = 0.25
_REDUCED = 2
_SEVERAL = 8
_HUGE = 0.125
_HALF_MAXIMA = (448.0, 57344.0, 65504.0)
_INTEGER_ENDS = tuple(1 << bits for bits in (7, 8, 15, 16, 31, 32))


def find_nan(case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain NaN where the golden has numbers."""
    pairs = survey.failing
    if survey.is_integer:
        return None
    nan = pairs.actual.isnan() & ~pairs.golden.isnan()
    if not held(nan):
        return _poisoned_lanes(case, survey, nan)
    fresh = held(untouched(survey)[nan])
    bits = (
        "the NaN have the very bits that fresh memory is filled with"
        if fresh
        else "the NaN were computed: fresh memory is filled with other bits"
    )
    count = f"{_share(nan)} failing elements are NaN, where the golden has numbers"
    if _spreads(region) or _reduces(case, survey):
        return _nan_of_rows(case, region, (count, bits), fresh=fresh)
    return _unwritten("NaN", (count, bits), region) if fresh else None


def _nan_of_rows(
    case: FailedOutput, region: Region, evidence: tuple[str, ...], *, fresh: bool
) -> Content | None:
    """Explain NaN where a reduction may have spread it."""
    whole = region.kind == "all"
    if case.masked_loads:
        return _masked(case.masked_loads, evidence)
    if case.stray_reads and not fresh:
        return _stray(case.stray_reads, evidence)
    if not fresh:
        return _spread(evidence) if _spreads(region) and not whole else None
    known = case.masked_loads is not None
    padded = None if known else _padded_rows(case)
    if padded is None:
        return _unwritten("NaN", evidence, region, sure=known)
    return Content(
        "masked_lanes",
        "A reduction takes in masked lanes: the load has no `other`, or the lanes were not given "
        "a neutral value, so that whole rows became NaN.",
        "they hold NaN",
        (*evidence, padded),
        everywhere=whole,
        confidence="likely",
    )


def find_zeros(_case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain zeros where the golden has other values."""
    zeros = survey.failing.actual == 0
    if not held(zeros) or zeros.numel() * rarity(0, survey) < REQUIRED_SURPRISE:
        return None
    everywhere = survey.passing.count == 0 or held(survey.passing.actual == 0)
    placed = everywhere or region.special
    if not placed and (survey.golden.dtype == torch.bool or survey.count < _SEVERAL):
        return None
    if _signed(survey):
        return _vanished(survey)
    return Content(
        "zeros",
        "Zeros stand where values are expected: the output was allocated with zeros and never "
        "written there, or a mask's `other` was stored.",
        "they hold zeros",
        (f"{_share(zeros)} failing elements are zero, where the golden is not",),
        everywhere=everywhere,
        unwritten=True,
        confidence="likely",
    )


def find_filler(case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain integers and booleans at their maximum, which fresh memory is filled with."""
    if not survey.is_integer:
        return None
    top = _filler(survey.actual.dtype)
    filled = survey.failing.actual == top
    if not held(filled) or filled.numel() * rarity(top, survey) < REQUIRED_SURPRISE:
        return None
    everywhere = survey.passing.count == 0 or held(survey.passing.actual == top)
    if not everywhere and not region.special and survey.actual.element_size() < _WIDE:
        return None
    shown = "True" if survey.actual.dtype == torch.bool else number(float(top))
    fact = f"{_share(filled)} failing elements are {shown}, which fresh memory is filled with"
    if case.masked_loads and (_spreads(region) or _reduces(case, survey)):
        return _masked(case.masked_loads, (fact,))
    found = _unwritten(f"the value {shown}", (fact,), region)
    return replace(found, everywhere=everywhere)


def find_dropped_nan(_case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain numbers where the golden is NaN."""
    pairs = survey.failing
    if survey.is_integer or not held(pairs.golden.isnan() & ~pairs.actual.isnan()):
        return None
    return Content(
        "nan_dropped",
        "NaN is lost on the way: maxima, minima and comparisons drop it unless they are told to "
        "propagate it, and guards against 0/0 replace it.",
        "they hold numbers where the golden is NaN",
        (f"{survey.count} elements are numbers where the golden is NaN",),
        everywhere=True,
        confidence="likely",
        decisive=True,
    )


def find_saturation(_case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain values that stop at the end of a number range which the golden goes beyond."""
    pairs = survey.failing
    magnitude = pairs.actual.abs()
    if survey.is_integer:
        # The lower end is one further away from zero.
        ends = [end for end in _INTEGER_ENDS if end != _filler(survey.golden.dtype) + 1]
        candidates = [
            (float(end - 1), (pairs.actual == end - 1) | (pairs.actual == -end)) for end in ends
        ]
    else:
        maxima = {*_HALF_MAXIMA, torch.finfo(survey.actual.dtype).max}
        candidates = [(end, magnitude == end) for end in sorted(maxima)]
    for end, hits in candidates:
        beyond = pairs.golden.abs() > end
        alone = pairs.count == 1 and not bool(pairs.golden.isinf().all())
        same_side = (pairs.golden > 0) == (pairs.actual > 0)
        if not alone and held(hits & beyond & same_side):
            return Content(
                "saturated",
                f"Values saturate at {number(end)}, the end of a number range that the golden "
                f"goes beyond.",
                f"they hold {number(end)} in magnitude",
                (f"{_share(hits)} failing elements are +-{number(end)}, all goldens beyond it",),
                everywhere=True,
                decisive=True,
            )
    return None


def _signed(survey: Survey) -> bool:
    """Tell whether zeros have the signs of the golden, both of which occur."""
    pairs = survey.failing
    if survey.is_integer or not bool((pairs.golden < 0).any()):
        return False
    return held(torch.signbit(pairs.actual) == torch.signbit(pairs.golden))


def _vanished(survey: Survey) -> Content:
    return Content(
        "overflow_to_infinity",
        "An overflow to infinity on the way: values were divided by an infinity, or underflowed, "
        "which leaves zeros with the values' own signs.",
        "they hold zeros that were computed",
        (f"{survey.count} elements are zeros that have the golden's signs, so were computed",),
        everywhere=True,
        confidence="likely",
    )


def _poisoned_lanes(case: FailedOutput, survey: Survey, nan: torch.Tensor) -> Content | None:
    """Recognise what the interpreter puts into undefined lanes: NaN and the largest numbers."""
    actual = survey.failing.actual
    if not survey.actual.dtype.is_floating_point or survey.actual.element_size() == 1:
        return None
    limit = torch.finfo(survey.actual.dtype).max
    huge = (actual.abs() >= _HUGE * limit) & (survey.failing.golden.abs() < _HUGE * limit)
    alternating = min(int(nan.sum()), int((huge & ~nan).sum())) >= _ODD_CHANCE * nan.numel()
    # Infinity alone is what an overflow leaves; a maximum or minimum leaves the largest number.
    if not held(huge | nan) or not (alternating or held(actual.abs() == limit)):
        return None
    fact = (
        f"{_share(huge | nan)} failing elements are NaN or about {limit:.3g} in magnitude, which "
    )
    if case.stray_reads and not case.masked_loads:
        return _stray(case.stray_reads, (f"{fact}what lies outside of tensors",))
    # Where it is known that there was no undefined lane, none is to blame.
    if case.masked_loads is not None and not case.masked_loads:
        return None
    found = _masked(case.masked_loads or (), (f"{fact}what undefined lanes are filled with",))
    return found if case.masked_loads else replace(found, confidence="likely")


def _stray(places: Sequence[str], evidence: tuple[str, ...]) -> Content:
    return Content(
        "stray_read",
        "What lies outside of a tensor reaches the output: a load's offsets or mask go too far.",
        "they hold what lies outside of tensors",
        (*evidence, *places),
        everywhere=True,
        decisive=True,
    )


def _masked(loads: Sequence[MaskedLoad], evidence: tuple[str, ...]) -> Content:
    places = tuple(
        f"the load at {load.file}:{load.line} left {load.lanes} lanes undefined" for load in loads
    )
    return Content(
        "masked_lanes",
        "Masked lanes reach the output: a `tl.load` with a mask has no `other`, so its masked "
        "lanes are undefined.",
        "they hold what masked lanes are filled with",
        evidence + places,
        everywhere=True,
        decisive=True,
    )


def _spread(evidence: tuple[str, ...]) -> Content:
    return Content(
        "masked_lanes",
        "A NaN spread through the reduction of whole rows: from a masked lane without a neutral "
        "value, or from 0/0 or inf - inf where all of a row's lanes are masked.",
        "they hold NaN",
        evidence,
        everywhere=True,
        confidence="likely",
        decisive=True,
    )


def _unwritten(
    what: str, evidence: tuple[str, ...], region: Region, *, sure: bool = True
) -> Content:
    placed = region.special or region.kind == "all"
    return Content(
        "uninitialised",
        "Uninitialised memory: nothing was written there after the output was allocated with "
        "`torch.empty`.",
        f"they hold {what}, as fresh memory does",
        evidence,
        everywhere=region.kind == "all",
        unwritten=True,
        confidence="clear" if sure and placed else "likely",
    )


def _spreads(region: Region) -> bool:
    """Tell whether whole rows are hit, so that a reduction along them may be the way."""
    if region.kind == "all":
        return region.total > 1
    return (
        region.view is not None
        and region.kind in {"slices", "interval"}
        and region.view.inner > 1
        and region.view.single
    )


def _reduces(case: FailedOutput, survey: Survey) -> bool:
    """Tell whether the output is so much smaller than an input that it must be a reduction."""
    return any(tensor.numel() >= _REDUCED * survey.total for tensor in case.inputs)


def _padded_rows(case: FailedOutput) -> str | None:
    """Say which launch has blocks longer than a row, so that some lanes must be masked."""
    rows = {tensor.shape[-1] for tensor in (*case.inputs, case.golden) if tensor.dim() > 1}
    rows = rows or {tensor.shape[-1] for tensor in case.inputs if tensor.dim()}
    for launch in case.launches:
        for name, value in launch.constexprs.items():
            if "block" not in name.lower():
                continue
            padded = [row for row in rows if row < value < 2 * row]
            if padded:
                row = max(padded)
                return (
                    f"{launch.kernel} covers rows of {row} elements by {name}={value}: "
                    f"{value - row} lanes are masked in each"
                )
    return None


def untouched(survey: Survey) -> torch.Tensor:
    """Return which failing elements have the bits of memory filled with NaN."""
    values = take(survey.actual, survey.failing.positions)
    view = _BITS[values.element_size()]
    # Older torch releases fill no float8 tensor.
    narrow = values.element_size() == 1
    if kind_of(values.dtype) != "float":
        return torch.zeros(values.numel(), dtype=torch.bool)
    fill = torch.full((1,), math.nan, dtype=torch.float32 if narrow else values.dtype)
    fill = fill.to(values.dtype)
    return values.view(view) == fill.view(view)


def _filler(dtype: torch.dtype) -> int:
    """Return the value, as `sampling.numbers` gives it, that fresh memory is filled with."""
    if dtype == torch.bool:
        return 1
    limits = torch.iinfo(dtype)
    return -1 if limits.max > torch.iinfo(torch.int64).max else limits.max


def _share(hits: torch.Tensor) -> str:
    found, total = int(hits.sum()), hits.numel()
    return f"all {total}" if found == total else f"{found} of {total}"

"""Parts of a computation that are missing: an input alone, a term per column, a factor per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics.contents import (
    REQUIRED_SURPRISE,
    Closeness,
    Content,
    held,
    scale,
    surprise,
)
from pytest_tritonverify.forensics.layout import Layout
from pytest_tritonverify.forensics.sampling import numbers, pairs_at, take

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.layout import View
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_FEWEST = 16
_FEWEST_INDICES = 3
_MOST_ALIKE = 0.4
_MOST_INPUTS = 16
_MOST_AXES = 6
_NEGLIGIBLE = 2.0**-6
_SEED = 20240229


def find_input(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain an output that is one of the inputs, along an axis of it or as a whole."""
    if survey.golden.dtype == torch.bool or case.golden.is_complex():
        return None
    closeness = Closeness.of(survey)
    for position, tensor in enumerate(case.inputs[:_MOST_INPUTS]):
        expanded = _expanded(tensor, survey)
        if expanded is None:
            continue
        expected = numbers(take(expanded, survey.failing.positions))
        if not held(closeness.same(expected, survey.failing.actual)):
            continue
        rest = numbers(take(expanded, survey.passing.positions))
        if survey.passing.count and not held(closeness.same(rest, survey.passing.actual)):
            continue
        if survey.failing.count < _FEWEST or (
            surprise(expected, survey.failing, closeness) < REQUIRED_SURPRISE
        ):
            continue
        spread = "" if tensor.shape == survey.golden.shape else ", broadcast to the output's shape"
        return Content(
            "input_alone",
            f"The output is input {position} alone{spread}: the rest of the computation is "
            f"missing, as after a loop that takes no step or a term that is never added.",
            f"they hold input {position}",
            (f"all {survey.total} elements agree with input {position}, as far as sampled",),
            everywhere=True,
            decisive=True,
        )
    return None


def find_term(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain differences, or ratios, that are the same wherever an index is."""
    if not survey.golden.dtype.is_floating_point or case.golden.is_complex():
        return None
    finite = [_finite(survey.failing), _finite(survey.passing)]
    if finite[0].count < max(_FEWEST, 0.98 * survey.failing.count):
        return None
    for view in Layout(tuple(survey.golden.shape)).views():
        indices = view.index(finite[0].positions)
        if view.whole or _distinct(indices) < _FEWEST_INDICES:
            continue
        twins = [_twins(survey, view, pairs) for pairs in finite]
        if _same_difference(survey, finite, twins):
            return _added(case, survey, view)
        if _same_ratio(survey, finite, twins):
            return _scaled(survey, view)
    return None


def _added(case: FailedOutput, survey: Survey, view: View) -> Content:
    one, many = Layout(tuple(survey.golden.shape)).nouns(view)
    fact = f"the difference is the same in all elements of each of {view.size} {many}"
    pairs = _finite(survey.failing)
    missing = pairs.golden - pairs.actual
    allowed = _allowed(survey, pairs)
    for position, tensor in enumerate(case.inputs[:_MOST_INPUTS]):
        expanded = _expanded(tensor, survey)
        if expanded is None or tensor.numel() != view.size:
            continue
        values = numbers(take(expanded, pairs.positions)).double()
        for sign, what in ((1, "was never added"), (-1, "was added twice")):
            if held((missing - sign * values).abs() <= allowed):
                return Content(
                    "missing_term",
                    f"Input {position} {what}: every {one} is off by its own element of it.",
                    f"they differ by input {position}",
                    (fact, f"golden - actual is {'' if sign > 0 else '-1 times '}input {position}"),
                    everywhere=True,
                )
    return Content(
        "missing_term",
        f"A term for each {one} is missing or wrong, as a bias, a mean or a normaliser is that "
        f"depends on the {one} alone.",
        f"they differ by a term for each {one}",
        (fact,),
        everywhere=True,
        confidence="likely",
    )


def _scaled(survey: Survey, view: View) -> Content:
    one, many = Layout(tuple(survey.golden.shape)).nouns(view)
    return Content(
        "factor_per_slice",
        f"Values are off by a constant factor in each {one}: a normaliser or scale of the {one} "
        f"is wrong, as a sum over lanes that no mask takes out.",
        f"they hold the golden times a factor for each {one}",
        (f"the ratio is the same in all elements of each of {view.size} {many}",),
        everywhere=True,
        confidence="likely",
    )


def _same_difference(survey: Survey, sides: list[Pairs], twins: list[Pairs]) -> bool:
    """Tell whether elements of one index differ from the golden by the same."""
    for pairs, others in zip(sides, twins, strict=True):
        if not pairs.count:
            continue
        difference, allowed = pairs.actual - pairs.golden, _allowed(survey, pairs)
        twin = others.actual - others.golden
        agrees = (difference - twin).abs() <= allowed + _allowed(survey, others)
        if not held(agrees):
            return False
    return _unlikely(survey, sides[0], factor=False)


def _same_ratio(survey: Survey, sides: list[Pairs], twins: list[Pairs]) -> bool:
    """Tell whether elements of one index are the same multiple of the golden."""
    least = _NEGLIGIBLE * scale(survey)
    for pairs, others in zip(sides, twins, strict=True):
        sizeable = (pairs.golden.abs() > least) & (others.golden.abs() > least)
        if pairs is sides[0] and int(sizeable.sum()) < _FEWEST:
            return False
        pairs, others = pairs.where(sizeable), others.where(sizeable)  # noqa: PLW2901 - narrowed
        if not pairs.count:
            continue
        ratio = others.actual / others.golden
        relative = 2 * Closeness.of(survey).rtol
        expected = pairs.golden * ratio
        written = pairs.actual != 0
        if not held(written) or not held(
            (pairs.actual - expected).abs() <= relative * expected.abs()
        ):
            return False
    return _unlikely(survey, sides[0], factor=True)


def _unlikely(survey: Survey, pairs: Pairs, *, factor: bool) -> bool:
    """Tell whether elements of different indices differ by so much that chance is ruled out."""
    others = pairs.where(torch.randperm(pairs.count, generator=_generator()))
    if factor:
        ratio = others.actual / others.golden
        expected = pairs.golden * ratio
        agrees = (pairs.actual - expected).abs() <= (2 * Closeness.of(survey).rtol * expected.abs())
    else:
        allowed = _allowed(survey, pairs) + _allowed(survey, others)
        difference = (pairs.actual - pairs.golden) - (others.actual - others.golden)
        agrees = difference.abs() <= allowed
    chance = (int(agrees.sum()) + 1) / (pairs.count + 2)
    if chance > _MOST_ALIKE:
        # Few distinct values: parts of the output that differ, not a value for each index.
        return False
    return int((~agrees).sum()) * -math.log(chance) >= REQUIRED_SURPRISE + math.log(10)


def _twins(survey: Survey, view: View, pairs: Pairs) -> Pairs:
    """Return other elements of the same indices along a view, drawn at random."""
    generator = _generator()
    count = pairs.count
    outer = survey.total // (view.size * view.inner)
    before = (torch.rand(count, generator=generator, dtype=torch.float64) * outer).long()
    after = (torch.rand(count, generator=generator, dtype=torch.float64) * view.inner).long()
    index = view.index(pairs.positions)
    places = (before * view.size + index) * view.inner + after
    return pairs_at(survey.golden, survey.actual, places)


def _allowed(survey: Survey, pairs: Pairs) -> torch.Tensor:
    """Return by how much rounding may change an element on both sides."""
    closeness = Closeness.of(survey)
    return torch.maximum(pairs.golden.abs(), pairs.actual.abs()) * closeness.rtol + closeness.atol


def _expanded(tensor: torch.Tensor, survey: Survey) -> torch.Tensor | None:
    """View an input in the output's shape, None where it does not broadcast to that."""
    fits = (
        tensor.layout == torch.strided
        and not tensor.is_complex()
        and tensor.numel() > 1
        and tensor.dim() <= min(survey.golden.dim(), _MOST_AXES)
        and tensor.is_floating_point() == survey.golden.dtype.is_floating_point
    )
    if not fits:
        return None
    try:
        return tensor.expand(survey.golden.shape)
    except RuntimeError:
        return None


def _finite(pairs: Pairs) -> Pairs:
    return pairs.where(torch.isfinite(pairs.golden) & torch.isfinite(pairs.actual))


def _distinct(values: torch.Tensor) -> int:
    return int(torch.count_nonzero(values.sort().values.diff())) + 1


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(_SEED)

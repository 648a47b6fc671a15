"""Reductions along another axis than the golden's, recomputed from the inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.forensics.contents import (
    REQUIRED_SURPRISE,
    Closeness,
    Content,
    held,
    surprise,
)
from pytest_tritonverify.forensics.sampling import numbers, take

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_FEWEST = 3
_SAMPLED = 64
_BUDGET = 1 << 19
_MOST_AXES = 6
_MOST_INPUTS = 8

# Functions of slices [m, L] in float64 that give [m].
_REDUCED: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda slices: slices.sum(dim=1),
    "mean": lambda slices: slices.mean(dim=1),
    "max": lambda slices: slices.amax(dim=1),
    "min": lambda slices: slices.amin(dim=1),
    "norm": lambda slices: slices.square().sum(dim=1).sqrt(),
    "argmax": lambda slices: slices.argmax(dim=1).double(),
    "argmin": lambda slices: slices.argmin(dim=1).double(),
}


def _standardised(slices: torch.Tensor) -> torch.Tensor:
    centred = slices - slices.mean(dim=1, keepdim=True)
    return centred / centred.square().mean(dim=1, keepdim=True).add(1e-5).sqrt()


# Functions of slices [m, L] in float64 that give [m, L].
_ALONG: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda slices: slices.softmax(dim=1),
    "log_softmax": lambda slices: slices.log_softmax(dim=1),
    "cumsum": lambda slices: slices.cumsum(dim=1),
    "normalisation": _standardised,
}


class _Attempt(NamedTuple):
    """One way to compute an output from an input.

    Attributes:
        name: The reduction.
        axis: The input's axis that it runs along.
        golden: Whether sampled golden values come out.
        actual: Whether sampled values of the implementation do.
    """

    name: str
    axis: int
    golden: bool
    actual: bool


def find_other_axis(case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain values by a reduction of an input along another axis."""
    if region.special or survey.failing.count < _FEWEST or survey.golden.dtype == torch.bool:
        return None
    for position, tensor in _candidates(case):
        attempts = [*_reduced(tensor, survey), *_along(tensor, survey)]
        found = _judged(attempts, position)
        if found is not None:
            return found
    return None


def reductions_of(case: FailedOutput, survey: Survey, names: set[str]) -> tuple[int, int] | None:
    """Return which input, along which axis, the golden is a reduction of by one of the names."""
    for position, tensor in _candidates(case):
        for attempt in _reduced(tensor, survey):
            if attempt.golden and attempt.name in names:
                return position, attempt.axis
    return None


def _candidates(case: FailedOutput) -> list[tuple[int, torch.Tensor]]:
    return [
        (position, tensor)
        for position, tensor in enumerate(case.inputs[:_MOST_INPUTS])
        if not tensor.is_complex() and 1 < tensor.dim() <= _MOST_AXES and tensor.numel()
    ]


def _judged(attempts: list[_Attempt], position: int) -> Content | None:
    right = {attempt.name: attempt.axis for attempt in attempts if attempt.golden}
    for attempt in attempts:
        if not attempt.actual or attempt.golden:
            continue
        expected = right.get(attempt.name)
        if expected is None and (right or attempt.name not in {"sum", "mean", "max", "min"}):
            continue
        fact = f"the values are the {attempt.name} of input {position} along axis {attempt.axis}"
        if expected is not None:
            fact += f"; the golden is that along axis {expected}"
        return Content(
            "wrong_reduction_axis",
            f"The reduction runs along the wrong axis: {attempt.name} of input {position} along "
            f"axis {attempt.axis}" + (f" instead of {expected}." if expected is not None else "."),
            "they are reduced along another axis",
            (fact,),
            everywhere=True,
            confidence="clear" if expected is not None else "likely",
        )
    return None


def _reduced(tensor: torch.Tensor, survey: Survey) -> Iterator[_Attempt]:
    """Try reductions that leave one axis out."""
    shape = tuple(extent for extent in survey.golden.shape if extent != 1)
    for axis in range(tensor.dim()):
        if tensor.shape[axis] == 1:
            continue
        rest = [extent for a, extent in enumerate(tensor.shape) if a != axis]
        # An output of another length may hold the beginning of what a wrong axis gives.
        prefix = len(shape) == 1 and len(rest) == 1
        if tuple(extent for extent in rest if extent != 1) != shape and not prefix:
            continue
        limit = min(math.prod(rest), survey.total)
        pairs = _sampled(survey, limit, tensor.shape[axis])
        if pairs.count < _FEWEST:
            continue
        slices = _slices(tensor, axis, pairs.positions)
        for name, reduction in _REDUCED.items():
            yield _attempt(name, axis, reduction(slices), pairs, survey)


def _along(tensor: torch.Tensor, survey: Survey) -> Iterator[_Attempt]:
    """Try functions along an axis that keep the shape."""
    if tuple(tensor.shape) != tuple(survey.golden.shape) or not tensor.is_floating_point():
        return
    for axis in range(tensor.dim()):
        extent = tensor.shape[axis]
        if extent == 1:
            continue
        pairs = _sampled(survey, survey.total, extent)
        if pairs.count < _FEWEST:
            continue
        inner = math.prod(tensor.shape[axis + 1 :])
        index = pairs.positions // inner % extent
        others = pairs.positions // (inner * extent) * inner + pairs.positions % inner
        slices = _slices(tensor, axis, others)
        for name, function in _ALONG.items():
            values = function(slices).gather(1, index.unsqueeze(1)).squeeze(1)
            yield _attempt(name, axis, values, pairs, survey)


def _attempt(name: str, axis: int, values: torch.Tensor, pairs: Pairs, survey: Survey) -> _Attempt:
    closeness = Closeness.of(survey)
    if survey.is_integer:
        # Counts, indices and sums of integers are exact in float64.
        whole = torch.nan_to_num(values, nan=0.5, posinf=0.5, neginf=0.5)
        integral = bool((whole == whole.trunc()).all())
        expected = whole.long() if integral else torch.full_like(pairs.golden, 0)
        if not integral:
            return _Attempt(name, axis, golden=False, actual=False)
    else:
        expected = values
    golden = held(closeness.same(expected, pairs.golden))
    actual = held(closeness.same(expected, pairs.actual)) and (
        surprise(expected, pairs, closeness) >= REQUIRED_SURPRISE
    )
    return _Attempt(name, axis, golden=golden, actual=actual)


def _sampled(survey: Survey, limit: int, extent: int) -> Pairs:
    pairs = survey.failing.where(survey.failing.positions < limit)
    count = min(_SAMPLED, _BUDGET // extent)
    chosen = torch.zeros(pairs.count, dtype=torch.bool)
    if pairs.count and count:
        chosen[torch.linspace(0, pairs.count - 1, min(count, pairs.count)).long()] = True
    return pairs.where(chosen)


def _slices(tensor: torch.Tensor, axis: int, positions: torch.Tensor) -> torch.Tensor:
    """Return slices along an axis, shape `[m, L]` in float64.

    Args:
        tensor: The input.
        axis: The axis that the slices run along.
        positions: Flat row-major positions in the input's shape without that axis.
    """
    extent, inner = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    starts = positions // inner * (inner * extent) + positions % inner
    places = starts.unsqueeze(1) + torch.arange(extent) * inner
    return numbers(take(tensor, places)).double()

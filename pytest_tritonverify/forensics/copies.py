"""Values that are right but stand in the wrong place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.forensics.contents import (
    REQUIRED_SURPRISE,
    Closeness,
    Content,
    held,
    number,
    surprise,
)
from pytest_tritonverify.forensics.layout import Layout
from pytest_tritonverify.forensics.sampling import numbers, pairs_at, spread, take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.layout import View
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_SHIFTS = (1, -1, 2, -2, 3, -3, 4, -4)
_FEWEST = 3
_MOST_FEW = 256
_MOST_AXES = 5


class _Move(NamedTuple):
    """Where an output's elements may have been taken from.

    Attributes:
        code: Machine word of the diagnosis.
        cause: The cause in one sentence.
        holds: What elements then hold, to end a sentence with.
        source: Flat positions in the golden, and which of them exist.
    """

    code: str
    cause: str
    holds: str
    source: _Source


class _Source:
    """Computes where elements come from, for any positions."""

    def __call__(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError


class _Shifted(_Source):
    def __init__(self, view: View, shift: int) -> None:
        self._view = view
        self._shift = shift

    def __call__(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        origin = self._view.index(positions) - self._shift
        exists = (origin >= 0) & (origin < self._view.size)
        moved = positions - self._shift * (1 if self._view.whole else self._view.inner)
        return torch.where(exists, moved, 0), exists


class _Flipped(_Source):
    def __init__(self, view: View) -> None:
        self._view = view

    def __call__(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        index = self._view.index(positions)
        moved = positions + (self._view.size - 1 - 2 * index) * (
            1 if self._view.whole else self._view.inner
        )
        return moved, torch.ones_like(positions, dtype=torch.bool)


class _Transposed(_Source):
    """The golden with two axes exchanged, read in row-major order as if it had its own shape."""

    def __init__(self, shape: tuple[int, ...], first: int, second: int, *, inverse: bool) -> None:
        order = list(range(len(shape)))
        order[first], order[second] = second, first
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        if inverse:
            # The golden's numbers in the exchanged shape, read along its own axes.
            swapped = [shape[axis] for axis in order]
            walked = [math.prod(swapped[axis + 1 :]) for axis in range(len(shape))]
            self._extents = list(shape)
            self._strides = [walked[axis] for axis in order]
        else:
            self._extents = [shape[axis] for axis in order]
            self._strides = [strides[axis] for axis in order]

    def __call__(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved, rest = torch.zeros_like(positions), positions
        for extent, stride in zip(reversed(self._extents), reversed(self._strides), strict=True):
            moved = moved + rest % extent * stride
            rest = rest // extent
        return moved, torch.ones_like(positions, dtype=torch.bool)


def find_other_output(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain values that belong to another output."""
    closeness = Closeness.of(survey)
    for position, other in enumerate(case.other_goldens):
        if not _comparable(other, survey):
            continue
        expected = numbers(take(other, survey.failing.positions))
        if not _explains(expected, survey.failing, closeness, guesses=len(case.other_goldens)):
            continue
        rest = closeness.same(numbers(take(other, survey.passing.positions)), survey.passing.actual)
        return Content(
            "swapped_outputs",
            "The values are those of another output: outputs are returned or stored in the wrong "
            "order.",
            "they hold the values of another output",
            (f"the values agree with the golden of other output {position}",),
            everywhere=not rest.numel() or held(rest),
        )
    return None


def find_moved(_case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain values of the golden that stand elsewhere: transposed, rolled, reversed."""
    shape = tuple(survey.golden.shape)
    moves = list(_moves(Layout(shape), region))
    closeness = Closeness.of(survey)
    few = survey.failing.where(_some(survey.failing.count))
    for move in moves:
        # Most moves are ruled out by a few elements.
        expected, pairs = _expected(survey, few, move.source)
        if pairs.count < min(_FEWEST, few.count) or not held(
            closeness.same(expected, pairs.actual)
        ):
            continue
        expected, pairs = _expected(survey, survey.failing, move.source)
        if not _explains(expected, pairs, closeness, guesses=len(moves)):
            continue
        expected, others = _expected(survey, survey.passing, move.source)
        rest = closeness.same(expected, others.actual)
        evidence = f"{pairs.count} sampled failing elements agree with the golden so moved"
        return Content(
            move.code,
            move.cause,
            move.holds,
            (evidence,),
            everywhere=not rest.numel() or held(rest),
        )
    return None


def find_broadcast(_case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain one value that stands for many, in the whole output or along an axis."""
    constant = _constant(survey)
    if constant is not None:
        return constant
    views = [view for view in Layout(tuple(survey.golden.shape)).views() if not view.whole]
    if not views:
        return None
    positions = torch.cat((survey.failing.positions, survey.passing.positions)).sort().values
    positions = positions[spread(positions.numel(), 2 * _MOST_FEW)]
    pairs = pairs_at(survey.golden, survey.actual, positions)
    # The widest run of axes first: a value along two axes is one along each of them too.
    for view in sorted(views, key=lambda view: view.axes[0] - view.axes[1]):
        found = _along(survey, pairs, view)
        if found is not None:
            return found
    return None


def _along(survey: Survey, pairs: Pairs, view: View) -> Content | None:
    index = view.index(pairs.positions)
    # Another index along the axis, each a different step away.
    steps = 1 + torch.arange(pairs.count) % (view.size - 1)
    twins = pairs_at(
        survey.golden,
        survey.actual,
        pairs.positions + ((index + steps) % view.size - index) * view.inner,
    )
    if not held(pairs.actual == twins.actual):
        return None
    differs = pairs.golden != twins.golden
    by_chance = float((pairs.actual == pairs.actual.roll(1)).double().mean())
    odds = int(differs.sum()) * -math.log(max(by_chance, 1 / (pairs.count + 1)))
    if int(differs.sum()) < _FEWEST or odds < REQUIRED_SURPRISE + math.log(10):
        return None
    layout = Layout(tuple(survey.golden.shape))
    one, many = layout.nouns(view)
    evidence = [f"{view.size} {many} hold the same values"]
    copied = False
    for place, name in ((0, "first"), (view.size - 1, "last")):
        source = pairs_at(
            survey.golden, survey.actual, pairs.positions + (place - index) * view.inner
        )
        if held(Closeness.of(survey).same(source.golden, pairs.actual)):
            evidence.append(f"they are those of the golden's {name} {one}")
            copied = True
            break
    along = f"axis {view.axes[0]}" if view.single else f"axes {view.axes[0]} to {view.axes[1]}"
    return Content(
        "broadcast",
        f"One value was broadcast along {along}: an index along it is missing from the load or "
        f"from the computation, or what varies along it is left out.",
        f"they are the same along {along}",
        tuple(evidence),
        everywhere=True,
        confidence="clear" if copied else "likely",
    )


def _constant(survey: Survey) -> Content | None:
    actual = torch.cat((survey.failing.actual, survey.passing.actual))
    value = actual[0]
    if not bool((actual == value).all()) or survey.total == 1:
        return None
    golden = survey.failing.golden
    commonest = float((golden == golden.mode().values).double().mean())
    if survey.failing.count * -math.log(max(commonest, 1 / (golden.numel() + 1))) < (
        REQUIRED_SURPRISE
    ):
        return None
    ends = pairs_at(survey.golden, survey.actual, torch.tensor([0, survey.total - 1]))
    copied = bool(Closeness.of(survey).same(ends.golden, ends.actual).any())
    return Content(
        "broadcast",
        "One value was broadcast over the whole output: every program loads or stores the same "
        "element, or what varies is left out.",
        "they all hold one value",
        (f"all elements are {number(float(value))}, where the golden's differ",),
        everywhere=True,
        confidence="clear" if copied else "likely",
    )


def _moves(layout: Layout, region: Region) -> Iterator[_Move]:
    axes = layout.axes()
    shape = layout.shape
    if len(axes) <= _MOST_AXES:
        for position, first in enumerate(axes):
            for second in axes[position + 1 :]:
                for inverse in (False, True):
                    yield _Move(
                        "transposed",
                        f"Axes {first.axes[0]} and {second.axes[0]} are transposed: strides are "
                        f"exchanged in a load or store.",
                        "they hold the transposed golden",
                        _Transposed(shape, first.axes[0], second.axes[0], inverse=inverse),
                    )
    whole = layout.views()[-1:]
    for view in (*axes, *(view for view in whole if not view.single)):
        along = "the flat output" if view.whole else f"axis {view.axes[0]}"
        for shift in _SHIFTS:
            if abs(shift) < view.size:
                yield _Move(
                    "rolled",
                    f"Values are rolled by {abs(shift)} along {along}: an offset is "
                    f"{abs(shift)} too {'small' if shift > 0 else 'large'} in a load or store.",
                    f"they hold the golden rolled by {shift}",
                    _Shifted(view, shift),
                )
        yield _Move(
            "reversed",
            f"Values stand in reverse order along {along}.",
            "they hold the golden in reverse order",
            _Flipped(view),
        )
    if region.kind == "interval":
        yield from _from_other_blocks(layout, region)


def _from_other_blocks(layout: Layout, region: Region) -> Iterator[_Move]:
    """Blocks that hold what belongs to the block before or after them."""
    views: Sequence[View] = layout.views()
    if region.view is None:
        return
    for view in views:
        if view.axes == region.view.axes:
            for shift in (region.width, -region.width):
                if abs(shift) < view.size and abs(shift) > max(_SHIFTS):
                    which = "before" if shift > 0 else "after"
                    yield _Move(
                        "rolled",
                        f"Values are those of {abs(shift)} indices {which}.",
                        f"they hold the values of the block {which}",
                        _Shifted(view, shift),
                    )


def _expected(survey: Survey, pairs: Pairs, source: _Source) -> tuple[torch.Tensor, Pairs]:
    """Return what elements would hold, for those that have an origin."""
    origins, exists = source(pairs.positions)
    return numbers(take(survey.golden, origins[exists])), pairs.where(exists)


def _explains(expected: torch.Tensor, pairs: Pairs, closeness: Closeness, guesses: int) -> bool:
    if pairs.count < _FEWEST or not held(closeness.same(expected, pairs.actual)):
        return False
    required = REQUIRED_SURPRISE + math.log(guesses)
    return surprise(expected, pairs, closeness) >= required


def _comparable(other: torch.Tensor, survey: Survey) -> bool:
    return (
        other.numel() == survey.total
        and not other.is_complex()
        and other.layout == torch.strided
        and survey.is_integer == (not other.is_floating_point())
    )


def _some(count: int) -> torch.Tensor:
    mask = torch.zeros(count, dtype=torch.bool)
    mask[spread(count, _MOST_FEW)] = True
    return mask

"""Null candidates: outputs that are wrong for certain, and whether the standard accepts them.

A standard that accepts one cannot tell a right output from a wrong one in that case: its outputs
are too small for the tolerance, or too alike, or what is wrong is too little of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import CHUNK, Chunk, chunk_pairs, over_chunks
from pytest_tritonverify.accuracy.distances import integer_distances
from pytest_tritonverify.accuracy.dtypes import bit_view
from pytest_tritonverify.accuracy.floats import measurable, take_in
from pytest_tritonverify.accuracy.judge import tally_for
from pytest_tritonverify.accuracy.limits import eco_limits
from pytest_tritonverify.accuracy.nonfinite import NonFinite, all_finite, non_finite
from pytest_tritonverify.accuracy.offenders import Addressing
from pytest_tritonverify.accuracy.workspace import Workspace
from pytest_tritonverify.strictness.formats import format_of
from pytest_tritonverify.strictness.limits import NULL_ROUNDOFFS, NULL_ROUNDOFFS_NARROW, NULL_SCALE
from pytest_tritonverify.strictness.regions import edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_tritonverify.accuracy.floats import FloatTally
    from pytest_tritonverify.accuracy.verdict import Category
    from pytest_tritonverify.strictness.regions import Region

# A 64th is more than the 1 % of all elements that may be wrong. Even: complex elements are two.
_FIRST = 1 << 12
_FIRST_SHARE = 64
_SAMPLED_PIECES = 16

FLOAT_CATEGORIES: tuple[Category, ...] = ("eco_open_source", "float_compute")


@dataclass(frozen=True)
class NullCandidate:
    """An output made of the golden.

    Attributes:
        name: For messages.
        alter: Turns flat values of the golden's dtype, shape `[n]`, into the candidate's.
        region: Where it does; None for everywhere.
    """

    name: str
    alter: Callable[[torch.Tensor], torch.Tensor]
    region: Region | None = None

    def piece(self, start: int, values: torch.Tensor) -> torch.Tensor:
        """Return the candidate's values for a piece of the golden.

        Args:
            start: Flat position of the first one; complex elements are two.
            values: The golden's, shape `[n]`.
        """
        if self.region is None:
            return self.alter(values)
        inside = self.region.inside(start, values.numel())
        # Few operators know float8: bits can always be chosen.
        chosen = torch.where(inside, bit_view(self.alter(values)), bit_view(values))
        return chosen.view(values.dtype)

    def part_of(self, golden: torch.Tensor) -> torch.Tensor:
        """Return the part of the golden that it changes: a view."""
        return golden if self.region is None else golden[self.region.index]


def candidates(golden: torch.Tensor) -> list[NullCandidate]:
    """Return the null candidates of a floating-point or complex golden."""
    return [
        NullCandidate("zeros", torch.zeros_like),
        NullCandidate("a permutation", reversed_order),
        NullCandidate(f"golden * {NULL_SCALE}", scaled),
        *(
            NullCandidate(f"{region.name} blanked", torch.zeros_like, region)
            for region in edges(golden)
        ),
    ]


def reversed_order(values: torch.Tensor) -> torch.Tensor:
    """Return values from the last to the first: of a long tensor, piece by piece."""
    return bit_view(values).flip(0).view(values.dtype)


def scaled(values: torch.Tensor) -> torch.Tensor:
    """Return values times 0.99, rounded to their dtype."""
    return (measurable(values) * NULL_SCALE).to(values.dtype)


def accepted_floats(golden: torch.Tensor, finite: int) -> list[NullCandidate]:
    """Return the null candidates that the documented standard accepts, and that are wrong.

    A candidate that differs from the golden by no more than rounding may, such as zeros where
    the golden is zero and a permutation of equal values, is no wrong output and left out.

    Each is judged piece by piece, and given up as soon as it fails for certain. One that changes
    a row or a column is judged by that alone.

    Args:
        golden: A floating-point or complex tensor of any strides.
        finite: How many of its numbers are finite; parts of complex elements count each.
    """
    if finite == 0:
        return []
    found = [null for null in candidates(golden) if _accepted(null, golden, finite)]
    return _wrong_ones(found, golden) if found else []


def surely_accepted(null: NullCandidate, dtype: torch.dtype) -> bool:
    """Tell whether the standard accepts a candidate whatever the golden is.

    Its factor and the rounding that follows stay within the relative tolerance of bfloat16 and
    float8, and that of subnormal numbers within the absolute one.
    """
    form = format_of(dtype)
    return (
        null.alter is scaled
        and eco_limits(form.name) is not None
        and 1 - NULL_SCALE + 1.01 * form.roundoff <= form.rtol
    )


def _accepted(null: NullCandidate, golden: torch.Tensor, finite: int) -> bool:
    if surely_accepted(null, golden.dtype):
        return True
    part = null.part_of(golden)
    rule, addressing = tally_for(golden.dtype), Addressing(tuple(part.shape))

    def passes(tally: FloatTally, nonfinite: NonFinite) -> bool:
        """Tell whether the rule holds if all that has not been looked at is right."""
        whole = rule.fresh()
        whole.merge(tally)
        whole.add_equal(torch.empty(0), finite - nonfinite.finite)
        return nonfinite.agree and whole.finding(addressing).passed

    def judge(pieces: Iterable[Chunk]) -> tuple[FloatTally, NonFinite]:
        tally, nonfinite, workspace = rule.fresh(), NonFinite(), Workspace()
        for start, values, _ in pieces:
            take_in(Chunk(start, values, null.alter(values)), tally, nonfinite, workspace)
            if not passes(tally, nonfinite):
                break
        return tally, nonfinite

    # Most fail within the first elements; those that do not are worth a pass.
    size = min(max(part.numel() // _FIRST_SHARE // 2 * 2, _FIRST), CHUNK)
    if not passes(*judge(itertools.islice(chunk_pairs(part, part, size=size), 1))):
        return False
    tally, nonfinite = rule.fresh(), NonFinite()
    for found, compared in over_chunks(part, part, judge):
        tally.merge(found)
        nonfinite.merge(compared)
    return passes(tally, nonfinite)


def _wrong_ones(nulls: list[NullCandidate], golden: torch.Tensor) -> list[NullCandidate]:
    """Return those whose error is beyond rounding, where they differ from the golden."""
    form = format_of(golden.dtype)
    roundoffs = NULL_ROUNDOFFS_NARROW if form.narrow else NULL_ROUNDOFFS
    size, count = _norm(golden, None)
    allowed = roundoffs * form.roundoff * size / math.sqrt(max(count, 1))
    return [null for null in nulls if _error(null, golden) > allowed]


def _error(null: NullCandidate, golden: torch.Tensor) -> float:
    """Return a candidate's root mean square error where it differs, from a sample of pieces."""
    part = null.part_of(golden)
    pieces = -(-part.numel() // CHUNK)
    for step in dict.fromkeys((max(1, pieces // _SAMPLED_PIECES), 1)):
        size, differing = _norm(part, null, step)
        if differing:
            return size / math.sqrt(differing)
    return 0.0


def _norm(golden: torch.Tensor, null: NullCandidate | None, step: int = 1) -> tuple[float, int]:
    """Return the Euclidean norm of a golden, or of a candidate's error, over finite numbers.

    Besides: how many there are, or in how many the candidate differs. With a step greater than
    one, only one piece in so many is looked at.
    """

    def measure(pieces: Iterator[Chunk]) -> tuple[float, int]:
        norm, count = 0.0, 0
        for _, values, _ in itertools.islice(pieces, 0, None, step):
            size = expected = measurable(values)
            if null is not None:
                size = measurable(null.alter(values)).sub(expected)
            if not all_finite(size):
                size = torch.where(non_finite(size), 0.0, size)
            norm = math.hypot(norm, float(torch.linalg.vector_norm(size, dtype=torch.float64)))
            count += values.numel() if null is None else int(torch.count_nonzero(size))
        return norm, count

    found = over_chunks(golden, golden, measure)
    return math.hypot(*(norm for norm, _ in found)), sum(count for _, count in found)


def accepted_integers(golden: torch.Tensor, tolerance: int) -> list[str]:
    """Return the null candidates that a tolerance accepts in place of an integer golden.

    Zeros and a permutation only: one step, which is what the tolerance is for, is all that 1 %
    makes of a small integer.

    Args:
        golden: An integer tensor.
        tolerance: Greatest difference that is accepted.
    """
    if tolerance == 0 or golden.numel() == 0:
        return []
    found = []
    for name, alter in (("zeros", torch.zeros_like), ("a permutation", reversed_order)):
        greatest = 0
        for piece in chunk_pairs(golden, golden):
            for _, distances in integer_distances(piece.golden, alter(piece.golden)):
                greatest = max(greatest, distances.greatest)
            if greatest > tolerance:
                break
        if 0 < greatest <= tolerance:
            found.append(name)
    return found

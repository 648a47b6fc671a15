"""One pass over a pair of floating-point or complex tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch

from pytest_tritonverify.accuracy.chunks import Chunk, over_chunks
from pytest_tritonverify.accuracy.dtypes import dtype_name, same_bits
from pytest_tritonverify.accuracy.limits import CAST_BOUNDS
from pytest_tritonverify.accuracy.nonfinite import NonFinite, all_finite, non_finite
from pytest_tritonverify.accuracy.peaks import Peaks
from pytest_tritonverify.accuracy.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from pytest_tritonverify.accuracy.offenders import Addressing
    from pytest_tritonverify.accuracy.verdict import Finding


_BLOCK = 1 << 14


@dataclass(frozen=True)
class Elements:
    """A run of elements that are finite on both sides, among placeholders for those that aren't.

    All numbers but `original` are held in float64 where the golden is float64, else in float32,
    which holds every narrower format exactly.

    Attributes:
        start: Flat position of the first one.
        golden: Real values, shape `[n]`, n > 0; one in a placeholder.
        actual: The implementation's values rounded to the golden's dtype; overflow of the cast
            shows as infinity or NaN here. One in a placeholder, which no rule objects to.
        original: The implementation's values before the cast, in any dtype.
        difference: `|actual - golden|`, rounded; overflow of the subtraction shows as infinity.
        workspace: Memory for what a rule makes of them.
        placeholders: How many elements are none.
    """

    start: int
    golden: torch.Tensor
    actual: torch.Tensor
    original: torch.Tensor
    difference: Peaks
    workspace: Workspace
    placeholders: int = 0

    @property
    def count(self) -> int:
        """How many there are, placeholders apart."""
        return self.golden.numel() - self.placeholders

    @cached_property
    def greatest(self) -> float:
        """The greatest difference; NaN where one is NaN."""
        return self.difference.greatest


class FloatTally(Protocol):
    """A rule that is fed with finite values and says at the end whether it holds."""

    def fresh(self) -> Self:
        """Return the same rule that has taken in nothing yet."""

    def merge(self, later: Self) -> None:
        """Take in what the same rule found in a later part of the tensors."""

    def add_equal(self, values: torch.Tensor, finite: int) -> None:
        """Take in a piece that is bit for bit equal on both sides.

        Args:
            values: The golden's values in any dtype that torch's operators know, shape `[n]`,
                non-finite ones included.
            finite: How many of them are finite.
        """

    def add(self, elements: Elements) -> None:
        """Take in elements that are finite on both sides, placeholders apart."""

    def finding(self, addressing: Addressing) -> Finding:
        """Return what was found."""


def scan_floats(golden: torch.Tensor, actual: torch.Tensor, tally: FloatTally) -> NonFinite:
    """Feed a rule with a pair of tensors and compare their non-finite values on the way.

    Pieces that are equal bit for bit take a short cut. A piece in which non-finite values were
    found to differ is not fed to the rule: its finding decides nothing then. Complex tensors are
    judged as their parts, real and imaginary side by side.

    Args:
        golden: A floating-point or complex tensor.
        actual: A tensor of the same family and shape; another width is cast to the golden's.
        tally: The rule.

    Returns:
        The comparison of the non-finite values.
    """

    def scan(pieces: Iterator[Chunk]) -> tuple[FloatTally, NonFinite]:
        part, found, workspace = tally.fresh(), NonFinite(), Workspace()
        for piece in pieces:
            take_in(piece, part, found, workspace)
        return part, found

    nonfinite = NonFinite()
    for part, found in over_chunks(golden, actual, scan):
        tally.merge(part)
        nonfinite.merge(found)
    return nonfinite


def take_in(piece: Chunk, tally: FloatTally, nonfinite: NonFinite, workspace: Workspace) -> None:
    """Feed a rule with one piece; see `scan_floats`."""
    start, golden, actual = piece
    same_dtype = golden.dtype == actual.dtype
    if same_dtype and same_bits(golden, actual):
        values = measurable(golden)
        tally.add_equal(values, nonfinite.add_equal(values))
        return
    elements = _elements(start, golden, actual, workspace)
    # NaN and infinities on either side leave one of the two among the differences; only a cast
    # may lose them.
    if not math.isfinite(elements.greatest) or not (same_dtype or all_finite(elements.original)):
        elements = _set_apart(elements, nonfinite, same_dtype=same_dtype)
    nonfinite.add_finite(elements.count)
    if nonfinite.agree:
        tally.add(elements)


def _elements(
    start: int, golden: torch.Tensor, actual: torch.Tensor, workspace: Workspace
) -> Elements:
    wide = torch.float64 if golden.dtype == torch.float64 else torch.float32
    original = measurable(actual)
    got = original if actual.dtype == golden.dtype else _cast(original, golden.dtype)
    expected = workspace.wide("golden", golden, wide)
    got = workspace.wide("actual", got, wide)
    difference = _difference(expected, got, workspace)
    return Elements(start, expected, got, original, difference, workspace)


def _difference(golden: torch.Tensor, actual: torch.Tensor, workspace: Workspace) -> Peaks:
    room = workspace.take("difference", golden.numel(), golden.dtype)
    return Peaks.of(torch.sub(actual, golden, out=room).abs_())


def _set_apart(elements: Elements, nonfinite: NonFinite, *, same_dtype: bool) -> Elements:
    """Compare non-finite values and put placeholders in their places."""
    marks = non_finite(elements.difference.values)
    if not same_dtype:
        marks |= non_finite(elements.original)
    suspects = torch.nonzero(marks).flatten()
    apart = nonfinite.add(
        suspects + elements.start,
        elements.golden.index_select(0, suspects),
        elements.original.index_select(0, suspects),
    )
    places = suspects[apart]
    golden = elements.golden.index_fill(0, places, 1.0)
    actual = elements.actual.index_fill(0, places, 1.0)
    return Elements(
        elements.start,
        golden,
        actual,
        elements.original,
        _difference(golden, actual, elements.workspace),
        elements.workspace,
        places.numel(),
    )


def measurable(values: torch.Tensor) -> torch.Tensor:
    """Return real values in a dtype that torch's operators support.

    Few of them know float8; every float8 value is exact in float32.
    """
    return values.float() if values.element_size() == 1 else values


def _cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round finite values to a dtype; NaN where it holds nothing that they could round to."""
    rounded = measurable(values.to(dtype))
    bounds = CAST_BOUNDS.get(dtype_name(dtype))
    if bounds is None:
        return rounded
    return rounded.masked_fill((values < bounds[0]) | (values > bounds[1]), math.nan)


def greater(left: float, right: float) -> float:
    """Return the greater of two numbers; NaN where one is NaN, like torch and unlike `max`."""
    return left if math.isnan(left) or right <= left else right


def blocks(elements: Elements, chosen: torch.Tensor | None = None) -> Iterator[Block]:
    """Yield elements by blocks, for work that takes a dozen float64 temporaries.

    Args:
        elements: The elements.
        chosen: Indices of some of them, ascending; all where it is None.
    """
    count = elements.golden.numel() if chosen is None else chosen.numel()
    for start in range(0, count, _BLOCK):
        at = slice(start, min(count, start + _BLOCK))
        yield Block(elements, range(at.start, at.stop) if chosen is None else chosen[at])


@dataclass(frozen=True)
class Block:
    """Some of a run of elements.

    Attributes:
        elements: The run.
        indices: Their offsets in it, m at most 2^14.
    """

    elements: Elements
    indices: torch.Tensor | range

    @property
    def golden(self) -> torch.Tensor:
        """See `Elements`, shape `[m]`."""
        return self._of(self.elements.golden)

    @property
    def actual(self) -> torch.Tensor:
        """See `Elements`, shape `[m]`."""
        return self._of(self.elements.actual)

    @property
    def difference(self) -> torch.Tensor:
        """See `Elements`, shape `[m]`."""
        return self._of(self.elements.difference.values)

    def _of(self, values: torch.Tensor) -> torch.Tensor:
        if isinstance(self.indices, range):
            return values[self.indices.start : self.indices.stop]
        return values.index_select(0, self.indices)

"""One pass over a pair of floating-point or complex tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch

from .chunks import chunk_pairs
from .dtypes import dtype_name, same_bits
from .limits import CAST_BOUNDS
from .nonfinite import NonFinite, measurable

if TYPE_CHECKING:
    from .offenders import Addressing
    from .verdict import Finding


class FloatTally(Protocol):
    """A rule that is fed with finite values and says at the end whether it holds."""

    def add_equal(self, values: torch.Tensor, finite: int) -> None:
        """Take in a piece that is bit for bit equal on both sides.

        Args:
            values: The golden's values, shape `[n]`, non-finite ones included.
            finite: How many of them are finite.
        """

    def add(
        self,
        positions: torch.Tensor | int,
        golden: torch.Tensor,
        actual: torch.Tensor,
        original: torch.Tensor,
    ) -> None:
        """Take in elements that are finite on both sides.

        Args:
            positions: Flat positions, shape `[n]`, or the first one of a run.
            golden: Real values, shape `[n]`, n > 0.
            actual: The implementation's values rounded to the golden's dtype, perhaps held in a
                wider one; overflow of the cast shows as infinity or NaN here.
            original: The implementation's values before the cast.
        """

    def finding(self, addressing: Addressing) -> Finding:
        """Return what was found."""


def scan_floats(golden: torch.Tensor, actual: torch.Tensor, tally: FloatTally) -> NonFinite:
    """Feed a rule with a pair of tensors and compare their non-finite values on the way.

    Pieces that are equal bit for bit take a short cut. Once non-finite values were found to
    differ, the rule is no longer fed: its finding decides nothing then. Complex tensors are judged
    as their parts, real and imaginary side by side.

    Args:
        golden: A floating-point or complex tensor.
        actual: A tensor of the same family and shape; another width is cast to the golden's.
        tally: The rule.

    Returns:
        The comparison of the non-finite values.
    """
    nonfinite = NonFinite()
    same_dtype = golden.dtype == actual.dtype
    for start, expected, got in chunk_pairs(golden, actual):
        if same_dtype and same_bits(expected, got):
            finite = nonfinite.add_equal(expected)
            tally.add_equal(expected, finite)
            continue
        mask = nonfinite.add(start, expected, got)
        if nonfinite.agree:
            _feed(tally, start, expected, got, mask)
    return nonfinite


def _feed(
    tally: FloatTally,
    first: int,
    expected: torch.Tensor,
    got: torch.Tensor,
    mask: torch.Tensor | None,
) -> None:
    positions: torch.Tensor | int = first
    if mask is not None:
        if not mask.any():
            return
        positions = torch.nonzero(mask).flatten() + first
        expected, got = expected[mask], got[mask]
    tally.add(positions, expected, _cast(got, expected.dtype), got)


def _cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round finite values to a dtype; NaN where it holds nothing that they could round to."""
    if values.dtype == dtype:
        return values
    rounded = values.to(dtype)
    bounds = CAST_BOUNDS.get(dtype_name(dtype))
    if bounds is None:
        return rounded
    exact = measurable(values)
    outside = (exact < bounds[0]) | (exact > bounds[1])
    return measurable(rounded).masked_fill(outside, math.nan)


def position_of(positions: torch.Tensor | int, offset: int) -> int:
    """Return the flat position of a piece's element; see `FloatTally.add`."""
    return positions + offset if isinstance(positions, int) else int(positions[offset])

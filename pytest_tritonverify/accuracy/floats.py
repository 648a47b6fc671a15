"""One pass over a pair of floating-point or complex tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch

from .chunks import chunk_pairs
from .dtypes import dtype_name, same_bits
from .limits import CAST_BOUNDS
from .nonfinite import NonFinite

if TYPE_CHECKING:
    from .offenders import Addressing
    from .verdict import Finding


class FloatTally(Protocol):
    """A rule that is fed with finite values and says at the end whether it holds."""

    def add_equal(self, values: torch.Tensor, finite: int) -> None:
        """Take in a piece that is bit for bit equal on both sides.

        Args:
            values: The golden's values, as in `add`, shape `[n]`, non-finite ones included.
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
            golden: Real values, shape `[n]`, n > 0; float8 is held in float32.
            actual: The implementation's values rounded to the golden's dtype and held like it;
                overflow of the cast shows as infinity or NaN here.
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
    for start, left, right in chunk_pairs(golden, actual):
        expected, got = measurable(left), measurable(right)
        if same_dtype and same_bits(left, right):
            tally.add_equal(expected, nonfinite.add_equal(expected))
            continue
        mask = nonfinite.add(start, expected, got)
        if not nonfinite.agree:
            continue
        positions: torch.Tensor | int = start
        if mask is not None:
            if not mask.any():
                continue
            positions = torch.nonzero(mask).flatten() + start
            expected, got = expected[mask], got[mask]
        tally.add(positions, expected, got if same_dtype else _cast(got, left.dtype), got)
    return nonfinite


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


def position_of(positions: torch.Tensor | int, offset: int) -> int:
    """Return the flat position of a piece's element; see `FloatTally.add`."""
    return positions + offset if isinstance(positions, int) else int(positions[offset])

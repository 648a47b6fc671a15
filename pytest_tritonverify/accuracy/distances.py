"""How far integers lie apart, whatever their widths and signs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch

from pytest_tritonverify.accuracy.dtypes import wide_integers

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 14
"""Elements whose distances are measured in halves at a time, which takes a dozen temporaries."""

_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1


class Distances(Protocol):
    """`|actual - golden|` of two flat tensors, shape `[n]`, n > 0."""

    @property
    def greatest(self) -> int:
        """The greatest one, exactly."""

    def beyond(self, tolerance: int) -> torch.Tensor:
        """Return the indices of those above a tolerance below 2**31, ascending, int64."""

    def ranks(self, chosen: torch.Tensor) -> torch.Tensor:
        """Return integers in the order of some of them; the earlier of equals is not less."""


def integer_distances(
    golden: torch.Tensor, actual: torch.Tensor
) -> Iterator[tuple[int, Distances]]:
    """Measure two flat integer tensors of one shape, of any widths and signs.

    Yields:
        Runs that follow each other: the index of the first element, and the distances.
    """
    for dtype in (torch.int32, torch.int64):
        if _fits(golden, actual, dtype):
            yield 0, _Plain.between(golden, actual, dtype)
            return
    for start in range(0, golden.numel(), _BLOCK):
        block = slice(start, start + _BLOCK)
        yield start, _Halved.between(golden[block], actual[block])


def integer_at(values: torch.Tensor, index: int) -> int:
    """Return one element of a flat integer tensor as an exact Python integer."""
    value = int(wide_integers(values[index : index + 1]).item())
    return value + (1 << 64) if value < 0 and not values.dtype.is_signed else value


def _fits(golden: torch.Tensor, actual: torch.Tensor, dtype: torch.dtype) -> bool:
    """Tell whether a signed dtype holds both sides and all differences."""
    wider = max(golden.element_size(), actual.element_size())
    if wider * 2 <= dtype.itemsize:
        return True
    if golden.dtype != dtype or actual.dtype != dtype:
        return False
    ends = [int(end) for side in (golden, actual) for end in torch.aminmax(side)]
    return max(ends) - min(ends) <= torch.iinfo(dtype).max


@dataclass(frozen=True)
class _Plain:
    """Distances that fit into a signed dtype."""

    values: torch.Tensor

    @classmethod
    def between(cls, golden: torch.Tensor, actual: torch.Tensor, dtype: torch.dtype) -> _Plain:
        return cls(torch.sub(actual.to(dtype), golden.to(dtype)).abs_())

    @cached_property
    def greatest(self) -> int:
        return int(self.values.max())

    def beyond(self, tolerance: int) -> torch.Tensor:
        return torch.nonzero(self.values > tolerance).flatten()

    def ranks(self, chosen: torch.Tensor) -> torch.Tensor:
        return self.values[chosen]


@dataclass(frozen=True)
class _Halved:
    """Distances `high * 2**32 + low` with low below 2**32, both int64.

    Two 64-bit integers can lie further apart than 64 bits can say.
    """

    high: torch.Tensor
    low: torch.Tensor

    @classmethod
    def between(cls, golden: torch.Tensor, actual: torch.Tensor) -> _Halved:
        golden_high, golden_low = _halves(golden)
        actual_high, actual_low = _halves(actual)
        high, low = actual_high - golden_high, actual_low - golden_low
        # Negate where negative, then borrow so that low is not negative; shifts round down.
        negative = (high < 0) | ((high == 0) & (low < 0))
        high, low = torch.where(negative, -high, high), torch.where(negative, -low, low)
        return cls(high + (low >> _HALF_BITS), low & _HALF_MASK)

    @cached_property
    def greatest(self) -> int:
        top = self.high.max()
        return (int(top) << _HALF_BITS) + int(self.low[self.high == top].max())

    def beyond(self, tolerance: int) -> torch.Tensor:
        return torch.nonzero((self.high > 0) | (self.low > tolerance)).flatten()

    def ranks(self, chosen: torch.Tensor) -> torch.Tensor:
        order = torch.argsort(self.low[chosen], descending=True, stable=True)
        order = order[torch.argsort(self.high[chosen][order], descending=True, stable=True)]
        ranks = torch.empty_like(order)
        ranks[order] = torch.arange(0, -order.numel(), -1)
        return ranks


def _halves(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Split integers into `high * 2**32 + low` with `0 <= low < 2**32`."""
    bits = wide_integers(values)
    high = bits >> _HALF_BITS
    return high if values.dtype.is_signed else high & _HALF_MASK, bits & _HALF_MASK

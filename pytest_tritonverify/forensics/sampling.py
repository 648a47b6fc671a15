"""Which elements fail, and a sample of them that fits in a cache.

Memory is bounded whatever the outputs' size: one piece of each tensor at a time, and at most
`MOST_POSITIONS` positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import chunk_pairs
from pytest_tritonverify.accuracy.dtypes import kind_of, same_bits, wide_integers
from pytest_tritonverify.accuracy.floats import measurable

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import Failing

MOST_POSITIONS = 1 << 18
"""Failing positions that are kept; of more, a random sample of them is."""

SAMPLE = 4096
"""Elements whose values are looked at, of the failing ones and of the others."""

_PIECE = 1 << 15
_SAMPLED_FAILURES = 1 << 16
_SEED = 20240229
_BIT_VIEWS: dict[int, torch.dtype] = {
    1: torch.uint8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}


@dataclass(frozen=True)
class Pairs:
    """Some elements of both sides.

    Attributes:
        positions: Flat row-major positions, ascending, int64, shape `[m]`.
        golden: float64, or int64 where the golden holds integers or booleans, shape `[m]`.
        actual: The same of the implementation.
    """

    positions: torch.Tensor
    golden: torch.Tensor
    actual: torch.Tensor

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self.positions.numel()

    def where(self, mask: torch.Tensor) -> Pairs:
        """Return the elements that a mask of shape `[m]` selects."""
        return Pairs(self.positions[mask], self.golden[mask], self.actual[mask])


@dataclass(frozen=True)
class Survey:
    """An output's failing elements.

    Attributes:
        golden: The golden as real numbers: complex elements are pairs along one more axis.
        actual: The implementation's output likewise.
        total: Numbers of the output.
        count: How many fail.
        positions: Where they lie, ascending: all of them, or a random sample.
        draws: How many elements were tried for `positions`; see `spread`.
        failing: A random sample of them.
        passing: A random sample of the others.
    """

    golden: torch.Tensor
    actual: torch.Tensor
    total: int
    count: int
    positions: torch.Tensor
    draws: int
    failing: Pairs
    passing: Pairs

    @property
    def complete(self) -> bool:
        """Whether `positions` are all failing elements, not a sample."""
        return self.draws == self.total

    @property
    def is_integer(self) -> bool:
        """Whether values are held as int64."""
        return self.failing.golden.dtype == torch.int64


def survey(golden: torch.Tensor, actual: torch.Tensor, failing: Failing) -> Survey:
    """Walk both tensors once and sample them.

    Args:
        golden: A strided CPU tensor.
        actual: A strided CPU tensor of the same shape.
        failing: The rule's test of elements.
    """
    golden, actual = real_numbers(golden.detach()), real_numbers(actual.detach())
    total = golden.numel()
    count, positions = _walk(golden, actual, failing)
    complete = positions.numel() == count
    draws = total
    if not complete:
        draws = min(MOST_POSITIONS, math.ceil(_SAMPLED_FAILURES * total / count))
        positions = spread(total, draws)
        positions = positions[failing(take(golden, positions), take(actual, positions))]
    chosen = positions[spread(positions.numel(), SAMPLE)]
    others = spread(total, 2 * SAMPLE)
    others = others[~failing(take(golden, others), take(actual, others))]
    others = others[spread(others.numel(), SAMPLE)]
    return Survey(
        golden,
        actual,
        total,
        count,
        positions,
        draws,
        failing=pairs_at(golden, actual, chosen),
        passing=pairs_at(golden, actual, others),
    )


def _walk(golden: torch.Tensor, actual: torch.Tensor, failing: Failing) -> tuple[int, torch.Tensor]:
    """Return how many elements fail, and where; fewer positions where there are too many."""
    # One buffer from the start: small tensors kept from every piece would lie between the
    # temporaries, whose memory the allocator could then neither join nor give back.
    kept = torch.empty(min(MOST_POSITIONS, golden.numel()), dtype=torch.int64)
    count = filled = 0
    same_dtype = golden.dtype == actual.dtype
    for start, expected, got in chunk_pairs(golden, actual, _PIECE):
        if same_dtype and same_bits(expected, got):
            continue
        mask = failing(expected, got)
        found = int(torch.count_nonzero(mask))
        count += found
        if found and count <= MOST_POSITIONS:
            torch.add(torch.nonzero(mask).flatten(), start, out=kept[filled:count])
            filled = count
    return count, kept[:filled].clone()


def spread(total: int, draws: int) -> torch.Tensor:
    """Return about `draws` positions below `total`, ascending, one at random of every stretch.

    All positions where there are no more than that. The same arguments give the same positions.
    """
    if total <= draws:
        return torch.arange(total)
    generator = torch.Generator().manual_seed(_SEED)
    within = torch.rand(draws, generator=generator, dtype=torch.float64)
    bounds = torch.arange(draws + 1).mul_(total).div_(draws, rounding_mode="floor")
    widths = bounds.diff()
    # The product may be rounded up to the width.
    return bounds[:-1] + within.mul_(widths).long().minimum(widths - 1)


def take(values: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the elements at flat row-major positions; strided tensors are not copied.

    Args:
        values: A strided real tensor.
        positions: int64, any shape.

    Returns:
        A tensor of the values' dtype and the positions' shape.
    """
    flat, places = _storage_view(values), positions
    if not values.is_contiguous():
        places, rest = torch.zeros_like(positions), positions
        for extent, stride in zip(reversed(values.shape), reversed(values.stride()), strict=True):
            places = places + rest % extent * stride
            rest = rest // extent
    # Indexing knows few of the rarer formats; all of them are integers of some size.
    bits = flat.view(_BIT_VIEWS[flat.element_size()])
    return bits[places].view(values.dtype)


def _storage_view(values: torch.Tensor) -> torch.Tensor:
    if values.is_contiguous():
        return values.view(-1)
    steps = zip(values.shape, values.stride(), strict=True)
    reach = 1 + sum((extent - 1) * stride for extent, stride in steps)
    return values.as_strided((reach,), (1,), values.storage_offset())


def pairs_at(golden: torch.Tensor, actual: torch.Tensor, positions: torch.Tensor) -> Pairs:
    """Return the elements at flat positions as numbers; see `Pairs`."""
    return Pairs(positions, numbers(take(golden, positions)), numbers(take(actual, positions)))


def numbers(values: torch.Tensor) -> torch.Tensor:
    """Return values as float64 or int64: exactly, unsigned 64-bit ones by their bits."""
    if kind_of(values.dtype) in {"int", "bool"}:
        return wide_integers(values)
    if kind_of(values.dtype) is None:
        return values.view(_BIT_VIEWS[values.element_size()]).to(torch.int64)
    return measurable(values).to(torch.float64)


def real_numbers(values: torch.Tensor) -> torch.Tensor:
    """View a complex tensor as real numbers; pending conjugations and negations are carried out."""
    values = values.resolve_conj().resolve_neg()
    return torch.view_as_real(values) if values.is_complex() else values

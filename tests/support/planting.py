"""Faults to plant into outputs, with the codes that name them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.int32, torch.int64, torch.int16)
SHAPES = (
    (1000,),
    (4099,),
    (65, 130),
    (64, 64),
    (100, 17),
    (7, 33, 65),
    (3, 4, 16, 32),
    (2, 3, 5, 7, 11),
)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A way to spoil an output.

    Attributes:
        plant: Returns a spoiled copy, or None where the fault has no room in that output.
        codes: Codes of the place or the operation.
        contents: Codes of what the elements then hold, right where the place is not recognised.
        dtypes: Dtypes that it is meant for.
    """

    plant: Callable[[torch.Tensor, random.Random], torch.Tensor | None]
    codes: frozenset[str]
    contents: frozenset[str] = frozenset()
    dtypes: tuple[torch.dtype, ...] = (*FLOATS, *INTEGERS)


FAULTS: dict[str, Fault] = {}
_VOID = frozenset({"zeros", "uninitialised", "broadcast"})


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Return random values without structure."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    drawn = torch.randint(max(low, -1000), min(high, 1000), shape, generator=generator)
    return drawn.to(dtype)


def poison(dtype: torch.dtype) -> float:
    """Return what fresh memory is filled with."""
    return math.nan if dtype.is_floating_point else torch.iinfo(dtype).max


def _fault(
    *codes: str,
    contents: frozenset[str] = frozenset(),
    dtypes: tuple[torch.dtype, ...] = (*FLOATS, *INTEGERS),
) -> Callable[
    [Callable[[torch.Tensor, random.Random], torch.Tensor | None]],
    Callable[[torch.Tensor, random.Random], torch.Tensor | None],
]:
    def register(
        plant: Callable[[torch.Tensor, random.Random], torch.Tensor | None],
    ) -> Callable[[torch.Tensor, random.Random], torch.Tensor | None]:
        FAULTS[plant.__name__] = Fault(plant, frozenset(codes), contents, dtypes)
        return plant

    return register


def _void(values: torch.Tensor, draw: random.Random) -> None:
    values.fill_(draw.choice([0, poison(values.dtype)]))


def _spoil(values: torch.Tensor, draw: random.Random) -> None:
    if draw.random() < 0.5:
        _void(values, draw)
    else:
        values.mul_(2)


@_fault("tail_unwritten", contents=_VOID)
def flat_tail(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    block = draw.choice([16, 32, 64, 128, 256])
    first = output.numel() // block * block
    if output.numel() - first < 3:
        return None
    spoiled = output.clone()
    _void(spoiled.view(-1)[first:], draw)
    return spoiled


@_fault("tail_unwritten", "last_column", contents=_VOID)
def tail_of_columns(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    columns, block = output.shape[-1], draw.choice([4, 8, 16, 32])
    if output.dim() < 2 or columns % block == 0 or columns < block:
        return None
    spoiled = output.clone()
    _void(spoiled[..., columns // block * block :], draw)
    return spoiled


@_fault("tail_wrong")
def wrong_tail(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    block = draw.choice([32, 64, 128, 256])
    first = output.numel() // block * block
    rest = output.numel() - first
    if rest < 12:
        return None
    spoiled = output.clone()
    spoiled.view(-1)[first:] = 3 * values((rest,), output.dtype, draw.randrange(10**6)) + 1
    return spoiled


@_fault("one_block", contents=frozenset({*_VOID, "sign_flipped", "constant_factor"}))
def one_block(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    block = draw.choice([32, 64, 128, 256])
    # A first block may as well be first rows.
    if output.numel() // block < 4:
        return None
    number = draw.randrange(1, output.numel() // block - 1)
    spoiled = output.clone()
    _spoil(spoiled.view(-1)[number * block : (number + 1) * block], draw)
    return spoiled


@_fault("every_kth", contents=frozenset({*_VOID, "constant_factor"}))
def every_kth(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    period = draw.choice([2, 3, 4, 6, 7, 8])
    spoiled = output.clone()
    _spoil(spoiled.view(-1)[draw.randrange(period) :: period], draw)
    return spoiled


def _edge(output: torch.Tensor, draw: random.Random, axis: int, index: int) -> torch.Tensor | None:
    if output.dim() < 2 or output.shape[axis] < 9:
        return None
    spoiled = output.clone()
    _spoil(spoiled.select(axis, index), draw)
    return spoiled


_EDGE = frozenset({*_VOID, "constant_factor", "borders"})


@_fault("first_row", contents=_EDGE)
def first_row(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return _edge(output, draw, -2, 0)


@_fault("last_row", contents=_EDGE | {"tail_wrong"})
def last_row(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return _edge(output, draw, -2, -1)


@_fault("first_column", contents=_EDGE)
def first_column(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return _edge(output, draw, -1, 0)


@_fault("last_column", contents=_EDGE | {"tail_wrong"})
def last_column(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return _edge(output, draw, -1, -1)


@_fault("transposed")
def transposed(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    if output.dim() < 2:
        return None
    first, second = draw.sample(range(output.dim()), 2)
    return output.transpose(first, second).contiguous().view(output.shape)


@_fault("rolled")
def rolled(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    axis = draw.choice([*range(output.dim()), None])
    if axis is None:
        return output.view(-1).roll(draw.choice([1, -1])).view(output.shape)
    return output.roll(draw.choice([1, -1]), axis) if output.shape[axis] > 2 else None


@_fault("broadcast")
def broadcast_one(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    spoiled = output.clone()
    spoiled[:] = spoiled.view(-1)[draw.randrange(output.numel())].clone()
    return spoiled


@_fault("broadcast")
def broadcast_along(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    if output.dim() < 2:
        return None
    axis = draw.randrange(output.dim())
    kept = output.select(axis, draw.randrange(output.shape[axis])).unsqueeze(axis)
    return kept.expand(output.shape).clone()


@_fault("constant_factor")
def factor(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return output * draw.choice([2, 3, -2] if not output.is_floating_point() else [2, 0.5, -1.5])


@_fault("constant_offset")
def offset(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    return output + draw.choice([5, -3, 12] if not output.is_floating_point() else [1, -3, 0.5])


@_fault("half_precision", dtypes=(torch.float32, torch.float64))
def rounded(output: torch.Tensor, _draw: random.Random) -> torch.Tensor | None:
    return output.bfloat16().to(output.dtype)


@_fault("sign_flipped")
def negated(output: torch.Tensor, _draw: random.Random) -> torch.Tensor | None:
    return -output


@_fault("zeros", contents=frozenset({"broadcast"}))
def all_zeros(output: torch.Tensor, _draw: random.Random) -> torch.Tensor | None:
    return torch.zeros_like(output)


@_fault("uninitialised", contents=frozenset({"broadcast"}))
def nothing_written(output: torch.Tensor, _draw: random.Random) -> torch.Tensor | None:
    return torch.full_like(output, poison(output.dtype))


@_fault("off_by_one", dtypes=INTEGERS)
def one_off(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    generator = torch.Generator().manual_seed(draw.randrange(10**6))
    hit = torch.rand(output.shape, generator=generator) < draw.uniform(0.1, 1)
    return output + hit.to(output.dtype) * draw.choice([1, -1])


@_fault("truncation", dtypes=INTEGERS)
def truncated(output: torch.Tensor, draw: random.Random) -> torch.Tensor | None:
    generator = torch.Generator().manual_seed(draw.randrange(10**6))
    uneven = torch.rand(output.shape, generator=generator) < 0.8
    return output + ((output < 0) & uneven).to(output.dtype)

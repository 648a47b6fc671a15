"""A stand-in for Triton: programs as Python functions over flat memory, one call a program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.forensics import LaunchFacts

if TYPE_CHECKING:
    from collections.abc import Callable


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Allocate memory as candidates get it: NaN, or the integer maximum."""
    filler = math.nan if dtype.is_floating_point else torch.iinfo(dtype).max
    return torch.full(shape, filler, dtype=dtype)


def load(
    memory: torch.Tensor,
    offsets: torch.Tensor,
    mask: torch.Tensor | None = None,
    other: float | None = None,
) -> torch.Tensor:
    """Read lanes; masked ones hold poison unless `other` is given."""
    flat = memory.view(-1)
    if mask is None:
        return flat[offsets % flat.numel()]
    values = flat[offsets.clamp(0, flat.numel() - 1)]
    if other is not None:
        return torch.where(mask, values, torch.tensor(other, dtype=values.dtype))
    if not values.is_floating_point():
        return torch.where(mask, values, torch.iinfo(values.dtype).max)
    largest = torch.finfo(values.dtype).max
    patterns = torch.tensor([math.nan, largest, math.nan, -largest], dtype=values.dtype)
    poison = patterns[torch.arange(values.numel()) % len(patterns)].view(values.shape)
    return torch.where(mask, values, poison)


def store(
    memory: torch.Tensor,
    offsets: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:
    """Write lanes; lanes beyond the memory are dropped."""
    flat = memory.view(-1)
    inside = (offsets >= 0) & (offsets < flat.numel())
    if mask is not None:
        inside &= mask
    flat[offsets[inside]] = values.expand(offsets.shape)[inside].to(flat.dtype)


class Launcher:
    """Runs programs over a grid and notes what was launched."""

    def __init__(self) -> None:
        self.launches: list[LaunchFacts] = []

    def run(self, program: Callable[..., None], grid: tuple[int, ...], **constexprs: int) -> None:
        """Call a program once for every place of the grid."""
        self.launches.append(LaunchFacts(program.__name__, "k.py", 1, grid, constexprs))
        for place in torch.cartesian_prod(*(torch.arange(n) for n in grid)).view(-1, len(grid)):
            program(*place.tolist(), **constexprs)


def blocks(size: int, block: int) -> int:
    """Return how many blocks cover a size."""
    return -(-size // block)

"""Block sizes: from the launches where there are any, else from the failing elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .facts import LaunchFacts

_NAMES = ("block", "tile", "size", "chunk")
_NEVER = ("num_warps", "num_stages", "num_ctas")
_LARGEST = 1 << 24
_NEARLY = 0.9


class Block(NamedTuple):
    """A block of an axis that some failing elements lie in.

    Attributes:
        size: Indices per block.
        number: Which block it is, from 0.
        known: Whether the size is a launch's, not a guess.
    """

    size: int
    number: int
    known: bool


class Coverage(NamedTuple):
    """What a launch's grid reaches.

    Attributes:
        launch: The launch.
        programs: Programs along the axis.
        size: Indices that each of them handles.
    """

    launch: LaunchFacts
    programs: int
    size: int


def known_sizes(launches: Sequence[LaunchFacts]) -> tuple[int, ...]:
    """Return the block sizes among launches' compile-time arguments, ascending.

    Those whose name says so, or all where none does; a product of two of them too, since a
    program may handle a tile of a flattened output.
    """
    named: set[int] = set()
    others: set[int] = set()
    products: set[int] = set()
    for launch in launches:
        sizes = []
        for name, value in launch.constexprs.items():
            if isinstance(value, bool) or not 1 < value <= _LARGEST or name.lower() in _NEVER:
                continue
            if any(word in name.lower() for word in _NAMES):
                named.add(value)
                sizes.append(value)
            else:
                others.add(value)
        products |= {a * b for i, a in enumerate(sizes) for b in sizes[:i] if a * b <= _LARGEST}
    return tuple(sorted(named | products)) if named else tuple(sorted(others))


def block_of(start: int, stop: int, size: int, known: Sequence[int]) -> Block | None:
    """Return the one block of an axis that an interval is, or None.

    Args:
        start: First index of the interval.
        stop: One above the last one.
        size: Indices of the axis.
        known: Block sizes that kernels were launched with.
    """
    width = stop - start
    for block in known:
        if block < size and _fills(start, stop, block, size):
            return Block(block, start // block, known=True)
    if width == 1:
        return Block(1, start, known=False)
    guess = 1 << (width - 1).bit_length()
    if 2 * guess <= size and _fills(start, stop, guess, size):
        return Block(guess, start // guess, known=False)
    if start % width == 0 and 2 * width <= size and (size % width == 0 or start > width):
        return Block(width, start // width, known=False)
    return None


def _fills(start: int, stop: int, block: int, size: int) -> bool:
    """Tell whether an interval is one block, but for a few elements that are right by chance."""
    first = start // block * block
    last = min(first + block, size)
    return stop <= last and stop - start >= _NEARLY * (last - first)


def tail_block(start: int, size: int, known: Sequence[int]) -> Block | None:
    """Return the last, partial block of an axis if the indices from `start` on are that.

    Args:
        start: First failing index; all that follow fail.
        size: Indices of the axis.
        known: Block sizes that kernels were launched with.
    """
    width = size - start
    for block in known:
        first = size // block * block
        if 0 < first <= start and width >= _NEARLY * (size - first):
            return Block(block, first // block, known=True)
    if known:
        return None
    # The largest power of two that the beginning allows; the first elements may be right by chance.
    guess = 1 << width.bit_length()
    first = start // guess * guess
    if not 0 < first <= start or size - first >= guess or width < _NEARLY * (size - first):
        return None
    return Block(guess, first // guess, known=False)


def coverage(
    start: int, size: int, launches: Sequence[LaunchFacts], known: Sequence[int]
) -> Coverage | None:
    """Return the launch whose grid ends where the failing elements begin, if there is one.

    Args:
        start: First failing index; all that follow fail.
        size: Indices of the axis.
        launches: The launches.
        known: Block sizes that kernels were launched with.
    """
    for launch in launches:
        extents = {math.prod(launch.grid), *launch.grid}
        for programs in sorted(extents, reverse=True):
            for block in known:
                if 0 < programs * block == start < size:
                    return Coverage(launch, programs, block)
    return None

"""Block sizes: from the launches where there are any, else from the failing elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.forensics.facts import LaunchFacts

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
    """What a launch's grid reaches, by one reading of it.

    Attributes:
        launch: The launch.
        programs: Programs along the axis.
        size: Indices that each of them handles.
        certain: Whether no other axis of the output explains the number of programs.
    """

    launch: LaunchFacts
    programs: int
    size: int
    certain: bool


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
    start: int, size: int, launches: Sequence[LaunchFacts], others: Sequence[int] = ()
) -> tuple[Coverage, ...]:
    """Return the launches whose grid ends where the failing elements begin.

    A grid is held only against the block sizes of its own launch. Where one reading is certain,
    those that the output's other axes explain as well are left out.

    Args:
        start: First failing index; all that follow fail.
        size: Indices of the axis.
        launches: The launches.
        others: Extents of the output's other axes, outermost first.
    """
    found = []
    for launch in launches:
        for block in known_sizes([launch]):
            if start % block == 0 and 0 < start < size:
                found += _readings(launch, start // block, block, others)
    return _certain(found)


def rows_left(
    start: int, size: int, launches: Sequence[LaunchFacts], others: Sequence[int] = ()
) -> tuple[Coverage, ...]:
    """Return the launches of one program for each of the indices before the failing ones.

    Args:
        start: First failing index; all that follow fail.
        size: Indices of the axis.
        launches: The launches.
        others: Extents of the output's other axes, outermost first.
    """
    if not 0 < start < size:
        return ()
    # With two indices a program, as many programs would reach the end.
    enough = 2 * start <= size or any(size in launch.grid for launch in launches)
    found = [
        reading._replace(certain=reading.certain and not enough)
        for launch in launches
        for reading in _readings(launch, start, 1, others)
    ]
    return _certain(found)


def _readings(
    launch: LaunchFacts, programs: int, block: int, others: Sequence[int]
) -> list[Coverage]:
    """Return the ways in which a launch may have that many programs along an axis."""
    found = []
    for axis, extent in enumerate(launch.grid):
        if extent == programs:
            rest = math.prod(launch.grid[:axis] + launch.grid[axis + 1 :])
            # What else the grid has must be for the other axes, and this number must not be.
            apart = bool(others) and programs not in _runs(others)
            certain = rest == math.prod(others) or apart
            found.append(Coverage(launch, programs, block, certain))
    if not found and not others and math.prod(launch.grid) == programs:
        found.append(Coverage(launch, programs, block, certain=True))
    return found


def _runs(extents: Sequence[int]) -> set[int]:
    """Return the sizes of all runs of neighbouring axes."""
    count = len(extents)
    return {math.prod(extents[i:j]) for i in range(count) for j in range(i + 1, count + 1)}


def _certain(found: Sequence[Coverage]) -> tuple[Coverage, ...]:
    """Return one reading for each kernel: certain ones only, where there are any."""
    certain = [reading for reading in found if reading.certain]
    by_kernel: dict[tuple[str, str | None, int | None], Coverage] = {}
    for reading in certain or found:
        launch = reading.launch
        by_kernel.setdefault((launch.kernel, launch.file, launch.line), reading)
    return tuple(by_kernel.values())

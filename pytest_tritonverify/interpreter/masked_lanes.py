"""What a kernel finds in the lanes that a masked `tl.load` without `other` leaves out.

The interpreter fills them with zeros, so that a kernel which uses them by mistake may come out
right. On a device they hold whatever was in the registers or the buffer. In the mode "poison" they
get numbers that no sum, maximum or minimum can swallow. Every load that left lanes undefined is
remembered in either mode.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from pytest_tritonverify.interpreter import places
from pytest_tritonverify.interpreter.patching import missing, replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Mode = Literal["zero", "poison"]

_HOOKS = ("InterpreterBuilder", "TensorHandle", "_get_np_dtype")
_BUILDER_HOOKS = ("create_masked_load", "set_grid_dim", "set_grid_idx")


class Site(TypedDict):
    """A load that left lanes undefined.

    Attributes:
        file: the source file of the kernel.
        line: the line of the load in it, from 1.
        lanes: how many lanes were undefined there, over all programs.
    """

    file: str
    line: int
    lanes: int


@dataclass
class _Registry:
    """What happened since the last reset.

    Attributes:
        mode: what to fill lanes with.
        lanes: undefined lanes by file and line of the load.
        launches: how many launches there were before the present one; -1 before the first.
        grid: its numbers of programs along the three axes.
        program: the place of the present program in its launch, from 0.
        turns: how often each load of the present program had such lanes.
        padded: how many loads that promise zeros are under way.
        shift: how many patterns are skipped.
    """

    mode: Mode = "zero"
    lanes: dict[tuple[str, int], int] = field(default_factory=dict)
    launches: int = -1
    grid: tuple[Any, Any, Any] = (1, 1, 1)
    program: int = 0
    turns: dict[tuple[str, int], int] = field(default_factory=dict)
    padded: int = 0
    shift: int = 0


_registry = _Registry()


def mode() -> Mode:
    """Return what undefined lanes are filled with."""
    return _registry.mode


def choose(mode: Mode) -> None:
    """Fill undefined lanes with zeros, as Triton does, or with poison."""
    _registry.mode = mode


def shift(patterns: int) -> None:
    """Skip a number of patterns, so that each lane meets others than it did before."""
    _registry.shift = patterns


def reset() -> None:
    """Forget the loads seen so far; the next run then meets the same poison as the last one."""
    _registry.lanes.clear()
    _registry.turns.clear()
    _registry.launches = -1


def sites() -> list[Site]:
    """Return the loads that left lanes undefined since the last reset, in order of appearance."""
    return [
        Site(file=file, line=line, lanes=lanes) for (file, line), lanes in _registry.lanes.items()
    ]


def take_sites() -> list[Site]:
    """Return what `sites` does, and count from none; patterns go on as if nothing had happened."""
    found = sites()
    _registry.lanes.clear()
    return found


def add_sites(found: Iterable[Site]) -> None:
    """Count loads that another process has met while it ran a part of the present launch."""
    for one in found:
        site = one["file"], one["line"]
        _registry.lanes[site] = _registry.lanes.get(site, 0) + one["lanes"]


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps lanes from being poisoned in this version of Triton, if anything."""
    absent = missing(interpreter, _HOOKS)
    if not absent:
        absent = missing(interpreter.InterpreterBuilder, _BUILDER_HOOKS)
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def install(interpreter: Any) -> None:
    """Correct the interpreter's module in place; the mode decides whether anything changes.

    triton-ascend 3.2.0 documents zeros for `tl.load` without `other` (`care_padding=True`) and
    passes them itself, so nothing is poisoned there unless a kernel says `care_padding=False`.
    """
    inner = places.library_folders(interpreter)

    def make_load(original: Any) -> Any:
        def create_masked_load(
            self: Any, ptrs: Any, mask: Any, other: Any, *args: Any, **kwargs: Any
        ) -> Any:
            if other is None and not _registry.padded:
                other = _fill(interpreter, ptrs, mask, inner)
            return original(self, ptrs, mask, other, *args, **kwargs)

        return create_masked_load

    def make_padded(original: Any) -> Any:
        # Hardware pads these with zeros; some versions leave that to create_masked_load.
        @functools.wraps(original)
        def create_descriptor_load(*args: Any, **kwargs: Any) -> Any:
            _registry.padded += 1
            try:
                return original(*args, **kwargs)
            finally:
                _registry.padded -= 1

        return create_descriptor_load

    _follow_programs(interpreter.InterpreterBuilder)
    replace(interpreter.InterpreterBuilder, "create_masked_load", make_load)
    if hasattr(interpreter.InterpreterBuilder, "create_descriptor_load"):
        replace(interpreter.InterpreterBuilder, "create_descriptor_load", make_padded)


def _follow_programs(builder: Any) -> None:
    """Know which launch and which program of it runs."""

    def make_dim(original: Any) -> Any:
        def set_grid_dim(self: Any, x: Any, y: Any, z: Any) -> None:
            _registry.launches += 1
            _registry.grid = x, y, z
            original(self, x, y, z)

        return set_grid_dim

    def make_index(original: Any) -> Any:
        def set_grid_idx(self: Any, x: int, y: int, z: int) -> None:
            # A grid function may have returned what only an index can be made of.
            ys, zs = (operator.index(size) for size in _registry.grid[1:])
            _registry.program = (x * ys + y) * zs + z
            _registry.turns.clear()
            original(self, x, y, z)

        return set_grid_idx

    replace(builder, "set_grid_dim", make_dim)
    replace(builder, "set_grid_idx", make_index)


def _fill(interpreter: Any, ptrs: Any, mask: Any, inner: tuple[str, ...]) -> Any:
    """Return the block to load from where the mask is off, or None for zeros."""
    # Block pointers hand over the bare array in some versions.
    active = mask if isinstance(mask, np.ndarray) else mask.data
    undefined = ~np.broadcast_to(active, ptrs.data.shape)
    count = int(np.count_nonzero(undefined))
    pointee = ptrs.dtype.scalar.element_ty
    # A poisoned address could only be followed into a crash.
    if not count or hasattr(pointee, "element_ty"):
        return None
    site = places.kernel_line(inner)
    turn = _registry.turns.get(site, 0)
    _registry.turns[site] = turn + 1
    _registry.lanes[site] = _registry.lanes.get(site, 0) + count
    if _registry.mode == "zero":
        return None
    dtype = interpreter._get_np_dtype(pointee)  # noqa: SLF001 - the module is what is corrected
    patterns = poison(dtype)
    block = np.zeros(ptrs.data.shape, dtype)
    # Starting elsewhere each time lets a kernel with one such lane a program meet all of them.
    # Not counted across programs: whichever process runs a program, it meets the same patterns.
    start = _registry.launches + _registry.program + turn + _registry.shift
    block[undefined] = patterns[(np.arange(count) + start) % len(patterns)]
    return interpreter.TensorHandle(block, pointee)


@functools.cache
def poison(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers that lanes without a value of their own get in turn.

    A sum or product shows NaN, a maximum that drops NaN shows the largest number, a minimum the
    most negative one. Two neighbours never cancel each other out in a sum.
    """
    if dtype == np.bool_:
        return np.array([True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.max, limits.min], dtype)
    largest = _largest(dtype)
    return np.array([np.nan, largest, np.nan, -largest], np.float64).astype(dtype)


def _largest(dtype: np.dtype[Any]) -> float:
    if dtype.type.__module__ == "numpy":
        return float(np.finfo(dtype).max)
    # Only where ml_dtypes is installed are there others.
    from pytest_tritonverify.interpreter import formats

    return formats.largest(dtype)

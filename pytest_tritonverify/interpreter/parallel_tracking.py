"""Which bytes each process of a launch reads and writes, and whether that was independent.

Every load and store of the interpreter ends in two functions of its C++ module. Stand-ins for that
module note the addresses. What they note may be more than what was touched, never less: a byte too
many can only make the launch run as it always does.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_tritonverify.interpreter.parallel_memory import Bytes, Regions

LOAD, STORE = "load", "store"
# The largest number of a chunk; marks are bytes, 0 says nobody and MANY several chunks.
MAX_CHUNKS = 250
MANY = 255

_PURE = frozenset({"fma_fp32", "fma_fp64"})
_ALIGNMENT = 64
_BLOCK = 1 << 20
# Linux: don't set memory aside for pages that nobody touches. Python 3.10 lacks the name.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class UnspreadableError(BaseException):
    """A program did what makes a launch unfit for several processes.

    Not an Exception: a kernel could catch that.
    """


def stand_in(memory: Any, refuse: Callable[[str], None], **functions: Any) -> SimpleNamespace:
    """Copy the interpreter's C++ module with other functions for loads and stores.

    Args:
        memory: the module.
        refuse: called with the name of a function before it runs that may touch memory in another
            way, such as an atomic one.
        functions: what takes the place of `load` and `store`.
    """

    def refusing(name: str, original: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            refuse(name)
            return original(*args, **kwargs)

        return function

    names = {name: value for name, value in vars(memory).items() if not name.startswith("__")}
    for name, value in names.items():
        if callable(value) and not isinstance(value, type) and name not in {LOAD, *_PURE}:
            names[name] = refusing(name, value)
    return SimpleNamespace(**{**names, **functions})


def lanes_of(ptrs: Any, mask: Any) -> Any:
    """Return the addresses of the lanes that are on, as an array.

    Some versions of Triton hand over memory views.
    """
    ptrs, mask = np.asarray(ptrs), np.asarray(mask)
    if mask.shape != ptrs.shape:
        mask = np.broadcast_to(mask, ptrs.shape)
    return ptrs if mask.all() else ptrs[mask]


def element_size(value: Any) -> int:
    """Return the bytes of an element of what is stored."""
    return np.asarray(value).dtype.itemsize


def _extent(ptrs: Any, itemsize: int) -> tuple[int, int]:
    return int(ptrs.min()), int(ptrs.max()) + itemsize


def shared_bytes(size: int) -> Bytes:
    """Return zeros that this process and those it forks have in common."""
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE
    return np.frombuffer(mmap.mmap(-1, max(size, 1), flags=flags), np.uint8)


class Marks:
    """One byte for each byte of the regions, in memory that forked processes share."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._offsets = [0]
        for region in range(len(regions)):
            end = self._offsets[-1] + regions.size(region)
            self._offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        # Pages that nobody touches cost nothing.
        self._all = shared_bytes(self._offsets[-1])

    def of(self, region: int) -> Bytes:
        """Return the bytes that belong to a region."""
        start = self._offsets[region]
        return self._all[start : start + self._regions.size(region)]


def _cells(marks: Bytes, offsets: Any, itemsize: int) -> tuple[Any, Any]:
    """Return a view of marks and the index in it of elements that start at some offsets."""
    low, high = int(offsets.min()), int(offsets.max()) + itemsize
    if high - low <= offsets.size * itemsize:
        # Contiguous, or with gaps where others are repeated: the gaps are marked in excess.
        return marks, slice(low, high)
    flat = offsets.reshape(-1).astype(np.int64)
    if int(np.bitwise_or.reduce(flat)) % itemsize:
        return marks, (flat[:, None] + np.arange(itemsize)).reshape(-1)
    whole = marks[: marks.size // itemsize * itemsize].view(f"u{itemsize}")
    return whole, flat // itemsize


def _mark(number: int, dtype: Any) -> Any:
    return dtype.type(int.from_bytes(bytes([number]) * dtype.itemsize, "little"))


def _foreign(found: Any, mark: Any) -> Any:
    """Say which of the marks belong to another chunk, None if none does."""
    if not found.any():
        return None
    others = (found != 0) & (found != mark)
    return others if others.any() else None


@dataclass
class Trace:
    """What one process has touched: marks for the bytes, and the part that holds the marks.

    Attributes:
        written: chunk numbers of the bytes written.
        read: chunk numbers of the bytes read, in those regions only that are watched.
        wrote: by region, the range of bytes that holds all that was written.
        looked: likewise for what was read.
        unwatched: other regions from which something was read.
    """

    written: Marks
    read: Marks | None
    wrote: dict[int, tuple[int, int]] = field(default_factory=dict)
    looked: dict[int, tuple[int, int]] = field(default_factory=dict)
    unwatched: set[int] = field(default_factory=set)


def _widen(extents: dict[int, tuple[int, int]], region: int, low: int, high: int) -> None:
    known = extents.get(region)
    extents[region] = (low, high) if known is None else (min(known[0], low), max(known[1], high))


class Recorder:
    """Notes where the first programs store.

    Attributes:
        ranges: addresses (start, stop) that hold what each store has touched.
        refused: the first function called that may touch memory in another way, if any.
    """

    def __init__(self, memory: Any) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.refused: str | None = None
        self._store = memory.store
        self.memory = stand_in(memory, self._refuse, store=self._note)

    def _refuse(self, name: str) -> None:
        self.refused = self.refused or name

    def _note(self, ptrs: Any, value: Any, mask: Any) -> Any:
        try:
            active = lanes_of(ptrs, mask)
            if active.size:
                self.ranges.append(_extent(active, element_size(value)))
        except Exception:  # noqa: BLE001 - taking notes must not change a launch
            self._refuse(STORE)
        return self._store(ptrs, value, mask)


class FrontWatch:
    """Notes what the process writes that runs the launch in order.

    Its loads need no note: they see what a launch in one process would see.

    Attributes:
        trace: the notes.
        broken: why they are worth nothing, if they are.
    """

    def __init__(self, memory: Any, regions: Regions, written: Marks) -> None:
        self.trace = Trace(written, None)
        self.broken: str | None = None
        self._regions = regions
        self._store = memory.store
        self.memory = stand_in(memory, self._refuse, store=self._note)

    def _refuse(self, name: str) -> None:
        self.broken = self.broken or f"a program called {name}"

    def _note(self, ptrs: Any, value: Any, mask: Any) -> Any:
        if self.broken is None:
            try:
                self._write(lanes_of(ptrs, mask), element_size(value))
            except Exception:  # noqa: BLE001 - taking notes must not change a launch
                self._refuse(STORE)
        return self._store(ptrs, value, mask)

    def _write(self, active: Any, itemsize: int) -> None:
        if not active.size:
            return
        low, high = _extent(active, itemsize)
        region = self._regions.holding(low, high)
        if region is None:
            self.broken = "a program stored outside of the launch's tensors"
            return
        start = self._regions.starts[region]
        marks = self.trace.written.of(region)
        view, index = _cells(marks, active - np.uint64(start), itemsize)
        view[index] = _mark(1, view.dtype)
        _widen(self.trace.wrote, region, low - start, high - start)


class HelperWatch:
    """Notes what a helper touches, and stops it where one of its chunks depends on another.

    A helper takes chunks from the end of the grid backwards, so not even its own are in order.

    Attributes:
        trace: the notes.
    """

    def __init__(
        self,
        memory: Any,
        regions: Regions,
        trace: Trace,
        watched: frozenset[int],
        forbidden: frozenset[int],
    ) -> None:
        self.trace = trace
        self._regions = regions
        self._watched = watched
        self._forbidden = forbidden
        self._number = 0
        self._load, self._store = memory.load, memory.store
        functions = {LOAD: self._note_load, STORE: self._note_store}
        self.memory = stand_in(memory, self._refuse_function, **functions)

    def begin(self, number: int) -> None:
        """Say which chunk (from 1) what follows belongs to."""
        self._number = number

    def refuse(self, reason: str) -> None:
        """Stop the helper.

        Raises:
            UnspreadableError: always.
        """
        raise UnspreadableError(reason)

    def _refuse_function(self, name: str) -> None:
        self.refuse(f"a program called {name}")

    def _note_load(self, ptrs: Any, mask: Any, other: Any, dtype: Any) -> Any:
        everything, itemsize = np.asarray(ptrs), np.dtype(dtype).itemsize
        if everything.size:
            met = self._regions.meeting(*_extent(everything, itemsize))
            if self._watched.isdisjoint(met):
                self.trace.unwatched.update(met)
            else:
                self._read(lanes_of(ptrs, mask), itemsize)
        return self._load(ptrs, mask, other, dtype)

    def _read(self, active: Any, itemsize: int) -> None:
        if not active.size:
            return
        low, high = _extent(active, itemsize)
        met = self._regions.meeting(low, high)
        if self._watched.isdisjoint(met):
            self.trace.unwatched.update(met)
            return
        region = self._regions.holding(low, high)
        if region is None or self.trace.read is None:
            raise UnspreadableError("a load went across several tensors")
        start = self._regions.starts[region]
        offsets = active - np.uint64(start)
        view, index = _cells(self.trace.written.of(region), offsets, itemsize)
        if _foreign(view[index], _mark(self._number, view.dtype)) is not None:
            raise UnspreadableError("a program read what another one wrote")
        view, index = _cells(self.trace.read.of(region), offsets, itemsize)
        mark = _mark(self._number, view.dtype)
        others = _foreign(view[index], mark)
        view[index] = mark if others is None else np.where(others, _mark(MANY, view.dtype), mark)
        _widen(self.trace.looked, region, low - start, high - start)

    def _note_store(self, ptrs: Any, value: Any, mask: Any) -> Any:
        self._write(lanes_of(ptrs, mask), element_size(value))
        return self._store(ptrs, value, mask)

    def _write(self, active: Any, itemsize: int) -> None:
        if not active.size:
            return
        low, high = _extent(active, itemsize)
        region = self._regions.holding(low, high)
        if region is None:
            raise UnspreadableError("a program stored outside of the launch's tensors")
        if region in self._forbidden:
            raise UnspreadableError("a program stored into memory that processes share")
        start = self._regions.starts[region]
        offsets = active - np.uint64(start)
        if region in self.trace.looked and self.trace.read is not None:
            view, index = _cells(self.trace.read.of(region), offsets, itemsize)
            if _foreign(view[index], _mark(self._number, view.dtype)) is not None:
                raise UnspreadableError("a program wrote what another one read")
        view, index = _cells(self.trace.written.of(region), offsets, itemsize)
        mark = _mark(self._number, view.dtype)
        if _foreign(view[index], mark) is not None:
            raise UnspreadableError("two programs wrote the same bytes")
        view[index] = mark
        _widen(self.trace.wrote, region, low - start, high - start)


def conflict(front: Trace, helpers: Sequence[Trace]) -> str | None:
    """Say how the processes depended on one another, None if they did not.

    Args:
        front: of the process that ran the programs in order.
        helpers: of the others, each without a conflict in itself.
    """
    everyone = (front, *helpers)
    for region in {region for trace in everyone for region in trace.wrote}:
        if any(region in trace.unwatched for trace in helpers):
            return "a program read a tensor that another one wrote, unlike the first program"
        low = min(trace.wrote[region][0] for trace in everyone if region in trace.wrote)
        high = max(trace.wrote[region][1] for trace in everyone if region in trace.wrote)
        for start in range(low, high, _BLOCK):
            if _meets(region, start, min(start + _BLOCK, high), everyone):
                return "a program touched what another one wrote"
    return None


def _meets(region: int, start: int, stop: int, everyone: Sequence[Trace]) -> bool:
    """Say whether a byte of a part was written by one process and touched by another."""
    all_wrote: Bytes | None = None
    all_read: Bytes | None = None
    for trace in everyone:
        wrote = _part(trace.written, trace.wrote, region, start, stop)
        read = _part(trace.read, trace.looked, region, start, stop)
        pairs = ((all_wrote, wrote), (all_wrote, read), (all_read, wrote))
        if any(a is not None and b is not None and np.minimum(a, b).any() for a, b in pairs):
            return True
        all_wrote, all_read = _either(all_wrote, wrote), _either(all_read, read)
    return False


def _part(
    marks: Marks | None,
    extents: dict[int, tuple[int, int]],
    region: int,
    start: int,
    stop: int,
) -> Bytes | None:
    extent = extents.get(region)
    if marks is None or extent is None or extent[1] <= start or stop <= extent[0]:
        return None
    return marks.of(region)[start:stop]


def _either(one: Bytes | None, other: Bytes | None) -> Bytes | None:
    if one is None or other is None:
        return other if one is None else one
    return np.maximum(one, other)

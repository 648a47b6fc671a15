"""What is noted of loads and stores, against a memory that is small enough to try it out."""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.interpreter import parallel, parallel_memory
from pytest_tritonverify.interpreter.parallel_memory import Regions, UnknownMemoryError
from pytest_tritonverify.interpreter.parallel_team import Claims, Work
from pytest_tritonverify.interpreter.parallel_tracking import (
    FrontWatch,
    HelperWatch,
    Marks,
    Recorder,
    Trace,
    UnspreadableError,
    conflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Words = NDArray[np.uint8]

SIZE = 24
WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


@dataclass(frozen=True)
class Access:
    """A load or store of some elements; the value stored depends on all loads before it."""

    store: bool
    width: int
    at: tuple[int, ...]
    on: tuple[bool, ...]


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    width = draw(st.sampled_from(sorted(WIDTHS)))
    at = tuple(draw(st.lists(st.integers(0, 2 * SIZE - width), min_size=1, max_size=3)))
    on = tuple(draw(st.booleans()) or draw(st.booleans()) for _ in at)
    return Access(draw(st.booleans()), width, at, on)


programs_of = st.lists(st.lists(accesses(), max_size=3), min_size=1, max_size=5)


def memory_module() -> Any:
    """Stand for the interpreter's C++: loads and stores at addresses, lane after lane."""

    def at(address: int, width: int) -> Words:
        return np.frombuffer(memoryview((ctypes.c_ubyte * width).from_address(address)), np.uint8)

    def load(ptrs: Any, mask: Any, other: Any, dtype: Any) -> Any:
        found = other.copy()
        for lane in np.flatnonzero(mask):
            found[lane] = at(int(ptrs[lane]), dtype.itemsize).copy().view(dtype)[0]
        return found

    def store(ptrs: Any, value: Any, mask: Any) -> None:
        for lane in np.flatnonzero(mask):
            at(int(ptrs[lane]), value.itemsize)[:] = value[lane : lane + 1].view(np.uint8)

    return SimpleNamespace(load=load, store=store, atomic_rmw=lambda: None)


def run(memory: Any, base: int, number: int, program: list[Access]) -> None:
    state = number + 1
    for access in program:
        dtype = np.dtype(WIDTHS[access.width])
        ptrs = (base + np.array(access.at)).astype(np.uint64)
        mask = np.array(access.on)
        if access.store:
            value = (state * 37 + np.arange(len(access.at)) * 11 + 5).astype(dtype)
            memory.store(ptrs, value, mask)
        else:
            loaded = memory.load(ptrs, mask, np.zeros(len(access.at), dtype), dtype)
            state = (state * 31 + int(loaded.astype(np.int64).sum())) % 65521


def spread(words: Words, programs: list[list[Access]], cut: int) -> bool:
    """Run programs as owner and helper would; return whether that was taken for independent."""
    base = words.ctypes.data
    memory = memory_module()
    regions = Regions.of_ranges([(base, base + SIZE), (base + SIZE, base + 2 * SIZE)])
    recorder = Recorder(memory)
    run(recorder.memory, base, 0, programs[0])
    watched = {regions.holding(start, stop) for start, stop in recorder.ranges}
    if None in watched:
        return False
    snapshot = words.copy()
    front = FrontWatch(memory, regions, Marks(regions))
    for number in range(1, cut):
        run(front.memory, base, number, programs[number])
    after_front = words.copy()
    words[:] = snapshot
    trace = Trace(Marks(regions), Marks(regions))
    helper = HelperWatch(memory, regions, trace, frozenset(watched), frozenset())  # type: ignore[arg-type]  # no None
    try:
        for number in reversed(range(cut, len(programs))):
            helper.begin(number + 1)
            run(helper.memory, base, number, programs[number])
    except UnspreadableError:
        return False
    if front.broken or conflict(front.trace, [trace]):
        return False
    content = words.copy()
    words[:] = after_front
    for region in trace.wrote:
        low = regions.starts[region] - base
        part = slice(low, low + regions.size(region))
        np.copyto(words[part], content[part], where=trace.written.of(region) != 0)
    return True


@given(programs=programs_of, cut=st.integers(1, 5))
@settings(max_examples=120, deadline=None)
def test_what_is_taken_for_independent_gives_the_result_of_one_process(
    programs: list[list[Access]], cut: int
) -> None:
    serial = np.arange(2 * SIZE, dtype=np.uint8)
    for number, program in enumerate(programs):
        run(memory_module(), serial.ctypes.data, number, program)
    words = np.arange(2 * SIZE, dtype=np.uint8)
    if spread(words, programs, min(cut, len(programs))):
        assert words.tolist() == serial.tolist()


def stores(*at: int, width: int = 1) -> list[Access]:
    return [Access(store=True, width=width, at=at, on=(True,) * len(at))]


def loads(*at: int, width: int = 1) -> list[Access]:
    return [Access(store=False, width=width, at=at, on=(True,) * len(at))]


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize(
    ("second", "third", "independent"),
    [
        (stores(1), stores(2), True),
        (stores(1, 9, 5), stores(2, 10, 6), True),
        (stores(4, width=4), stores(8, 12, width=4), True),
        (stores(4, 16, width=4), stores(8, 12, width=4), True),
        (loads(0, 5), loads(0, 5) + stores(6), True),
        (loads(2) + stores(2), loads(3) + stores(3), True),
        (stores(1), stores(1), False),
        (stores(4, width=4), stores(7), False),
        (stores(3, 9, width=2), stores(10), False),
        (stores(1), loads(1), False),
        (loads(1) + stores(2), loads(2) + stores(1), False),
        (stores(30), loads(31) + stores(1), False),
    ],
)
def test_neighbours_are_told_from_overlaps(
    second: list[Access], third: list[Access], cut: int, *, independent: bool
) -> None:
    words = np.arange(2 * SIZE, dtype=np.uint8)
    # With a cut of 3 the owner runs all, in order, where anything is allowed.
    assert spread(words, [stores(0), second, third], cut) is (independent or cut == 3)


ranges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=6)


@given(ranges=ranges, probe=st.tuples(st.integers(0, 50), st.integers(1, 10)))
def test_regions_are_the_union_of_ranges(
    ranges: list[tuple[int, int]], probe: tuple[int, int]
) -> None:
    regions = Regions.of_ranges((start, start + size) for start, size in ranges)
    owner = {
        byte: region
        for region in range(len(regions))
        for byte in range(regions.starts[region], regions.stops[region])
    }
    assert owner.keys() == {b for start, size in ranges for b in range(start, start + size)}
    wanted = [owner.get(byte) for byte in range(probe[0], sum(probe))]
    assert set(regions.meeting(probe[0], sum(probe))) == set(wanted) - {None}
    held = wanted[0] if len(set(wanted)) == 1 else None
    assert regions.holding(probe[0], sum(probe)) == held


def test_regions_of_arguments_are_whole_storages() -> None:
    x, y = torch.zeros(10), torch.zeros(4, dtype=torch.float64)
    wrapped = SimpleNamespace(base=y)
    regions = Regions.of_arguments([x[3:5], 7, "name", (x[::2], wrapped), None, torch.empty(0)])
    expected = sorted((one.data_ptr(), one.data_ptr() + one.nbytes) for one in (x, y))
    assert list(zip(regions.starts, regions.stops, strict=True)) == expected
    regions.memory(regions.starts.index(y.data_ptr()))[:8] = np.frombuffer(np.float64(2.5), "u1")
    assert y.tolist() == [2.5, 0, 0, 0]


def test_tensors_that_a_fork_can_not_copy_are_refused() -> None:
    with pytest.raises(UnknownMemoryError, match="not on the CPU"):
        Regions.of_arguments([torch.empty(3, device="meta")])


def test_shared_memory_is_recognised() -> None:
    with mmap.mmap(-1, mmap.PAGESIZE) as shared:
        common = np.frombuffer(shared, np.uint8)
        own = np.zeros(100, np.uint8)
        ends = [(one.ctypes.data, one.ctypes.data + one.size) for one in (common, own)]
        regions = Regions.of_ranges(ends)
        place = regions.starts.index(common.ctypes.data)
        assert parallel_memory.shared_regions(regions) == {place}
        del common


def test_memory_is_left() -> None:
    assert parallel_memory.available_bytes() > 0


@pytest.mark.parametrize("count", [1, 2, 250, 251, 1000])
def test_chunks_are_all_programs_once_and_alike(count: int) -> None:
    work = Work(lambda _: None, 3, 3 + count)
    chunks = [work.programs(chunk) for chunk in range(work.chunks)]
    assert [program for chunk in chunks for program in chunk] == list(range(3, 3 + count))
    assert len({len(chunk) for chunk in chunks}) <= 2


def test_claims_meet_in_the_middle_and_can_be_stopped() -> None:
    claims = Claims(3)
    take: Callable[..., int | None] = claims.take
    ends = (True, False, False, True)
    assert [take(front=front) for front in ends] == [0, 2, 1, None]
    claims.close()
    claims = Claims(3)
    claims.stop()
    assert claims.take(front=True) is None
    claims.close()


def test_claims_are_shared_by_processes() -> None:
    claims = Claims(200)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        count = 0
        while claims.take(front=False) is not None:
            count += 1
        os.write(writing, bytes([count]))
        os._exit(0)
    mine = 0
    while claims.take(front=True) is not None:
        mine += 1
    os.waitpid(pid, 0)
    assert mine + os.read(reading, 1)[0] == 200
    for descriptor in (reading, writing):
        os.close(descriptor)
    claims.close()


def test_a_launch_takes_a_process_at_least() -> None:
    with pytest.raises(ValueError, match="at least one process, not 0"):
        parallel.spread(0)

"""Where the tensors of a launch lie in memory, and how much memory is left."""

from __future__ import annotations

import contextlib
import ctypes
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

_MAPS = Path("/proc/self/maps")
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


class UnknownMemoryError(ValueError):
    """A tensor of the launch lies where a forked process can't follow it."""


@dataclass(frozen=True)
class Regions:
    """The storages of a launch's tensors as ranges of addresses, in ascending order.

    Storages that overlap make one region, so that no byte is in two of them.

    Attributes:
        starts: the address of the first byte of each.
        stops: the address after the last byte of each.
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]

    @classmethod
    def of_arguments(cls, values: Iterable[Any]) -> Regions:
        """Find the storages of all tensors among a launch's arguments.

        Raises:
            UnknownMemoryError: a tensor is not on the CPU, or has no storage.
        """
        return cls.of_ranges(_ranges(values))

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int]]) -> Regions:
        """Put ranges (start, stop) in order and merge those that overlap."""
        merged: list[list[int]] = []
        for start, stop in sorted(ranges):
            if merged and start < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], stop)
            elif start < stop:
                merged.append([start, stop])
        return cls(tuple(start for start, _ in merged), tuple(stop for _, stop in merged))

    def __len__(self) -> int:
        return len(self.starts)

    def size(self, region: int) -> int:
        """Return the length of a region in bytes."""
        return self.stops[region] - self.starts[region]

    def meeting(self, start: int, stop: int) -> range:
        """Return the regions that have a byte in common with a range."""
        return range(bisect_right(self.stops, start), bisect_left(self.starts, stop))

    def holding(self, start: int, stop: int) -> int | None:
        """Return the region that a range lies in as a whole, None if there is none."""
        region = bisect_right(self.starts, start) - 1
        return region if region >= 0 and stop <= self.stops[region] else None

    def memory(self, region: int) -> Bytes:
        """Return the bytes of a region, not a copy of them."""
        kind = ctypes.c_ubyte * self.size(region)
        memory = memoryview(kind.from_address(self.starts[region]))
        return np.frombuffer(memory, np.uint8)


def _ranges(values: Iterable[Any]) -> Iterator[tuple[int, int]]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu":
                raise UnknownMemoryError("a tensor is not on the CPU")
            try:
                storage = value.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
            except (RuntimeError, NotImplementedError) as error:
                raise UnknownMemoryError(f"a tensor has no storage: {error}") from error
            yield start, start + size
        elif isinstance(value, (tuple, list)):
            yield from _ranges(value)
        elif hasattr(value, "base"):  # a tensor descriptor, or a tensor under another dtype
            yield from _ranges((value.base,))


def shared_regions(regions: Regions) -> frozenset[int]:
    """Return the regions that a forked process would have in common with this one.

    Raises:
        OSError: the system doesn't say how memory is mapped.
    """
    found: set[int] = set()
    for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        span, permissions = line.split(maxsplit=2)[:2]
        if permissions.endswith("s"):
            start, stop = (int(end, 16) for end in span.split("-"))
            found.update(regions.meeting(start, stop))
    return frozenset(found)


def available_bytes() -> int:
    """Return how much memory this process may still take, 0 if the system doesn't say."""
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        words = next(line for line in lines if line.startswith("MemAvailable:")).split()
        limits.append(int(words[1]) * 1024)
    # A container's own limit; "max" where it has none.
    with contextlib.suppress(OSError, ValueError):
        limit, used = (
            int((_CGROUP / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        limits.append(limit - used)
    return max(0, min(limits, default=0))

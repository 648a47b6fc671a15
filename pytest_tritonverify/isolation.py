"""What is kept from the process of an implementation, decided by the judge."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import choices

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.settings import Settings

AUTO, REQUIRE, OFF = choices.ISOLATION
LANDLOCK = "landlock"
NONE = "none"

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
# More than compilers and the interpreter's helpers ever come to.
_BASIC_PROCESSES = 256
_PROCESSES_PER_CORE = 4

_MEMINFO = Path("/proc/meminfo")
# A container's own limit, under the second and the first version of control groups.
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True)
class Limits:
    """What the user asked for of isolation.

    Attributes:
        files: one of `choices.ISOLATION`: whether files are kept from implementations.
        memory: bytes that each process of an implementation may have; 0 for no limit, None for
            the default.
        processes: how many processes it may have; 0 for no limit.
        file_size: bytes that a file may grow to; as `memory`.
    """

    files: str = AUTO
    memory: int | None = None
    processes: int = _BASIC_PROCESSES + _PROCESSES_PER_CORE * (os.cpu_count() or 1)
    file_size: int | None = None

    @classmethod
    def load(cls, given: Callable[[str], Any]) -> Limits:
        """Read what was asked for.

        Args:
            given: returns an option's value by its name, None or empty where it is not given.

        Raises:
            ValueError: a value is impossible.
        """
        processes = given("process_limit")
        return cls(
            given("isolation") or AUTO,
            _size("memory-limit", given("memory_limit")),
            _count(processes) if processes else cls.processes,
            _size("file-limit", given("file_limit")),
        )


def _size(option: str, value: Any) -> int | None:
    text = str(value or "").strip()
    if text in ("", AUTO):
        return None
    found = _SIZE.fullmatch(text)
    if text != OFF and found is None:
        raise ValueError(
            f"--verify-{option}: {value!r} is no size; write bytes, or a number with K, M, G or T "
            f"such as 8G, or {OFF!r}"
        )
    return int(float(found[1]) * 2 ** _UNITS[found[2].upper()]) if found else 0


def _count(value: Any) -> int:
    if value == OFF:
        return 0
    try:
        count = int(value)
    except ValueError:
        count = -1
    if count < 0:
        raise ValueError(f"--verify-process-limit: {value!r} is neither a number nor {OFF!r}")
    return count


def of_files(settings: Settings) -> str:
    """Return how files are kept from implementations: `LANDLOCK`, or `NONE`."""
    if settings.limits.files == OFF or settings.in_process:
        return NONE
    # Not at the top: every run of pytest reads the options.
    from pytest_tritonverify.execution import landlock

    return LANDLOCK if landlock.version() else NONE


def confinement(pair: Pair, settings: Settings, device: str) -> dict[str, Any] | None:
    """Return what a worker is told to give up; None where nothing is isolated.

    Args:
        pair: the pair whose implementation it runs.
        settings: the session's settings.
        device: name of the device.
    """
    if settings.in_process:
        return None
    closed = {*settings.dirs, *settings.protected, pair.implementation.parent}
    return {
        "files": of_files(settings) == LANDLOCK,
        "task": str(pair.task),
        "unreadable": [] if settings.output is None else [str(settings.output)],
        "unwritable": sorted(map(str, closed)),
        "memory": memory_limit(settings.limits, device),
        "processes": settings.limits.processes,
        "file_size": file_limit(settings.limits),
    }


def memory_limit(limits: Limits, device: str) -> int:
    """Return the bytes of memory that a process may have, 0 for no limit.

    The default is the machine's memory on the CPU. A device's driver maps memory of the device
    into the process, so that no default would be right there.
    """
    if limits.memory is not None:
        return limits.memory
    return machine_memory() if device == "cpu" else 0


def file_limit(limits: Limits) -> int:
    """Return the bytes that a file may grow to, 0 for no limit.

    The default is the machine's memory: outputs travel in files that lie in memory.
    """
    return machine_memory() if limits.file_size is None else limits.file_size


def machine_memory() -> int:
    """Return the bytes of memory that this machine, or container, has; 0 where it doesn't say."""
    found = []
    for path in (_MEMINFO, *_CGROUP_LIMITS):
        try:
            text = path.read_text(encoding="ascii")
        except OSError:
            continue
        if path == _MEMINFO:
            words = text.partition("MemTotal:")[2].split()
            found += [int(words[0]) * 1024] if words else []
        elif text.strip().isdecimal():
            found.append(int(text))
    return min(found, default=0)

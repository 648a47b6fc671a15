"""Keep a forward whose launches have no effect from taking all memory, or all time.

Such a forward goes on with garbage: it may take a length from memory that nobody wrote.
"""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tritonverify.execution import alarm
from pytest_tritonverify.observing.launches import LaunchesSuppressedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPARE_BYTES = 2 << 30
_PAGE = resource.getpagesize()


@contextlib.contextmanager
def bounded(seconds: float, spare: int | None) -> Iterator[None]:
    """Bound memory and time for a while.

    Args:
        seconds: after which `LaunchesSuppressedError` is raised in the main thread.
        spare: bytes that may be taken on top of two gibibytes; None bounds no memory: drivers
            of devices reserve addresses without end.
    """
    memory = contextlib.nullcontext() if spare is None else _memory(spare)
    with memory, alarm.raising(LaunchesSuppressedError(), seconds):
        yield


@contextlib.contextmanager
def _memory(spare: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * _PAGE
    limit = taken + spare + _SPARE_BYTES
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

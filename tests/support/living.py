"""Which processes are alive, and what this one has open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Say whether a process runs or is stopped; one that only waits to be reaped is gone."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[0] not in "ZX"
    return False


def open_descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))

"""Which processes are alive."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Say whether a process runs or is stopped; one that only waits to be reaped is gone."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[0] not in "ZX"
    return False

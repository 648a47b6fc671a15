"""One measurement at a time on a device, whichever processes of this user want to measure."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def device(name: str) -> Iterator[None]:
    """Wait until no other process measures on a device; a lock that can't be had is done without.

    Args:
        name: the device's name, as `--verify-device` has it.
    """
    path = Path(tempfile.gettempdir()) / f"tritonverify-{os.getuid()}-{name}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        # Closing gives the lock back.
        os.close(fd)

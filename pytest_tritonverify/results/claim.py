"""One run at a time for a pair: two would write the same result file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

_LOCKS = Path("/proc/locks")


class ClaimedError(RuntimeError):
    """Another run judges the pair at this moment; the text is for the user."""


class Claim:
    """Holds a pair's implementation until it is given back, or its process ends.

    The lock is on the implementation's own file, so that it leaves nothing behind, holds in every
    container that sees the file, and needs no right to write. Where the file system knows no locks
    nothing is held.

    Args:
        implementation: the file.

    Raises:
        ClaimedError: another process holds it.
    """

    def __init__(self, implementation: Path) -> None:
        self._handle = -1
        try:
            self._handle = os.open(implementation, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(self._handle) if error.errno == errno.EWOULDBLOCK else None
            self.give_back()
            if error.errno == errno.EWOULDBLOCK:
                raise ClaimedError(
                    f"{implementation} is judged by another run at this moment{holder}; both would "
                    "write its result. Wait for that run to end, or end it."
                ) from None

    def give_back(self) -> None:
        """Let others have it; may be called again."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _holder(handle: int) -> str:
    """Name the process that holds a file's lock, where the system says which it is."""
    status = os.fstat(handle)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    with contextlib.suppress(OSError):
        for line in _LOCKS.read_text(encoding="ascii").splitlines():
            words = line.split()
            if "FLOCK" in words and f"{device}:{status.st_ino}" in words and "->" not in words:
                return f" (process {words[4]})"
    return ""

"""One run at a time for a pair: two would write the same result file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import tempfile
from pathlib import Path

# A lock as the kernel describes it: kind, whence, start, length, and the process that holds it.
_FLOCK = "hhqqi"
_OFFSET_BYTES = 7
# Only a lock lies there, which whoever makes it first can't misuse.
PLACE = "/tmp"  # noqa: S108


class ClaimedError(RuntimeError):
    """Another run judges the pair at this moment; the text is for the user."""


class Claims:
    """Holds pairs until they are given back, or its process ends.

    All runs of a user lock one file, each pair a byte of it: a thousand pairs take one descriptor.
    Where the file system knows no locks nothing is held.
    """

    def __init__(self) -> None:
        self._handle = -1

    def hold(self, implementation: Path) -> None:
        """Hold a pair; does nothing where it is held by this process.

        Raises:
            ClaimedError: another process holds it.
        """
        try:
            offset = _offset(implementation)
            if self._handle < 0:
                self._handle = _opened()
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES) and self._handle >= 0:
                raise ClaimedError(
                    f"{implementation} is judged by another run at this moment"
                    f"{self._holder(offset)}; both would write its result. Wait for that run to "
                    "end, or end it."
                ) from None

    def _holder(self, offset: int) -> str:
        """Name the process that holds a byte, where the system says which it is."""
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        with contextlib.suppress(OSError):
            pid = struct.unpack(_FLOCK, fcntl.fcntl(self._handle, fcntl.F_GETLK, asked))[-1]
            return f" (process {pid})" if pid > 0 else ""
        return ""

    def give_back(self) -> None:
        """Let others have what is held; may be called again."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _opened() -> int:
    """Open the file of this user's runs.

    Raises:
        OSError: there is no place for one.
    """
    name = f"tritonverify-{os.getuid()}-pairs.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    if os.path.isdir(PLACE):  # noqa: PTH112 - a name
        # Runs may each have a TMPDIR of their own, and have to meet.
        with contextlib.suppress(OSError):
            return os.open(Path(PLACE) / name, flags, 0o600)
    return os.open(Path(tempfile.gettempdir()) / name, flags, 0o600)


def _offset(path: Path) -> int:
    """Return the byte that stands for a file, under whichever name."""
    status = path.stat()
    found = hashlib.sha256(f"{status.st_dev}:{status.st_ino}".encode()).digest()
    return int.from_bytes(found[:_OFFSET_BYTES], "big")

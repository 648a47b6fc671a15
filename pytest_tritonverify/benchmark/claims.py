"""Who of this user's processes still needs a device's clock locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path


class Claim:
    """A wish that a device stay locked, known to all processes of the user.

    It ends with `end`, and with the process. Where the file that stands for it can't be had, a
    process counts as the only one.

    Args:
        device: what the device is called.
        folder: where the files are; the machine's folder for temporary files by default.
    """

    def __init__(self, device: str, folder: Path | None = None) -> None:
        place = folder or Path(tempfile.gettempdir())
        path = place / f"tritonverify-{os.getuid()}-clock-{device}.lock"
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o600)
            # Waits while another process is taking its lock back.
            fcntl.flock(self._fd, fcntl.LOCK_SH)

    def is_last(self) -> bool:
        """Say whether no other process has a claim; none can get one before this one ends."""
        if self._fd is None:
            return True
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def end(self) -> None:
        """Give it up."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

"""Folders for what the processes of a run leave on disk, which outlive no run for long.

Whoever uses a folder holds a lock on it, which the kernel takes back when the last of its holders
ends, by whatever signal. A folder that nobody holds is removed by the next run that comes along.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "tritonverify-run-"


def make() -> tuple[str, int]:
    """Make an empty folder, and remove those that nobody uses any more.

    Returns:
        Its path, and a descriptor that holds it. Every process that inherits the descriptor holds
        it too; workers must not.
    """
    sweep()
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        # Another run may come by before the folder is held, and take it for an old one.
        handle = _held(folder)
        if handle is not None:
            return folder, handle


def sweep() -> None:
    """Remove the folders of runs that were killed together with everything that cleans up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        handle = _held(str(folder))
        if handle is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def _held(folder: str) -> int | None:
    """Hold a folder; None where somebody else does, or it is gone or not ours."""
    handle = -1
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_uid == os.getuid() and os.path.samestat(
            os.fstat(handle),
            os.stat(folder),  # noqa: PTH116 - the descriptor's counterpart
        ):
            return handle
    except OSError:
        pass
    if handle >= 0:
        with contextlib.suppress(OSError):
            os.close(handle)
    return None

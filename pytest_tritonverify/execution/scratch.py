"""Folders for what the processes of a run leave on disk, which outlive no run for long.

Whoever uses a folder holds a lock on it, which the kernel takes back when the last of its holders
ends, by whatever signal. A folder that nobody holds is removed by the next run that comes along.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import tempfile
from pathlib import Path

_PREFIX = "tritonverify-run-"
# What makes a file unchangeable, in Linux's numbers for the usual architectures.
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def make(prefix: str = _PREFIX, mode: int = stat.S_IRWXU) -> tuple[str, int]:
    """Make an empty folder, and remove those that nobody uses any more.

    Args:
        prefix: what its name begins with.
        mode: its permissions. Others of that name are removed only where they have these.

    Returns:
        Its path, and a descriptor that holds it. Every process that inherits the descriptor holds
        it too; workers must not.
    """
    sweep(prefix, mode)
    while True:
        folder = tempfile.mkdtemp(prefix=prefix)
        # Another run may come by before the folder is held, and take it for an old one.
        handle = _held(folder)
        if handle is not None:
            os.fchmod(handle, mode)
            return folder, handle
        remove(folder)


def sweep(prefix: str = _PREFIX, mode: int = stat.S_IRWXU) -> None:
    """Remove the folders of runs that were killed together with everything that cleans up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        handle = _held(str(folder))
        if handle is not None:
            if stat.S_IMODE(os.fstat(handle).st_mode) == mode:
                remove(str(folder))
            os.close(handle)


def remove(folder: str) -> None:
    """Remove a folder and what is in it, whatever its owner has done to keep it.

    Folders may lie in each other thousands of levels deep, where whoever descends runs out of
    stack, descriptors or path; they may forbid to look into them, or be immutable. What can't be
    removed all the same stays, without an error.
    """
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106 - most are empty, and pathlib is a detour
        return
    place, name = os.path.split(os.path.abspath(folder))  # noqa: PTH100 - resolve() follows links
    with contextlib.suppress(OSError):
        above = os.open(place, _LOOK & ~os.O_NOFOLLOW | os.O_DIRECTORY)
        try:
            if not _removed(name, above):
                top = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=above)
                try:
                    _empty(top)
                finally:
                    os.close(top)
                _removed(name, above)
        finally:
            os.close(above)


def _empty(top: int) -> None:
    """Remove what is in an open folder."""
    token, number = os.urandom(8).hex(), 0
    pending = _names(top)
    while pending:
        name = pending.pop()
        if _removed(name, top):
            continue
        with contextlib.suppress(OSError):
            below = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=top)
            try:
                for inner in _names(below):
                    if not _removed(inner, below):
                        # Up to the top, so that nothing is ever more than one level away.
                        number += 1
                        moved = f"{token}-{number}"
                        with contextlib.suppress(OSError):
                            os.rename(inner, moved, src_dir_fd=below, dst_dir_fd=top)
                            pending.append(moved)
            finally:
                os.close(below)
            _removed(name, top)


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _removed(name: str, folder: int) -> bool:
    """Remove a file, or a folder that is empty; False where that can't be done."""
    for attempt in range(2):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                # Else nobody can look into it, nor move it.
                os.chmod(name, stat.S_IRWXU, dir_fd=folder)
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except PermissionError:
            if attempt:
                return False
            _loosen(name, folder)
        except OSError:
            return False
        else:
            return True
    return False


def _loosen(name: str, folder: int) -> None:
    """Make what is in a folder such that its owner, or root, can remove it."""
    _make_changeable(folder)
    with contextlib.suppress(OSError):
        os.fchmod(folder, stat.S_IRWXU)
    with contextlib.suppress(OSError):
        handle = os.open(name, _LOOK, dir_fd=folder)
        try:
            _make_changeable(handle)
        finally:
            os.close(handle)


def _make_changeable(handle: int) -> None:
    """Take back the attributes that keep a file from being changed, as `chattr -ia` does."""
    with contextlib.suppress(OSError):
        flags = struct.unpack("l", fcntl.ioctl(handle, _GET_FLAGS, struct.pack("l", 0)))[0]
        kept = flags & ~(_IMMUTABLE | _APPEND_ONLY)
        if kept != flags:
            fcntl.ioctl(handle, _SET_FLAGS, struct.pack("l", kept))


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

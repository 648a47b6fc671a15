"""Landlock, Linux's sandbox for unprivileged processes: what a process may still do with files.

A process gives up rights for itself and all its descendants, and nothing can give them back. Rights
are granted by path, each with everything below it. A process under these rules can't look into, or
trace, one that isn't. See userspace-api/landlock in the kernel's documentation.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The same numbers on every architecture.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_SCOPE_SIGNAL = 1 << 1

_WRITE_FILE = 1 << 1
READ = 1 << 2
"""Reading files."""
# To remove folders and files, and to make each kind of them.
_ENTRIES = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13
_TRUNCATE = 1 << 14
WRITE = _WRITE_FILE | _ENTRIES | _REFER | _TRUNCATE
"""Changing, making and removing files and folders."""
# What a rule about something other than a folder may hold.
_OF_FILES = _WRITE_FILE | READ | _TRUNCATE

# Before version 2 nothing can be renamed into another folder, which is how caches are filled.
_FIRST_USABLE = 2
_HAS_TRUNCATE = 3
_HAS_NETWORK = 4
HAS_SCOPES = 6


def version() -> int:
    """Return the version of the kernel's interface; 0 where there is none that is of use."""
    if not hasattr(os, "O_PATH"):
        return 0
    found: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return found if found >= _FIRST_USABLE else 0


def restrict(grants: Mapping[str, int]) -> None:
    """Give up `READ` and `WRITE` everywhere but where they are granted, for good.

    Listing folders and executing programs stays as it is. From version 6 of the interface on,
    processes that don't live under these rules can't be signalled any more either.

    Args:
        grants: rights by path. A path that isn't there, or is a link, grants nothing.

    Raises:
        OSError: the kernel refuses.
    """
    present = version()
    rights = READ | WRITE
    if present < _HAS_TRUNCATE:
        rights &= ~_TRUNCATE
    # Accesses to files, accesses to the network, scopes; an older kernel knows fewer of them.
    numbers = (rights, 0, _SCOPE_SIGNAL)
    count = 3 if present >= HAS_SCOPES else 2 if present >= _HAS_NETWORK else 1
    attributes = struct.pack(f"={count}Q", *numbers[:count])
    libc = _libc()
    size = ctypes.c_size_t(len(attributes))
    handle = _checked(libc.syscall(_CREATE_RULESET, attributes, size, 0))
    try:
        for path, wanted in grants.items():
            _grant(libc, handle, path, wanted & rights)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)


def _grant(libc: ctypes.CDLL, handle: int, path: str, wanted: int) -> None:
    with contextlib.suppress(OSError):
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            mode = os.fstat(place).st_mode
            if not stat.S_ISDIR(mode):
                wanted &= _OF_FILES
            if wanted and not stat.S_ISLNK(mode):
                rule = struct.pack("=Qi", wanted, place)
                _checked(libc.syscall(_ADD_RULE, handle, _PATH_BENEATH, rule, 0))
        finally:
            os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(
            number, f"Landlock: {os.strerror(number)}; --verify-isolation=off does without it"
        )
    return result

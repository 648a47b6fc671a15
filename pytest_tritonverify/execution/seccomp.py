"""Keep a process from setting the limits of others, with the kernel's filter for system calls.

Numbers and layouts are those of `linux/seccomp.h`, `linux/filter.h` and `linux/audit.h`; see
https://docs.kernel.org/userspace-api/seccomp_filter.html. No privilege is needed, but that the
process has given up getting new ones (`landlock.restrict` does).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

# By machine: its number among architectures, and those of the two system calls.
_MACHINES = {
    "x86_64": (0xC000003E, 317, 302),
    "aarch64": (0xC00000B7, 277, 261),
}
_SET_MODE_FILTER = 1
# Without it older kernels slow down everything else that the process does.
_ALLOW_SPECULATION = 1 << 2

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
# Where the filter finds a call's number, its architecture, whom it is about, and the new limit.
_NUMBER, _ARCHITECTURE, _PID, _NEW_LOW, _NEW_HIGH = 0, 4, 16, 32, 36
# From here on x86_64 has the same calls once more, for 32-bit pointers.
_OTHER_CALLS = 0x40000000


def forbid_limits_of_others() -> bool:
    """Refuse `prlimit` to this process, and to all that it will start, for anybody but itself.

    Whoever may set the judge's limits can end it: one open file too many is enough.

    Returns:
        Whether the system does that.
    """
    known = _MACHINES.get(platform.machine())
    if known is None or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return False
    architecture, seccomp, prlimit = known
    # Each with how many steps to skip where it holds, and where it doesn't.
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, 10, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 8, 0, _OTHER_CALLS),
        (_EQUAL, 0, 6, prlimit),
        (_LOAD, 0, 0, _PID),
        (_EQUAL, 4, 0, 0),
        (_LOAD, 0, 0, _NEW_LOW),
        (_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _NEW_HIGH),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    steps = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *step) for step in program), len(program) * 8
    )
    head = struct.pack("@HP", len(program), ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    failed: int = libc.syscall(seccomp, _SET_MODE_FILTER, _ALLOW_SPECULATION, head)
    return not failed

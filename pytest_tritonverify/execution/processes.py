"""Linux process control: parent death, subreapers, and killing whole families."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A family whose members keep forking is stopped again and again for this long.
_STOP_PATIENCE = 3.0
_PRECEDENCE = 15


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent: int) -> None:
    """Ask the kernel to SIGKILL this process when its parent ends.

    Args:
        parent: the expected parent's process id. A parent that ended before the request was
            made is noticed by comparing it with the present one.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper() -> None:
    """Adopt orphaned descendants instead of leaving them to init.

    Descendants that start a session of their own escape every kill by process group; as their
    adoptive parent this process still finds them.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Return the direct children of a process, zombies included; empty when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                text = (task / "children").read_text(encoding="ascii")
                found.extend(int(word) for word in text.split())
    return found


def descendants(pid: int, most: int | None = None) -> list[int]:
    """Return the living descendants of a process, parents before their children.

    Args:
        pid: the process.
        most: look no further when so many have been found.
    """
    found: list[int] = []
    pending = [pid]
    while pending and (most is None or len(found) < most):
        kin = children(pending.pop())
        found += kin
        pending += kin
    return found


def send_signal(pid: int, number: int) -> bool:
    """Signal one process; False when it is gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def stop_family(root: int) -> list[int]:
    """SIGSTOP a process and everything below it, and return whom: none where it is gone.

    From the top down, so that nothing in the family can fork unseen while the list is walked.
    """
    if not send_signal(root, signal.SIGSTOP):
        return []
    members = {root: None}
    deadline = time.monotonic() + _STOP_PATIENCE
    while time.monotonic() < deadline:
        new = [pid for pid in descendants(root) if pid not in members]
        if not new:
            break
        for pid in new:
            send_signal(pid, signal.SIGSTOP)
        members.update(dict.fromkeys(new))
    return list(members)


def settle(pids: list[int]) -> None:
    """Wait until processes that were sent SIGSTOP have stopped, for a few seconds at most.

    One that is ready to run stops when it gets its turn, which a busy machine puts off.
    """
    deadline = time.monotonic() + _STOP_PATIENCE
    for pid in pids:
        while _may_run(pid) and time.monotonic() < deadline:
            time.sleep(0.001)


def _may_run(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "TtZX"


def kill_family(root: int) -> None:
    """SIGKILL a process and everything below it."""
    # Most of a family that forks without end shares a group, which is stopped at one stroke.
    if not send_signal(root, signal.SIGSTOP):
        return
    _signal_group(root, signal.SIGSTOP)
    members = stop_family(root)
    _signal_group(root, signal.SIGKILL)
    for pid in members:
        send_signal(pid, signal.SIGKILL)


def _signal_group(leader: int, number: int) -> None:
    """Signal the group that a process leads, if it leads one."""
    with contextlib.suppress(OSError):
        if os.getpgid(leader) == leader:
            os.killpg(leader, number)


def take_precedence() -> int:
    """Be scheduled before user code, where the system allows it; return the niceness before."""
    before = os.nice(0)
    with contextlib.suppress(OSError):
        os.nice(-_PRECEDENCE)
    return before


def kill_all_descendants(*, spare: frozenset[int] = frozenset(), timeout: float = 5.0) -> bool:
    """SIGKILL and reap every descendant of this process.

    Args:
        spare: direct children that live on, with what is below them.
        timeout: seconds after which to give up (a process in an uninterruptible system call
            cannot be killed).

    Returns:
        True when nothing but the spared families is left.
    """
    deadline = time.monotonic() + timeout
    while True:
        doomed = [pid for pid in children(os.getpid()) if pid not in spare]
        if not doomed:
            return True
        for pid in doomed:
            kill_family(pid)
        for pid in doomed:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)

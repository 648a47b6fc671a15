"""Workers made before they are asked for, where they can't be forked from one that is ready.

A fresh interpreter takes seconds to import PyTorch and Triton, and most pairs need some eight of
them. So the server keeps a few that have imported everything, have touched no device and know
nothing yet. Each becomes one worker.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify.execution import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
_WORK = f"{_BOOT}from pytest_tritonverify.execution import worker; worker.main(int(sys.argv[2]))"
_WAIT = f"{_BOOT}from pytest_tritonverify.execution import spares; spares.wait(*sys.argv[2:])"


@dataclass
class Spares:
    """The spare processes of a server.

    Attributes:
        wanted: how many there shall be.
    """

    wanted: int = 0
    # Sockets on which they wait, by process id, the oldest first.
    _waiting: dict[int, socket.socket] = field(default_factory=dict)
    _hopeless: bool = False

    @property
    def pids(self) -> frozenset[int]:
        """Process ids of those that wait."""
        return frozenset(self._waiting)

    @property
    def missing(self) -> int:
        """How many to start."""
        return 0 if self._hopeless else max(self.wanted - len(self._waiting), 0)

    def add(self, pid: int, control: socket.socket) -> None:
        """Take up one that has been started.

        Args:
            pid: its process id.
            control: the server's end of the socket on which it waits.
        """
        self._waiting[pid] = control

    def hand_over(self, fds: Sequence[int]) -> int | None:
        """Make a worker of the oldest one.

        Args:
            fds: what it works with: its channel, and the pipe for its output.

        Returns:
            Its process id; None where there is none.
        """
        for pid in list(self._waiting):
            with self._waiting.pop(pid) as control:
                try:
                    socket.send_fds(control, [b"work"], list(fds))
                except OSError:
                    self._hopeless = True
                    continue
            return pid
        return None

    def dismiss(self) -> None:
        """End those that are more than are wanted."""
        while len(self._waiting) > self.wanted:
            pid, control = self._waiting.popitem()
            control.close()
            processes.kill_family(pid)

    def ended(self, pid: int) -> None:
        """Note that a process has ended: where it was a spare one, no more are made.

        What kills it while it imports would kill the next ones, too. A worker can say so.
        """
        if pid in self._waiting:
            self._waiting.pop(pid).close()
            self._hopeless = True


def become_worker(channel: int) -> None:
    """Become a fresh interpreter that is a worker; does not return.

    Args:
        channel: descriptor of its end of the socket to the judge.
    """
    _become(_WORK, channel)


def become_spare(control: int, device: str, preload: Sequence[str], warm_up: str) -> None:
    """Become a fresh interpreter that waits until a worker is needed; does not return.

    Args:
        control: descriptor of the socket on which it waits.
        device: name of the device that workers run on.
        preload: modules to import meanwhile.
        warm_up: module whose `warm_up` is called then.
    """
    _become(_WAIT, control, device, json.dumps(preload), warm_up)


def _become(program: str, kept: int, *words: str) -> None:
    os.set_inheritable(kept, True)  # noqa: FBT003 - positional only
    command = [sys.executable, "-c", program, json.dumps(sys.path), str(kept), *words]
    os.execv(command[0], command)  # noqa: S606 - no shell wanted


def import_all(modules: Sequence[str], warm_up: str) -> dict[str, str]:
    """Import what every worker needs; return what failed, by module, rather than raise it.

    Args:
        modules: their names.
        warm_up: module whose `warm_up` is called where all could be imported.
    """
    problems: dict[str, str] = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - a broken install raises anything
            problems[name] = f"{type(error).__name__}: {error}"
    if modules and not problems:
        importlib.import_module(warm_up).warm_up()
    return problems


def wait(control_fd: str, device: str, preload: str, warm_up: str) -> None:
    """Import what every worker needs, then wait to become one; returns when it has ended."""
    control = socket.socket(fileno=int(control_fd))
    control.set_inheritable(False)
    ready = _prepare(device, json.loads(preload), warm_up)
    with control:
        data, fds, _, _ = socket.recv_fds(control, 16, 2)
    if not data:
        return
    channel, output = fds
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    if not ready:
        # In a fresh interpreter what is wrong happens once more, and is told where it happens.
        become_worker(channel)
    os.set_inheritable(channel, False)  # noqa: FBT003 - positional only
    importlib.import_module("pytest_tritonverify.execution.worker").main(channel)


def _prepare(device: str, preload: Sequence[str], warm_up: str) -> bool:
    with contextlib.suppress(BaseException):  # a broken install raises anything
        # The server has no use for it.
        from pytest_tritonverify.execution.devices import DEVICES

        DEVICES[device].load()
        return not import_all(preload, warm_up)
    return False

"""The process that `warm_start` keeps: it has imported everything, and forks runs of pytest."""

from __future__ import annotations

import atexit
import fcntl
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_tritonverify.execution import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MESSAGE = 1 << 17
# Descriptors are fewer than this.
_BEYOND = 500
# Triton reads it when it is imported: fork servers of another device must import it anew.
_DECIDES = "TRITON_INTERPRET"
# As the fork server does, and what pytest's own process needs beside that.
_IMPORTS = (
    "torch",
    "torch._subclasses.fake_tensor",
    "triton",
    "triton.language",
    "pytest",
    "pytest_tritonverify.hooks",
    "pytest_tritonverify.comparison",
    "pytest_tritonverify.explaining",
    "pytest_tritonverify.strictness.scrutiny",
)


def main(control: int) -> NoReturn:
    """Serve requests until the test session closes the socket.

    Args:
        control: descriptor of the socket.
    """
    processes.become_subreaper()
    for name in _IMPORTS:
        importlib.import_module(name)
    importlib.import_module("pytest_tritonverify.execution.warmup").warm_up()
    request, fds = _next_run(socket.socket(fileno=control))
    _become_pytest(request, fds)


def _next_run(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return in a new process for every run that is asked for, and never in this one."""
    control.send(b"{}")
    while True:
        data, fds, _, _ = socket.recv_fds(control, MAX_MESSAGE, 3)
        if not data:
            _end()
        run = os.fork()
        if run == 0:
            control.close()
            return json.loads(data), fds
        for fd in fds:
            os.close(fd)
        control.send(json.dumps({"pid": run}).encode())
        waiting = os.pidfd_open(run)
        if control.fileno() in select.select([control.fileno(), waiting], [], [])[0]:
            _end()  # in the middle of a run: the session is over
        os.close(waiting)
        _, status = os.waitpid(run, 0)
        control.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())


def _end() -> NoReturn:
    processes.kill_all_descendants()
    os._exit(0)


def _become_pytest(request: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    """Be what `python -m pytest` is with the same environment, folder and files."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    server = _Server(os.environ.get(_DECIDES))
    _surround(request["environment"], request["folder"], request["path"])
    # A run's own folder `tests` is another one than this module's.
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    # Here alone a fork server is another fork, and not a new interpreter.
    host: Any = importlib.import_module("pytest_tritonverify.execution.host")
    host.subprocess = SimpleNamespace(
        Popen=server.start,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    sys.argv[:] = ["pytest", *request["arguments"]]
    code = importlib.import_module("pytest").console_main()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    # Triton, which pytest's own process never imports, complains when an interpreter is taken down.
    os._exit(code)


def _surround(environment: dict[str, str], folder: str, path: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = path
    tempfile.tempdir = None
    random.seed()


class _Server:
    """A process that becomes a fork server when one is asked for: it has seen nothing of the run.

    It stands behind what `Host` needs of `subprocess.Popen`.
    """

    def __init__(self, decided: str | None) -> None:
        self._decided = decided
        self._control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._used = False
        self.pid = os.fork()
        if self.pid == 0:
            self._control.close()
            _become_server(there)
        there.close()

    def start(self, command: list[str], **options: Any) -> Any:
        """Start a fork server by its command."""
        _, _, _, path, config = command
        other = options["env"].get(_DECIDES) != self._decided
        if self._used or other or '"fork": false' in config:
            return subprocess.Popen(command, **options)
        self._used = True
        request = {
            "path": json.loads(path),
            "config": config,
            "environment": options["env"],
            "folder": options["cwd"],
            "numbers": list(options["pass_fds"]),
        }
        socket.send_fds(self._control, [json.dumps(request).encode()], options["pass_fds"])
        return self

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it does not end in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("the fork server", timeout or 0.0)
            time.sleep(0.002)


def _become_server(control: socket.socket) -> NoReturn:
    """Wait until a fork server is wanted, and be it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(os.devnull).open("r+b") as null:
        for number in (0, 1):
            os.dup2(null.fileno(), number)
    data, fds, _, _ = socket.recv_fds(control, MAX_MESSAGE, 8)
    if not data:
        os._exit(0)  # the run has ended without one
    control.close()
    request = json.loads(data)
    os.setsid()
    _surround(request["environment"], request["folder"], request["path"])
    # By way of numbers that nobody has: each may be the number of another one.
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD, _BEYOND) for fd in fds]
    os.closerange(3, _BEYOND)
    for fd, number in zip(kept, request["numbers"], strict=True):
        os.dup2(fd, number)
        os.close(fd)
    server = importlib.import_module("pytest_tritonverify.execution.server")
    server.main(request["config"])
    raise AssertionError

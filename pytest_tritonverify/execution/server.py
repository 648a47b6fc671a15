"""The fork server: starts workers in milliseconds and leaves none of their descendants behind.

The judge starts one process that splits in two before anything heavy is imported. The *warden*
only waits: for the judge to vanish or for the server to end, and then kills all that is left
below it. The *server* imports torch and triton once, touches no device, and forks a worker per
request (or, where forking is not wanted, executes fresh interpreters, some of them ahead). Both
adopt orphans, so whichever of the two dies, the other one still finds every process.

Requests arrive as JSON datagrams on a SEQPACKET socket, descriptors attached; answers go back
the same way.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import processes, scratch
from pytest_tritonverify.execution.spares import Spares, become_spare, become_worker, import_all

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DATAGRAM = 1 << 16
# How often workers' processes are counted.
_CENSUS_INTERVAL = 0.25


@dataclass(frozen=True)
class ServerConfig:
    """What the judge tells the server at its start.

    Attributes:
        control_fd: the server's end of the control socket.
        judge: process id of the judge.
        device: name of the device that workers run on.
        preload: modules to import before the first fork, or in spare processes.
        warm_up: module whose `warm_up` is called after that.
        fork: fork workers directly; otherwise execute a fresh interpreter for each.
        scratch: folder for temporary files, removed by the warden.
        scratch_fd: holds that folder; see `scratch`.
        process_limit: processes that a worker may have below it; 0 for no limit.
        disposable: folders that the warden removes when the judge is gone.
    """

    control_fd: int
    judge: int
    device: str
    preload: tuple[str, ...]
    warm_up: str
    fork: bool
    scratch: str
    scratch_fd: int
    process_limit: int
    disposable: tuple[str, ...]


def main(config_json: str) -> None:
    """Run warden and server; never returns."""
    raw = json.loads(config_json)
    lists = {name: tuple(raw[name]) for name in ("preload", "disposable")}
    config = ServerConfig(**{**raw, **lists})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    processes.become_subreaper()
    warden_alive, warden_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(warden_alive)
        os.close(config.control_fd)
        _watch(config, pid)
    os.close(warden_end)
    processes.become_subreaper()
    _Server(config, warden_alive).serve()


def _watch(config: ServerConfig, server: int) -> None:
    """Wait until judge or server has ended, then kill what is left and exit."""
    # Not a pipe's end of file: a process that the judge forked could hold the pipe open.
    watched = [os.pidfd_open(server)]
    orphaned = True
    with contextlib.suppress(ProcessLookupError):
        judge = os.pidfd_open(config.judge)
        if os.getppid() == config.judge:
            ready, _, _ = select.select([*watched, judge], [], [])
            orphaned = judge in ready
    processes.kill_all_descendants()
    for folder in (config.scratch, *(config.disposable if orphaned else ())):
        scratch.remove(folder)
    os._exit(0)


@dataclass
class _Server:
    config: ServerConfig
    warden_alive: int
    workers: set[int] = field(default_factory=set)
    spares: Spares = field(default_factory=Spares)
    warm_for_fakes: bool = False
    reasons: dict[int, str] = field(default_factory=dict)
    next_census: float = 0.0

    def __post_init__(self) -> None:
        self.control = socket.socket(fileno=self.config.control_fd)
        self.wake_read, self.wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.niceness = processes.take_precedence()

    def serve(self) -> None:
        modules = self.config.preload if self.config.fork else ()
        problems = import_all(modules, self.config.warm_up)
        self._say({"event": "ready", "problems": problems})
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            watched: list[Any] = [self.control, self.wake_read, self.warden_alive]
            patience = _CENSUS_INTERVAL if self.workers and self.config.process_limit else None
            ready, _, _ = select.select(watched, [], [], patience)
            if self.warden_alive in ready:
                self._end()
            if self.wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake_read, 4096)
                self._reap()
            if self.control in ready:
                self._handle_request()
            self._disperse_crowds()

    def _disperse_crowds(self) -> None:
        """End workers that have more processes than they may, so that others get a turn."""
        limit, now = self.config.process_limit, time.monotonic()
        if not limit or now < self.next_census:
            return
        self.next_census = now + _CENSUS_INTERVAL
        for worker in self.workers:
            if len(processes.descendants(worker, limit + 1)) > limit:
                self.reasons[worker] = (
                    f"it had more than {limit} processes and was ended (--verify-process-limit)"
                )
                processes.kill_family(worker)
        # Those whose parents have ended belong to nobody: they can only be counted together.
        strays = [pid for pid in processes.children(os.getpid()) if pid not in self._own]
        if len(strays) > limit:
            processes.kill_all_descendants(spare=self._own)

    @property
    def _own(self) -> frozenset[int]:
        return self.spares.pids | self.workers

    def _say(self, message: dict[str, Any]) -> None:
        # A judge that is gone is noticed by the next read.
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(message).encode())

    def _handle_request(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self.control, MAX_DATAGRAM, 2)
        except OSError:
            self._end()
        if not data:
            self._end()
        request = json.loads(data)
        if request["op"] == "kill":
            if request["pid"] in self.workers:
                processes.kill_family(request["pid"])
        elif request["op"] == "fork":
            if request["fakes"] and self.config.fork and not self.warm_for_fakes:
                self.warm_for_fakes = True
                # Whatever goes wrong there goes wrong in the worker, too, and is told by it.
                with contextlib.suppress(Exception):
                    importlib.import_module(self.config.warm_up).warm_up_fakes()
            self._start_worker(fds)
            self.spares.wanted = 0 if self.config.fork else request["spares"]
            self.spares.dismiss()
            for _ in range(self.spares.missing):
                self._start_spare()
        for fd in fds:
            os.close(fd)

    def _start_worker(self, fds: list[int]) -> None:
        channel, output = fds

        def become() -> None:
            if self.config.fork:
                worker = importlib.import_module("pytest_tritonverify.execution.worker")
                worker.main(channel)
            else:
                become_worker(channel)

        pid = self.spares.hand_over(fds)
        if pid is None:
            try:
                pid = self._fork(output, become)
            except OSError as error:
                self._say({"event": "refused", "reason": f"cannot fork: {error}"})
                return
        self.workers.add(pid)
        self._say({"event": "started", "pid": pid})

    def _start_spare(self) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = self.config

        def become() -> None:
            become_spare(there.fileno(), config.device, config.preload, config.warm_up)

        with there, contextlib.suppress(OSError):
            self.spares.add(self._fork(None, become), here)
            return
        here.close()

    def _fork(self, output: int | None, become: Callable[[], object]) -> int:
        """Start a process that is no part of the server, and return its process id.

        Args:
            output: where its output goes; None for nowhere.
            become: what it does then.

        Raises:
            OSError: the system has no process left.
        """
        server = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            processes.die_with_parent(server)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for fd in (self.wake_read, self.wake_write, self.warden_alive, self.config.scratch_fd):
                os.close(fd)
            os.nice(self.niceness - os.nice(0))
            own = self._folder_of(os.getpid())
            with contextlib.suppress(FileExistsError):  # of an earlier process of this number
                os.mkdir(own, 0o700)  # noqa: PTH102 - pathlib is a detour in every start
            os.chdir(own)
            self.control.close()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            for stream in (1, 2):
                os.dup2(null if output is None else output, stream)
            os.close(null)
            if output is not None:
                os.close(output)
            become()
        except BaseException:  # noqa: BLE001 - the child must never return into the server
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(70)

    def _reap(self) -> None:
        """Report ended workers, and kill what they left behind."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if os.WIFSTOPPED(status):
                # A process that lets itself be traced tells each time that it stops.
                continue
            self.spares.ended(pid)
            if pid in self.workers:
                self.workers.discard(pid)
                ended.append((pid, status))
        if ended:
            # What an ended worker had started is a child of this process by now.
            processes.kill_all_descendants(spare=self._own)
        for pid, status in ended:
            reason = self.reasons.pop(pid, None)
            self._say({"event": "exit", "pid": pid, "status": status, "reason": reason})
            scratch.remove(self._folder_of(pid))

    def _folder_of(self, worker: int) -> str:
        """Return the folder that a worker starts in and may fill."""
        return os.path.join(self.config.scratch, str(worker))  # noqa: PTH118 - as it is used

    def _end(self) -> None:
        processes.kill_all_descendants()
        os._exit(0)

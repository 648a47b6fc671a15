"""The judge's side of the fork server: start it, ask it for workers, and hear how they end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import processes, scratch, server, wire
from pytest_tritonverify.execution.worker_handle import Worker

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_tritonverify.execution.devices import Device

# Importing torch from a cold disk takes this long on slow machines.
_START_TIMEOUT = 300.0
_FORK_TIMEOUT = 60.0
_KILL_TIMEOUT = 10.0
_END_TIMEOUT = 10.0
_PRELOAD = ("torch", "torch._subclasses.fake_tensor", "triton", "triton.language")

_SERVE = "from pytest_tritonverify.execution import server; server.main(sys.argv[2])"
_BOOT = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); {_SERVE}"
# Of the judge's import path nothing but this package may be found there.
_FOREIGN_BOOT = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location(
    "pytest_tritonverify", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]]
)
sys.modules["pytest_tritonverify"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
sys.path[:] = [entry for entry in sys.path if entry]
{_SERVE}
"""


class HostError(RuntimeError):
    """The fork server can't be started or has ended; no user code is to blame."""


@dataclass(frozen=True)
class HostConfig:
    """How workers are started.

    Attributes:
        device: where implementations run.
        fork: fork workers from a process that has imported torch and triton.
        private_dirs: folders whose files must not be found by a worker's imports.
        environment: variables to set on top of the judge's own.
        python: an interpreter that has what workers import, but for this package; None for the
            judge's own, with the judge's import path.
        base: variables to start from instead of the judge's own.
        preload: modules that the server imports before it forks, or spare processes beforehand.
        warm_up: module whose `warm_up` is called then.
        process_limit: processes that a worker may have below it; 0 for no limit.
        disposable: folders to be removed when the judge is killed.
    """

    device: Device
    fork: bool
    private_dirs: frozenset[Path] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    base: Mapping[str, str] | None = None
    preload: tuple[str, ...] = _PRELOAD
    warm_up: str = "pytest_tritonverify.execution.warmup"
    process_limit: int = 0
    disposable: tuple[str, ...] = ()


class Host:
    """One fork server, and the workers that it has started.

    Attributes:
        spares: how many processes to have ready beyond a worker that is asked for, where workers
            aren't forked.
        scratch: a folder for temporary files, while the server runs.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.spares = 0
        self.scratch = ""
        self._scratch_held = -1
        # Of the present server: process ids of workers, and how those of them ended that have.
        self._workers: set[int] = set()
        self._exits: dict[int, int] = {}
        # Why some of them were ended, in words.
        self._reasons: dict[int, str] = {}
        self._ready: dict[str, Any] | None = None

    def start(self) -> None:
        """Start the server without waiting for its imports; does nothing when it runs."""
        if self._control is not None:
            return
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.scratch, self._scratch_held = scratch.make()
        config = {
            "control_fd": there.fileno(),
            "judge": os.getpid(),
            "device": self.config.device.name,
            "preload": self.config.preload,
            "warm_up": self.config.warm_up,
            "fork": self.config.fork,
            "scratch": self.scratch,
            "scratch_fd": self._scratch_held,
            "process_limit": self.config.process_limit,
            "disposable": self.config.disposable,
        }
        if self.config.python is None:
            path = import_path(sys.path, self.config.private_dirs)
            command = [sys.executable, "-c", _BOOT, json.dumps(path)]
        else:
            package = str(Path(__file__).parents[1])
            command = [self.config.python, "-c", _FOREIGN_BOOT, package]
        self._process = subprocess.Popen(
            [*command, json.dumps(config)],
            env=self._environment(),
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[there.fileno(), self._scratch_held],
            start_new_session=True,
        )
        there.close()
        self._control = here

    def _environment(self) -> dict[str, str]:
        base = os.environ if self.config.base is None else self.config.base
        environment = {**base, **self.config.device.environment(), **self.config.environment}
        # Tasks seed weights from hash(key): all workers must agree on it.
        environment["PYTHONHASHSEED"] = "0"
        # `error` there would turn a kernel's warnings into failures.
        environment.pop("PYTHONWARNINGS", None)
        # A pool of BLAS threads in the server would not survive the fork.
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Threads that wait by spinning starve the other processes of a run.
        environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        if "PYTHONPATH" in environment:
            given = [entry for entry in environment["PYTHONPATH"].split(os.pathsep) if entry]
            kept = import_path(given, self.config.private_dirs)
            environment["PYTHONPATH"] = os.pathsep.join(kept)
        return environment

    def problems(self) -> dict[str, str]:
        """Wait for the server's imports and return those that failed, by module.

        Raises:
            HostError: the server ended before it was ready.
        """
        self.start()
        deadline = time.monotonic() + _START_TIMEOUT
        while self._ready is None:
            message = self._next_message(deadline)
            if message is None:
                raise HostError("the fork server did not get ready: importing torch takes too long")
            self._sort(message)
        problems: dict[str, str] = self._ready["problems"]
        return problems

    def spawn(self, start: wire.Message) -> Worker:
        """Start a worker and send it its start request.

        Raises:
            HostError: the server can't be reached or can't fork.
        """
        self.problems()
        here, there = wire.channel_pair()
        output_read, output_write = os.pipe()
        os.set_blocking(output_read, False)
        try:
            fakes = start["role"] == "describe"
            self._send(
                {"op": "fork", "fakes": fakes, "spares": self.spares},
                [there.fileno(), output_write],
            )
            # The first time the server imports what makes fake tensors.
            pid = self._started_pid(_START_TIMEOUT if fakes else _FORK_TIMEOUT)
        except BaseException:
            here.close()
            os.close(output_read)
            raise
        finally:
            there.close()
            os.close(output_write)
        worker = Worker(self, pid, here, output_read)
        with contextlib.suppress(OSError):
            here.send({"op": "start", "device": self.config.device.name, **start})
        return worker

    def _started_pid(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while True:
            message = self._next_message(deadline)
            if message is None:
                # Its answer, should it come yet, must not be taken for another one.
                self.close()
                raise HostError("the process that starts workers does not answer")
            if message["event"] == "started":
                self._workers.add(message["pid"])
                return int(message["pid"])
            if message["event"] == "refused":
                raise HostError(message["reason"])
            self._sort(message)

    def fileno(self) -> int:
        """Return the descriptor on which news of ended workers arrive."""
        if self._control is None:
            raise HostError("the fork server is not running")
        return self._control.fileno()

    def exit_status(self, pid: int, timeout: float) -> int | None:
        """Return the wait status of a worker that ended, or None when none is known in time.

        Raises:
            HostError: the server that started it has ended.
        """
        deadline = time.monotonic() + timeout
        while pid not in self._exits:
            if pid not in self._workers:
                raise HostError("the process that starts workers has ended unexpectedly")
            message = self._next_message(deadline)
            if message is None:
                return None
            self._sort(message)
        return self._exits[pid]

    def knows(self, pid: int) -> bool:
        """Say whether the server that started a worker is still there, so far as is known."""
        try:
            while pid in self._workers and (message := self._next_message(0.0)) is not None:
                self._sort(message)
        except HostError:
            return False
        return pid in self._workers

    def reason(self, pid: int) -> str | None:
        """Return why the server has ended a worker by itself; None where it has not."""
        return self._reasons.get(pid)

    def kill(self, pid: int) -> None:
        """Kill a worker and all its descendants, and wait until it is gone."""
        try:
            if self.exit_status(pid, 0) is None:
                self._send({"op": "kill", "pid": pid}, [])
                if self.exit_status(pid, _KILL_TIMEOUT) is None:
                    # Somebody has stopped the server: without it there is no telling who is left.
                    self.close()
        except HostError:
            # The kernel kills the workers of a dead server, the warden what they had started.
            return
        self._workers.discard(pid)
        self._exits.pop(pid, None)
        self._reasons.pop(pid, None)

    def _send(self, request: dict[str, Any], fds: list[int]) -> None:
        if self._control is None:
            raise HostError("the fork server is not running")
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        except OSError as error:
            self._fail(error)

    def _next_message(self, deadline: float) -> dict[str, Any] | None:
        if self._control is None:
            raise HostError("the fork server is not running")
        if not wire.wait_ready([self._control], deadline - time.monotonic())[0]:
            return None
        try:
            data = self._control.recv(server.MAX_DATAGRAM)
        except OSError as error:
            self._fail(error)
        if not data:
            self._fail(None)
        message: dict[str, Any] = json.loads(data)
        return message

    def _fail(self, cause: OSError | None) -> Any:
        self.close()
        raise HostError("the process that starts workers has ended unexpectedly") from cause

    def _sort(self, message: dict[str, Any]) -> None:
        if message["event"] == "exit":
            self._exits[message["pid"]] = message["status"]
            if message["reason"] is not None:
                self._reasons[message["pid"]] = message["reason"]
        elif message["event"] == "ready":
            self._ready = message

    def close(self) -> None:
        """End the server; it takes everything below it along."""
        if self._control is None or self._process is None:
            return
        # A process that the judge has forked may hold the socket too: closing would not end it.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        self._control = None
        self._ready = None
        self._workers.clear()
        self._exits.clear()
        self._reasons.clear()
        try:
            self._process.wait(timeout=_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            # Somebody has stopped the server or the warden.
            processes.kill_family(self._process.pid)
            self._process.wait()
        self._process = None
        # The warden does this too, unless it was killed.
        scratch.remove(self.scratch)
        os.close(self._scratch_held)


def import_path(entries: Collection[str], private_dirs: Collection[Path]) -> list[str]:
    """Return import path entries without the current folder and without folders of pairs.

    A `torch.py` beside an implementation must not be found by any import of a worker.
    """
    cwd = Path.cwd()
    kept = []
    for entry in entries:
        path = Path(entry) if entry else cwd
        resolved = path.resolve()
        if entry and resolved not in private_dirs:
            kept.append(str(path.absolute()))
    return kept

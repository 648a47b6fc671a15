"""The role that compiles kernels: untrusted code is imported here, and none of it is run.

There is one such process for a pair and a target. It imports the implementation, which makes the
kernels, and forks a process for each one that is to be compiled, since compilers crash and hang.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import standin
from pytest_tritonverify.compilation import compile_launch, finding, jobs, npu, offline
from pytest_tritonverify.compilation.targets import NPU, Target
from pytest_tritonverify.execution import loading, secrecy, wire
from pytest_tritonverify.execution.confinement import Confinement

if TYPE_CHECKING:
    from typing import IO

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase


def create(request: Message, phase: Phase) -> Compiler:
    """Make the role."""
    return Compiler(request, phase)


class Compiler:
    """Compiles the kernels of one implementation for one target."""

    def __init__(self, request: Message, phase: Phase) -> None:
        self._path = Path(request["implementation"])
        self._target = Target(**request["target"])
        self._phase = phase
        self.user_files = (str(self._path.parent),)
        finding.watch()
        standin.install(request["standin"])
        offline.install(self._target, standin=request["standin"] != standin.OFF)
        if self._target.kind == NPU:
            npu.prepare(self._target.arch)
        secrecy.forbid_reading(Path(request["task"]))
        if request["confinement"]:
            Confinement.of(request["confinement"]).enter()
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._running: list[jobs.Job] = []
        self._limit, self._most = 0.0, 1

    def do_begin(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Import the implementation, and take in what is to be compiled.

        The request holds the `launches`, the seconds of `limit` for each of them, and how many
        `processes` may be at work.
        """
        self._phase.enter("import")
        loading.load_module(self._path)
        self._phase.enter("compile")
        self._waiting.extend(enumerate(request["launches"]))
        self._limit, self._most = request["limit"], request["processes"]
        return {}, None

    def do_next(self, _request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Return the outcome of the next kernel that is compiled, in whichever order."""
        while True:
            while self._waiting and len(self._running) < self._most:
                self._start(*self._waiting.popleft())
            left = min(job.deadline for job in self._running) - time.monotonic()
            ready, _ = wire.wait_ready(self._running, left)
            for job in self._running:
                if job.fileno() in ready or job.deadline <= time.monotonic():
                    self._running.remove(job)
                    return {"outcome": job.outcome()}, None

    def _start(self, index: int, entry: dict[str, Any]) -> None:
        def compile_one(output: IO[bytes]) -> dict[str, Any]:
            return compile_launch.outcome(entry, self._target, output)

        self._running.append(jobs.start(index, self._limit, compile_one))

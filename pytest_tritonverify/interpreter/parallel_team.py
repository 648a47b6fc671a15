"""Forked helpers that run programs from the end of a grid while its owner runs them from the front.

The owner is the process that called the launch. Fork gives each helper a copy of its memory at the
same addresses, so what a helper stores is seen by nobody until the owner takes it over.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import gc
import json
import mmap
import os
import select
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pytest_tritonverify.execution import processes
from pytest_tritonverify.interpreter import bounds, masked_lanes
from pytest_tritonverify.interpreter.parallel_tracking import (
    MAX_CHUNKS,
    HelperWatch,
    Marks,
    Trace,
    UnspreadableError,
    conflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.interpreter.masked_lanes import Site
    from pytest_tritonverify.interpreter.parallel_memory import Regions

TOO_LONG = "a helper took too long"
_READ_SIZE = 1 << 16
_LOAD = Path("/proc/loadavg")


@dataclass(frozen=True)
class Work:
    """The programs to be run by owner and helpers, cut into chunks of neighbours.

    Attributes:
        run: runs one program by its place in the grid's order.
        first: the place of the first one.
        stop: the place after the last one.
    """

    run: Callable[[int], None]
    first: int
    stop: int

    @property
    def chunks(self) -> int:
        """How many chunks there are; each has about as many programs as the next."""
        return min(self.stop - self.first, MAX_CHUNKS)

    def programs(self, chunk: int) -> range:
        """Return the places of a chunk's programs."""
        count = self.stop - self.first
        start, stop = (self.first + count * end // self.chunks for end in (chunk, chunk + 1))
        return range(start, stop)


@dataclass(frozen=True)
class Memory:
    """The memory of a launch.

    Attributes:
        regions: where its tensors are.
        watched: the regions in which not only stores but loads are noted.
        forbidden: the regions that a helper may not store into.
    """

    regions: Regions
    watched: frozenset[int]
    forbidden: frozenset[int]


class Claims:
    """Who runs what: chunks are taken from the front and from the back until none is left."""

    def __init__(self, chunks: int) -> None:
        self._state = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64)[:3]
        self._state[:] = 0, chunks, 0
        # Unlike a semaphore, this lock is free again when its owner dies.
        self.lock = os.memfd_create("tritonverify-claims")

    def take(self, *, front: bool) -> int | None:
        """Claim the next chunk from one end, None if all are claimed or a helper gave up."""
        fcntl.lockf(self.lock, fcntl.LOCK_EX)
        try:
            low, high, stopped = (int(number) for number in self._state)
            if low == high or stopped:
                return None
            if front:
                self._state[0] = low + 1
                return low
            self._state[1] = high - 1
            return high - 1
        finally:
            fcntl.lockf(self.lock, fcntl.LOCK_UN)

    def stop(self) -> None:
        """Let nobody claim anything any more."""
        self._state[2] = 1

    @property
    def front(self) -> int:
        """The number of chunks claimed from the front."""
        return int(self._state[0])

    def close(self) -> None:
        """Give the lock's descriptor back."""
        os.close(self.lock)


class _Helper:
    """One forked process, as its owner sees it."""

    def __init__(self, pid: int, pipe: int, trace: Trace, content: Marks) -> None:
        self.pid = pid
        self.pipe = pipe
        self.trace = trace
        self.content = content
        self.answer = b""
        self.done = False

    def kill(self) -> None:
        """End and reap the process; it may have ended already."""
        os.close(self.pipe)
        # Not yet reaped, so the number is still its own, unless the kernel reaps by itself.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Team:
    """The helpers of one launch."""

    def __init__(self, work: Work, memory: Memory, interpreter: Any) -> None:
        self.work = work
        self.claims = Claims(work.chunks)
        self.written = Marks(memory.regions)
        self._memory = memory
        self._interpreter = interpreter
        self._cplusplus = interpreter._interpreter  # noqa: SLF001 - the module is what is changed
        self._helpers: list[_Helper] = []

    def add_helper(self) -> None:
        """Fork one helper.

        Raises:
            OSError: the system refuses to.
        """
        marks = Marks(self._memory.regions), Marks(self._memory.regions)
        content = Marks(self._memory.regions)
        answers, end = os.pipe()
        owner = os.getpid()
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of the idle threads of torch, which no helper ever needs.
                warnings.simplefilter("ignore")
                pid = os.fork()
        except BaseException:
            os.close(answers)
            os.close(end)
            raise
        if pid == 0:
            self._serve(owner, end, Trace(*marks), content)
        os.close(end)
        os.set_blocking(answers, False)
        self._helpers.append(_Helper(pid, answers, Trace(*marks), content))

    def __len__(self) -> int:
        return len(self._helpers)

    def _serve(self, owner: int, end: int, trace: Trace, content: Marks) -> NoReturn:
        """Run chunks in the helper, and never its owner's exit handlers, whatever happens."""
        try:
            processes.die_with_parent(owner)
            import torch

            # Its own threads were not forked, and it would wait for them.
            torch.set_num_threads(1)
            _fall_silent(keep={end, self.claims.lock})
            lanes = self._run_chunks(trace)
            regions = self._memory.regions
            for region, (low, high) in trace.wrote.items():
                content.of(region)[low:high] = regions.memory(region)[low:high]
            answer = {
                "wrote": list(trace.wrote.items()),
                "looked": list(trace.looked.items()),
                "unwatched": list(trace.unwatched),
                "lanes": lanes,
            }
            _write(end, answer)
        except BaseException as error:  # noqa: BLE001 - the owner runs these programs again
            with contextlib.suppress(BaseException):
                _write(end, {"reason": _reason(error)})
            self.claims.stop()
        finally:
            os._exit(0)

    def _run_chunks(self, trace: Trace) -> list[tuple[int, list[Site]]]:
        memory = self._memory
        watch = HelperWatch(
            self._cplusplus, memory.regions, trace, memory.watched, memory.forbidden
        )
        self._interpreter._interpreter = watch.memory  # noqa: SLF001 - as above
        bounds.refuse_with(watch.refuse)
        lanes = []
        while (chunk := self.claims.take(front=False)) is not None:
            watch.begin(chunk + 1)
            masked_lanes.take_sites()
            for program in self.work.programs(chunk):
                self.work.run(program)
            lanes.append((chunk, masked_lanes.take_sites()))
        return lanes

    def take_over(self, front: Trace, patience: float) -> str | None:
        """Wait for the helpers and put what they have stored into the owner's memory.

        Args:
            front: what the owner has touched.
            patience: how many seconds to wait. A helper that hangs for a reason of its own must
                not stop the owner, which runs the programs again.

        Returns:
            Why nothing was taken over, None if all was.
        """
        reason = self._wait(time.monotonic() + patience)
        if reason is not None:
            return reason
        answers = []
        for helper in self._helpers:
            answer = json.loads(helper.answer)
            helper.trace.wrote = {region: (low, high) for region, (low, high) in answer["wrote"]}
            helper.trace.looked = {region: (low, high) for region, (low, high) in answer["looked"]}
            helper.trace.unwatched = set(answer["unwatched"])
            answers += answer["lanes"]
        reason = conflict(front, [helper.trace for helper in self._helpers])
        if reason is None:
            for helper in self._helpers:
                self._copy(helper)
            # In the order of the programs, as if one process had met them all.
            for _, sites in sorted(answers, key=lambda answer: answer[0]):
                masked_lanes.add_sites(sites)
        return reason

    def failure(self) -> str | None:
        """Say why a helper has ended before its work was done, None if none has."""
        self._collect(0.0)
        for helper in self._helpers:
            if helper.done:
                answer = json.loads(helper.answer or b'{"reason": "a helper died"}')
                if "reason" in answer:
                    return str(answer["reason"])
        return None

    def _wait(self, deadline: float) -> str | None:
        """Return None once all helpers are done, else what went wrong."""
        while True:
            reason = self.failure()
            if reason is not None or all(helper.done for helper in self._helpers):
                return reason
            left = deadline - time.monotonic()
            if left <= 0:
                return TOO_LONG
            self._collect(left)

    def _collect(self, seconds: float) -> None:
        """Wait for the next part of an answer; a helper is done when its pipe ends."""
        poll = select.poll()
        pending = {helper.pipe: helper for helper in self._helpers if not helper.done}
        for pipe in pending:
            poll.register(pipe, select.POLLIN)
        for pipe, _ in poll.poll(seconds * 1000) if pending else ():
            part = os.read(pipe, _READ_SIZE)
            pending[pipe].answer += part
            pending[pipe].done = not part

    def _copy(self, helper: _Helper) -> None:
        for region, (low, high) in helper.trace.wrote.items():
            written = helper.trace.written.of(region)[low:high] != 0
            target = self._memory.regions.memory(region)[low:high]
            content = helper.content.of(region)[low:high]
            if written.all():
                target[:] = content
            else:
                np.copyto(target, content, where=written)

    def close(self) -> None:
        """End all helpers that are left."""
        self.claims.stop()
        for helper in self._helpers:
            helper.kill()
        self._helpers.clear()
        self.claims.close()


class _Stopping:
    """Stands for the standard streams in a helper: what a program prints must appear in order."""

    def __getattr__(self, name: str) -> Any:
        raise UnspreadableError("a program used a standard stream")


def _fall_silent(keep: set[int]) -> None:
    """Let go of all that the owner's process shares with others."""
    faulthandler.disable()
    gc.disable()
    signal.set_wakeup_fd(-1)
    sys.stdin = sys.stdout = sys.stderr = _Stopping()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - a path object a name is too slow
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))
    # What is opened from now on must not be taken for a standard stream by native code.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in {0, 1, 2} - keep:
        os.dup2(null, stream)


def _reason(error: BaseException) -> str:
    if isinstance(error, UnspreadableError):
        return str(error)
    return f"a program raised {type(error).__name__}"


def _write(pipe: int, answer: dict[str, Any]) -> None:
    rest = memoryview(json.dumps(answer).encode())
    while rest:
        rest = rest[os.write(pipe, rest) :]


def other_threads() -> bool:
    """Say whether Python code runs in more than one thread of this process."""
    return len(sys._current_frames()) > 1  # noqa: SLF001 - counts threads of `_thread` too


def debugged() -> bool:
    """Say whether a debugger or a profiler follows this process."""
    return sys.gettrace() is not None or sys.getprofile() is not None


def free_cores() -> int:
    """Return how many of the cores that this process may use nobody uses at the moment."""
    try:
        running = int(_LOAD.read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return len(os.sched_getaffinity(0)) - 1
    return len(os.sched_getaffinity(0)) - max(1, running)  # this process among them


def can_fork() -> bool:
    """Say whether this system has what helpers need."""
    return sys.platform == "linux" and Path("/proc/self/fd").exists()

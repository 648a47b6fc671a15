"""The judge's handle on one worker process: requests, answers, deadlines, output, death."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import errors, processes, wire
from pytest_tritonverify.execution.worker import STACK_SIGNAL, UNABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.host import Host

_OUTPUT_LIMIT = 1 << 16
# Phases of one request whose times are kept; an honest worker has fewer.
_MOST_PHASES = 32
# What a killed or crashed process needs to be reaped and reported.
_EXIT_GRACE = 5.0
# What a hanging process gets to write down its Python stacks, and how long none of them means that
# all are there. A busy machine may let it wait for its turn.
_STACK_PATIENCE = 2.0
_STACK_GRACE = 0.3
_STACK_WORDS = b"(most recent call first)"
_BAD_ADDRESS = (signal.SIGSEGV, signal.SIGBUS)


@dataclass(frozen=True)
class Answer:
    """What a worker answered: its message, and the descriptor that came with it."""

    message: wire.Message
    fd: int | None


class WorkerLost(Exception):  # noqa: N818 - an event, told apart below
    """A worker ended or was ended without answering.

    Attributes:
        phase: what it was doing.
        output: the end of what it had written.
    """

    def __init__(self, text: str, phase: str, output: str) -> None:
        super().__init__(text)
        self.phase = phase
        self.output = output


class WorkerDied(WorkerLost):
    """The process ended by itself: a signal, or an exit of its own.

    Attributes:
        bad_address: it reached for memory that is not its own.
    """

    def __init__(self, status: int, phase: str, output: str, reason: str | None = None) -> None:
        super().__init__(reason or describe_status(status), phase, output)
        self.bad_address = os.WIFSIGNALED(status) and os.WTERMSIG(status) in _BAD_ADDRESS


class WorkerHung(WorkerLost):
    """The process did not answer in time and was killed; `output` ends with its stacks."""


class WorkerBroken(WorkerLost):
    """The process sent what is no answer, and was killed."""


class Worker:
    """One worker process. Made by `Host.spawn`."""

    def __init__(self, host: Host, pid: int, channel: wire.Channel, output: int) -> None:
        self.pid = pid
        self.phase = "start"
        # When each phase of the request under way began, on the clock of `time.monotonic`.
        self.entered: dict[str, float] = {}
        self.alive = True
        self._host = host
        self._channel = channel
        self._output_fd = output
        self._output = bytearray()
        self._output_open = True
        # Numbers of the last request, and of the next answer: the start request has 0.
        self._asked = 0
        self._due = 0

    @property
    def orphaned(self) -> bool:
        """Whether the server that started it has ended, and the process with it."""
        return not self._host.knows(self.pid)

    def post(self, message: wire.Message, fd: int | None = None) -> None:
        """Send a request, or what a worker that reads nothing takes of it.

        `result` sends the rest, and notices a worker that is gone.
        """
        self._asked += 1
        self.entered = {}
        self._channel.queue({**message, "n": self._asked}, fd)
        with contextlib.suppress(OSError):
            self._channel.flush()

    def result(self, deadline: float) -> Answer:
        """Wait for the next answer.

        Args:
            deadline: on the clock of `time.monotonic`.

        Raises:
            WorkerDied: the process ended instead of answering.
            WorkerHung: no answer came in time; the process has been killed.
            WorkerBroken: what came is no answer; the process has been killed.
            HostError: the fork server ended.
        """
        try:
            while True:
                answer = self._answer_read()
                if answer is not None:
                    self._drain()
                    return answer
                if self._channel.closed_by_peer:
                    self._raise_death()
                self._wait(deadline)
        except wire.WireError as error:
            raise self._broken(str(error)) from None
        except ConnectionError:
            self._raise_death()
            raise AssertionError from None  # pragma: no cover - the line above raises

    def _answer_read(self) -> Answer | None:
        while (frame := self._channel.next_frame()) is not None:
            event = frame.message.get("event")
            if event == "answer" and frame.message.get("n") == self._due <= self._asked:
                self._due += 1
                return Answer(frame.message, frame.fd)
            if frame.fd is not None:
                os.close(frame.fd)
            phase = frame.message.get("phase")
            if event != "phase" or not isinstance(phase, str):
                raise wire.WireError("it sent what is neither the answer nor a phase")
            self.phase = errors.one_line(phase, 40)
            if len(self.entered) < _MOST_PHASES:
                self.entered[self.phase] = time.monotonic()
        return None

    def _wait(self, deadline: float) -> None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise self._hung()
        watched: list[Any] = [self._channel, self._host]
        if self._output_open:
            watched.append(self._output_fd)
        unsent = [self._channel] if self._channel.unsent else []
        readable, writable = wire.wait_ready(watched, remaining, unsent)
        if self._output_open and self._output_fd in readable:
            self._drain()
        if self._channel.fileno() in writable:
            # A failure shows when the channel is read.
            with contextlib.suppress(OSError):
                self._channel.flush()
        if self._channel.fileno() in readable:
            self._channel.read_available()
        elif self._host.exit_status(self.pid, 0) is not None:
            # Its socket may be held open by somebody else.
            self._raise_death()

    def _drain(self) -> None:
        """Take in what the worker has written, keeping the end of it."""
        with contextlib.suppress(BlockingIOError):
            # Bounded, so that an endless writer can't keep the judge from its deadline.
            for _ in range(16):
                data = os.read(self._output_fd, _OUTPUT_LIMIT) if self._output_open else b""
                if not data:
                    self._output_open = False
                    break
                self._output += data
                del self._output[:-_OUTPUT_LIMIT]

    def take_output(self) -> str:
        """Return what the worker has written since the last call, or the end of it."""
        self._drain()
        text = errors.printable(self._output.decode("utf-8", "backslashreplace"))
        self._output.clear()
        return text

    def _raise_death(self) -> None:
        status = self._host.exit_status(self.pid, _EXIT_GRACE)
        if status is None:
            raise self._broken("it closed its connection to the judge")
        phase, output = self.phase, self.take_output()
        reason = self._host.reason(self.pid)
        self.kill()
        raise WorkerDied(status, phase, output, reason)

    def _hung(self) -> WorkerHung:
        with contextlib.suppress(OSError):
            self._drain()
            os.kill(self.pid, STACK_SIGNAL)
            # Reading all the while: a full pipe would keep the stacks from being written.
            end = time.monotonic() + _STACK_PATIENCE
            while self._output_open and (remaining := end - time.monotonic()) > 0:
                if wire.wait_ready([self._output_fd], min(remaining, _STACK_GRACE))[0]:
                    self._drain()
                elif _STACK_WORDS in self._output:
                    break
        phase, output = self.phase, self.take_output()
        self.kill()
        return WorkerHung("it did not answer in time", phase, output)

    def _broken(self, reason: str) -> WorkerBroken:
        phase, output = self.phase, self.take_output()
        self.kill()
        return WorkerBroken(reason, phase, output)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the process, and everything below it, from running meanwhile."""
        stopped = processes.stop_family(self.pid) if self.alive else []
        processes.settle(stopped)
        try:
            yield
        finally:
            for pid in stopped:
                processes.send_signal(pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the process and everything that it started; may be called again."""
        if not self.alive:
            return
        self.alive = False
        self._host.kill(self.pid)
        self._channel.close()
        os.close(self._output_fd)
        self._output_open = False


def describe_status(status: int) -> str:
    """Say in words how a process ended, from its wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = "unknown"
        likely: dict[int, str] = {
            signal.SIGSEGV: ": an access outside of its memory, as by a pointer out of bounds",
            signal.SIGBUS: ": an access outside of its memory",
            signal.SIGABRT: ": an abort, as after a corrupted heap or a failed assertion",
            signal.SIGKILL: ": killed from outside, often for using up the machine's memory",
            signal.SIGFPE: ": an integer division by zero",
        }
        return f"killed by signal {number} ({name}){likely.get(number, '')}"
    if os.WIFSTOPPED(status):
        return f"stopped by signal {os.WSTOPSIG(status)}, and then ended"
    code = os.waitstatus_to_exitcode(status)
    likely_cause = ""
    if code == UNABLE:
        likely_cause = (
            ": it could not go on, since the code that it ran has changed Python, a module or a "
            "descriptor that it needs"
        )
    return f"it left by itself with exit status {code}{likely_cause}"

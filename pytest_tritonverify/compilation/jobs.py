"""Compile one kernel in a process that is forked for it, and tell what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import words
from pytest_tritonverify.execution import errors, processes
from pytest_tritonverify.execution.worker_handle import describe_status

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

_LONGEST_WORDS = 8000


@dataclass
class Job:
    """A process that compiles a kernel.

    Attributes:
        index: which kernel.
        pid: its process.
        deadline: when it is ended, on the clock of `time.monotonic`.
        started: when it was started, on the same clock.
        pidfd: a descriptor of the process.
        answer: the file that it writes its outcome to.
        output: the file that its standard output and error go to.
        limit: the seconds that it may take.
    """

    index: int
    pid: int
    deadline: float
    started: float
    pidfd: int
    answer: IO[bytes]
    output: IO[bytes]
    limit: float

    def fileno(self) -> int:
        """Return the descriptor that can be read once the process has ended."""
        return self.pidfd

    def outcome(self) -> dict[str, Any]:
        """Return what came of it, ending the process where it has not ended."""
        ended = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        if not ended:
            processes.kill_family(self.pid)
        _, status = os.waitpid(self.pid, 0)
        told, output = _read(self.answer), _text(_read(self.output))
        os.close(self.pidfd)
        seconds = time.monotonic() - self.started
        outcome: dict[str, Any] = {"index": self.index, "seconds": seconds}
        answer = None
        with contextlib.suppress(ValueError):
            answer = json.loads(told)
        if not ended:
            text = f"the compiler did not finish within {self.limit:g} s, and was ended"
            return {**outcome, "error": _error(words.TIMEOUT, text, output)}
        if not isinstance(answer, dict):
            text = f"the compiling process ended without a result: {describe_status(status)}"
            return {**outcome, "error": _error(words.CRASH, text, output)}
        return {**outcome, **answer}


def _error(subkind: str, message: str, output: str) -> dict[str, Any]:
    said = errors.clip(errors.without_own_frames(output), _LONGEST_WORDS)
    return {"subkind": subkind, "message": message, "words": said, "file": None, "line": None}


def _read(stream: IO[bytes]) -> bytes:
    with stream:
        stream.seek(0)
        return stream.read(1 << 20)


def _text(data: bytes) -> str:
    return errors.printable(data.decode("utf-8", "backslashreplace"))


def start(index: int, limit: float, compile_one: Callable[[IO[bytes]], dict[str, Any]]) -> Job:
    """Fork a process that compiles a kernel.

    Args:
        index: which kernel.
        limit: seconds that it may take.
        compile_one: compiles, and returns the outcome as JSON; it is given the file that holds
            what compilers print.
    """
    answer, output = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - they outlive this
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # user code may have put anything there
            stream.flush()
    parent = os.getpid()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            processes.die_with_parent(parent)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.stdout = sys.stderr = os.fdopen(os.dup(1), "w", 1, encoding="utf-8")
            warnings.simplefilter("ignore")  # they are no compiler's words
            outcome = compile_one(output)
            answer.write(json.dumps(outcome).encode())
            answer.flush()
        except BaseException:  # noqa: BLE001 - the child must never return into the worker
            sys.excepthook(*sys.exc_info())
            os._exit(70)
        os._exit(0)
    return Job(index, pid, started + limit, started, os.pidfd_open(pid), answer, output, limit)

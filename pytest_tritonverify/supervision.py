"""Keep a worker going for one side of a pair, and say in words how it failed."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import faults, hints
from pytest_tritonverify.execution import errors
from pytest_tritonverify.execution.host import HostError
from pytest_tritonverify.execution.worker_handle import (
    Answer,
    WorkerBroken,
    WorkerHung,
    WorkerLost,
)
from pytest_tritonverify.reported import RunFacts
from pytest_tritonverify.results.records import CRASH, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.execution.wire import Message

# Phases in which a failure is the module's: no other case of the pair could end differently.
_LOADING = ("start", "import")

# What faulthandler writes above the frames of the thread that was running, and their form.
_RUNNING = "Current thread "
_FRAME = re.compile(r'^  File "([^"\n]{1,4096})", line (\d{1,9}) in ', re.MULTILINE)

REFERENCE = "reference"
IMPLEMENTATION = "implementation"
VERIFIER = "verifier"


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818 - it becomes a record, it is no error of this program
    """Why a case has no verdict of a comparator.

    Attributes:
        side: whose failure it is.
        error_type: its name.
        message: text for people; the first line says it all.
        phase: what the process was doing.
        file, line: where in the user's code.
        output: the end of what the process printed.
        cause: the exception itself, where everything runs in this process.
        facts: what the process told of the run; None where it died of a bad address, which may
            have come from undefined lanes.
    """

    side: str
    error_type: str
    message: str
    phase: str | None = None
    file: str | None = None
    line: int | None = None
    output: str = ""
    cause: BaseException | None = None
    facts: RunFacts | None = field(default_factory=RunFacts)

    @property
    def hopeless(self) -> bool:
        """Whether nothing is to be learned from running the reference on the same inputs."""
        return self.error_type == TIMEOUT or self.phase in _LOADING

    def apportion(self, taken: float, allowed: float) -> None:
        """Lay a reference's timeout at the door of an implementation that left it too little time.

        Args:
            taken: seconds that went by with the implementation and its answer.
            allowed: seconds that there were for both.
        """
        if self.error_type != TIMEOUT or taken < allowed / 2:
            return
        self.side, self.file, self.line = IMPLEMENTATION, None, None
        self.message += (
            f"\nBefore that, the implementation and reading its answer took {taken:.1f} s, which "
            "left the reference too little."
        )


class Process:
    """A worker that is started when it is needed and started again after it was lost.

    Args:
        spawn: starts a worker of the right role.
        side: whose code it runs.
        label: the user's file, for messages.
        device: name of the session's device.
    """

    def __init__(self, spawn: Callable[[], Any], side: str, label: str, device: str) -> None:
        self._spawn = spawn
        self._side = side
        self._label = label
        self._device = device
        self._worker: Any = None
        self._started = False
        self._broken: Failure | None = None
        self.output = ""

    def post(self, message: Message, fd: int | None = None) -> None:
        """Send a request, starting the worker first where there is none.

        Raises:
            Failure: the user's file can't be loaded, or no worker can be started.
        """
        if self._broken is not None:
            raise self._broken
        if getattr(self._worker, "orphaned", False):
            # Whoever ended the server was told so; the next case is not to pay for it.
            self.close()
        if self._worker is None:
            try:
                self._worker = self._spawn()
            except HostError as error:
                raise Failure(VERIFIER, "WorkerStartError", f"WorkerStartError: {error}") from None
            self._started = False
        self.output = ""
        self._worker.post(message, fd)

    def result(self, deadline: float, budget: str) -> Answer:
        """Wait for the answer to the request that was sent.

        Args:
            deadline: on the clock of `time.monotonic`.
            budget: the time allowed, in words.

        Raises:
            Failure: the user's code raised, the process died, hung or sent nonsense.
        """
        try:
            answer: Answer = self._worker.result(deadline)
            if not self._started and "error" not in answer.message:
                # The first answer only says that the role was set up.
                self._started = True
                _drop_descriptor(answer)
                answer = self._worker.result(deadline)
        except WorkerLost as lost:
            self._worker = None
            raise self._lost(lost, budget) from None
        except HostError as error:
            self.close()
            text = f"{CRASH}: {error} while {self._label} ran"
            raise Failure(VERIFIER, CRASH, text) from None
        self.output = self._worker.take_output()
        if "error" in answer.message:
            if not self._started:
                self.close()
            _drop_descriptor(answer)
            described = _checked(answer.message["error"])
            failure = self._raised(described, getattr(answer, "exception", None))
            failure.facts = RunFacts.of(answer.message)
            raise failure
        return answer

    def lasted(self, phase: str, until: str) -> float | None:
        """Return the seconds between two phases of the last request, by this process's clock.

        None: the worker did not report them, or is no process.
        """
        entered = getattr(self._worker, "entered", {})
        if phase not in entered or until not in entered:
            return None
        return float(entered[until] - entered[phase])

    def _lost(self, lost: WorkerLost, budget: str) -> Failure:
        where = f"while {self._label} was in phase '{lost.phase}'"
        if isinstance(lost, WorkerHung):
            name, text = TIMEOUT, f"{TIMEOUT}: 验证超时（{budget}） {where}; its process was ended"
        elif isinstance(lost, WorkerBroken):
            name, text = CRASH, f"{CRASH}: the process of {self._label} broke the protocol: {lost}"
        else:
            name, text = CRASH, f"{CRASH}: the process ended {where}; {lost}"
        output = errors.without_own_frames(lost.output)
        if output:
            text += f"\nLast output of the process:\n{_indented(errors.clip(output, 4000))}"
        file, line = self._last_line(lost.output)
        failure = Failure(self._side, name, text, lost.phase, file, line, lost.output)
        if getattr(lost, "bad_address", False):
            failure.facts = None
        return self._remember(failure)

    def _last_line(self, output: str) -> tuple[str | None, int | None]:
        """Return where in the user's file a process was, by the stacks that it has written down."""
        stack = output.rpartition(_RUNNING)[2].partition("\nThread ")[0]
        for path, line in _FRAME.findall(stack) if _RUNNING in output else ():
            if PurePosixPath(path).name == self._label:
                return path, int(line)
        return None, None

    def _raised(self, error: dict[str, Any], cause: BaseException | None) -> Failure:
        name, message = error["type"], error["message"]
        lines = [f"{name}: {message}" if message else name]
        if self._side == REFERENCE:
            lines.append(
                f"This is a failure of the reference, {self._label}, in phase '{error['phase']}'."
            )
        else:
            lines.append(f"Raised by {self._label} in phase '{error['phase']}'.")
        if error["traceback"]:
            lines.append(error["traceback"])
        advice = hints.hint(self._device, name, message, error["code"])
        if advice is None and self._side == IMPLEMENTATION and cause is None:
            advice = hints.of_confinement(message)
        if advice:
            lines.append(f"Hint: {advice}")
        failure = Failure(
            self._side,
            name,
            "\n".join(lines),
            error["phase"],
            error["file"],
            error["line"],
            self.output,
            cause,
        )
        if faults.lost(self._device, message):
            # Everything in that process would fail from now on.
            self.close()
        return self._remember(failure)

    def _remember(self, failure: Failure) -> Failure:
        if failure.phase in _LOADING:
            self._broken = failure
            self.close()
        return failure

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Keep the worker, if it is a process, and everything that it started from running."""
        paused: Any = getattr(self._worker, "paused", contextlib.nullcontext)
        found: contextlib.AbstractContextManager[None] = paused()
        return found

    def close(self) -> None:
        """End the worker, if there is one, and everything that it started."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


def _drop_descriptor(answer: Answer) -> None:
    """Close what an honest process doesn't send with such an answer."""
    if answer.fd is not None:
        os.close(answer.fd)


def _checked(error: object) -> dict[str, Any]:
    """Return an error's description in its proper form, whatever an untrusted process sent."""
    given = error if isinstance(error, dict) else {}

    def text(key: str, limit: int = 20_000) -> str:
        value = given.get(key)
        return errors.clip(errors.printable(value), limit) if isinstance(value, str) else ""

    line = given.get("line")
    return {
        "type": errors.one_line(text("type"), 200) or "UnknownError",
        "message": text("message"),
        "phase": errors.one_line(text("phase"), 40),
        "traceback": text("traceback"),
        "file": text("file", 4096) or None,
        "line": line if type(line) is int and 0 < line < 1 << 31 else None,
        "code": text("code", 500),
    }


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())

"""Workers that are no processes: everything runs in the judge, where a debugger can reach it.

Nothing is isolated here. A crash or a hang of user code is a crash or a hang of pytest.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import standin
from pytest_tritonverify.execution import errors, worker
from pytest_tritonverify.execution.worker_handle import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.execution.devices import Device
    from pytest_tritonverify.execution.wire import Message

_INTERPRET = "TRITON_INTERPRET"


@dataclass(frozen=True)
class LocalAnswer(Answer):
    """An answer together with the exception that it describes."""

    exception: BaseException | None = None


class LocalWorker:
    """A role behind the interface of a worker process."""

    def __init__(self, start: Message) -> None:
        self._phase = worker.Phase(None)
        self._role: Any = None
        self._answers = [self._attempt(lambda: self._set_up(start))]

    def _set_up(self, start: Message) -> tuple[dict[str, Any], None]:
        self._role = worker.create_role(start, self._phase)
        return {}, None

    def _attempt(self, action: Any) -> LocalAnswer:
        try:
            message, fd = action()
        except BaseException as error:
            # Ctrl-C, and pytest's own wish to end when a debugger is left.
            if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Exit":
                raise
            files = getattr(self._role, "user_files", ())
            described = errors.describe(error, self._phase.name, files)
            return LocalAnswer({"error": described, **worker.facts_of(self._role)}, None, error)
        return LocalAnswer(message, fd)

    def post(self, message: Message, fd: int | None = None) -> None:
        """Run the operation at once and keep its answer."""
        # The receiver of a descriptor owns it, here as between processes.
        own = None if fd is None else os.dup(fd)
        try:
            method = getattr(self._role, f"do_{message['op']}", None)
            if method is not None:
                self._answers.append(self._attempt(lambda: method(message, own)))
        finally:
            if own is not None:
                os.close(own)

    def result(self, _deadline: float) -> LocalAnswer:
        """Return the oldest answer that was not collected. There are no deadlines here."""
        return self._answers.pop(0)

    def take_output(self) -> str:
        """Return nothing: what user code prints goes where pytest's own output goes."""
        return ""

    def kill(self) -> None:
        """Drop the role, and what it changed in this process."""
        self._role = None
        standin.uninstall()


class LocalHost:
    """Makes local workers.

    Args:
        device: where implementations run.
        environment: variables that hold until this is closed.

    Attributes:
        spares: as of `Host`; here no process is started.
    """

    spares = 0

    def __init__(self, device: Device, environment: Mapping[str, str]) -> None:
        self._device = device
        self._before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)

    def problems(self) -> dict[str, str]:
        """Prepare this process for the device's roles.

        A variable such as TRITON_INTERPRET counts when triton is imported: too late where
        somebody else has imported it already.
        """
        missing = {
            name: value
            for name, value in self._device.environment().items()
            if os.environ.get(name) != value
        }
        wanted = missing.get(_INTERPRET, "")
        # Where it isn't set at all, triton has taken it for 0.
        if "triton" in sys.modules and wanted and wanted != os.environ.get(_INTERPRET, "0"):
            return {
                "triton": "it was imported before --verify-in-process could set "
                f"{_INTERPRET}={wanted}; set that variable before starting pytest"
            }
        os.environ.update(missing)
        return {}

    def spawn(self, start: Message) -> LocalWorker:
        """Make a worker in this process."""
        self.problems()
        return LocalWorker({"device": self._device.name, **start})

    def close(self) -> None:
        """Give variables back the values that they had; nothing else outlives its use here."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}

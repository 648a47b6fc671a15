"""The processes of a pair: one object makes them all, whatever they are needed for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import isolation
from pytest_tritonverify.standin import choosing
from pytest_tritonverify.supervision import IMPLEMENTATION, REFERENCE, Process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.settings import Settings


class PairProcesses:
    """Makes the processes of a pair. Each starts when it is first asked; who asked for it ends it.

    Args:
        pair: the pair.
        settings: what the user asked for.
        device: name of the device that implementations run on.
        spawn: starts a worker from a start request.
        shared: the task's worker that implementations share, ended by whoever made it; None for
            one of this pair's own.
    """

    def __init__(
        self,
        pair: Pair,
        settings: Settings,
        device: str,
        spawn: Callable[[Message], Any],
        shared: Process | None = None,
    ) -> None:
        self.pair = pair
        self.settings = settings
        self.device = device
        self._spawn = spawn
        self._shared = shared

    @property
    def shared(self) -> Process:
        """The task's worker that is kept: it holds the inputs that have been made."""
        if self._shared is None:
            self._shared = self.reference()
        return self._shared

    @cached_property
    def standin(self) -> str:
        """Which accelerator is stood in for: both sides of a pair must think the same."""
        return self._asked_for_by(self.pair.task, self.pair.implementation)

    def _asked_for_by(self, *files: Path) -> str:
        if self.device != "cpu":
            return choosing.OFF
        return choosing.choose(self.settings.standin, *files)

    def describe(self) -> Process:
        """Return a process that lists the task's cases; nothing looks at the implementation."""
        return self._for_task("describe", self._asked_for_by(self.pair.task))

    def reference(self) -> Process:
        """Return a process that makes inputs and runs the task's model."""
        return self._for_task("reference", self.standin)

    def _for_task(self, role: str, standin: str) -> Process:
        start = {
            "role": role,
            "task": str(self.pair.task),
            "op_name": self.pair.op,
            "standin": standin,
        }
        return self._process(start, REFERENCE, self.pair.task.name)

    def candidate(self, *, masked_lanes: str | None = None, timed: bool = False) -> Process:
        """Return a process that runs the implementation.

        Args:
            masked_lanes: what undefined lanes hold, if not what the settings say.
            timed: it is for a benchmark.
        """
        return self._for_implementation("candidate", masked_lanes, timed=timed)

    def observer(self) -> Process:
        """Return a process that runs the implementation with instruments around it."""
        return self._for_implementation("observer", None, timed=False)

    def _for_implementation(self, role: str, masked_lanes: str | None, *, timed: bool) -> Process:
        settings, wishes = self.settings, self.settings.compile
        start = {
            "role": role,
            # A measured launch is left alone.
            "record": wishes is not None and not timed and role == "candidate",
            "all_configurations": wishes is not None and wishes.all_configurations,
            "implementation": str(self.pair.implementation),
            "task": str(self.pair.task),
            "guarded": not settings.in_process,
            "confinement": isolation.confinement(self.pair, settings, self.device),
            "masked_lanes": masked_lanes or settings.masked_lanes,
            "interpreter_jobs": settings.interpreter_jobs,
            "standin": self.standin,
            # A benchmark is about the configuration that a user of the kernel would get.
            "autotune": "first" if timed else settings.autotune,
            "timed": timed,
            # On the CPU addresses are looked at already; a debugger shall see torch's functions.
            "guard_bands": settings.guard_bands == "on"
            and self.device != "cpu"
            and not settings.in_process,
        }
        return self._process(start, IMPLEMENTATION, self.pair.implementation.name)

    def _process(self, start: Message, side: str, label: str) -> Process:
        return Process(lambda: self._spawn(start), side, label, self.device)

"""What workers are told when they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.standin import choosing

if TYPE_CHECKING:
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.settings import Settings


def describe(pair: Pair, settings: Settings, device: str) -> Message:
    """Return the start request of a worker that lists a task's cases."""
    standin = choosing.choose(settings.standin, pair.task) if device == "cpu" else choosing.OFF
    return {
        "role": "describe",
        "task": str(pair.task),
        "op_name": pair.op,
        "standin": standin,
    }


def reference(pair: Pair, settings: Settings, device: str) -> Message:
    """Return the start request of a worker for a task."""
    return {
        "role": "reference",
        "task": str(pair.task),
        "op_name": pair.op,
        "standin": _standin(pair, settings, device),
    }


def _standin(pair: Pair, settings: Settings, device: str) -> str:
    """Return which accelerator is stood in for: both sides of a pair must think the same."""
    if device != "cpu":
        return choosing.OFF
    return choosing.choose(settings.standin, pair.task, pair.implementation)


def candidate(
    pair: Pair,
    settings: Settings,
    device: str,
    *,
    role: str = "candidate",
    masked_lanes: str | None = None,
    timed: bool = False,
) -> Message:
    """Return the start request of a worker for an implementation.

    Args:
        pair: the pair.
        settings: the session's settings.
        device: name of the device that implementations run on.
        role: "candidate", or "observer".
        masked_lanes: what undefined lanes hold, if not what the settings say.
        timed: it is started for a benchmark.
    """
    return {
        "role": role,
        "implementation": str(pair.implementation),
        "task": str(pair.task),
        "guarded": not settings.in_process,
        "masked_lanes": masked_lanes or settings.masked_lanes,
        "interpreter_jobs": settings.interpreter_jobs,
        "standin": _standin(pair, settings, device),
        # A benchmark is about the configuration that a user of the kernel would get.
        "autotune": "first" if timed else settings.autotune,
        "timed": timed,
        # Addresses are looked at there already.
        "guard_bands": settings.guard_bands == "on" and device != "cpu" and not settings.in_process,
    }

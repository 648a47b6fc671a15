"""What all timers have in common: what they are asked, and what they answer.

A new kind of device needs a subclass of `Timer` and an entry in `TIMERS`.
"""

from __future__ import annotations

import importlib
import statistics
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_tritonverify.execution.timing.forward import Forward

# Where the timer of a device is. They are imported one by one: each binds what it needs of torch.
TIMERS = {
    "cpu": "pytest_tritonverify.execution.timing.on_cpu",
    "cuda": "pytest_tritonverify.execution.timing.on_cuda",
    "npu": "pytest_tritonverify.execution.timing.on_npu",
}


@dataclass(frozen=True)
class Plan:
    """What is to be timed.

    Attributes:
        warmup: forwards before the timed ones.
        repeats: timed forwards, at least one.
        kept: numbers of those whose outputs are kept, from 0. A timer that runs them a second time
            under a profiler counts on: the first one there has the number `repeats`.
        entered: reports that a part of the work begins; the judge's clock goes by it.
    """

    warmup: int
    repeats: int
    kept: frozenset[int]
    entered: Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What a timer measured.

    Attributes:
        method: one of `benchmark.measurement.Method`.
        samples_ms: milliseconds of each timed forward; empty where only the mean is known.
        latency_ms: their mean; None where nothing could be measured, and `reason` says why.
        operators: milliseconds per forward by kernel name.
        launches_per_forward: kernels that ran for one forward, on average.
        cross_check_ms: milliseconds of one forward by an independent clock.
        loop_ms: the whole timed loop, by this process's clock.
        forwards_ms: its forwards alone, from the call until the device is idle, by this process's
            clock.
        notes: what a reader ought to know.
    """

    method: str
    samples_ms: tuple[float, ...] = ()
    latency_ms: float | None = None
    reason: str | None = None
    operators: Mapping[str, float] = field(default_factory=dict)
    launches_per_forward: float | None = None
    cross_check_ms: float | None = None
    loop_ms: float
    forwards_ms: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the timing as builtins."""
        return asdict(self)


class Timer(ABC):
    """Times the forwards of one side.

    The timed loop stands between the reports `timed` and `measured`, and nothing else does.
    """

    device: ClassVar[str]

    @abstractmethod
    def measure(self, forward: Forward, plan: Plan) -> Timing:
        """Warm up, and time `plan.repeats` forwards."""


def timer_of(device: str) -> Timer:
    """Return the timer of a device; to be called before any user code is imported.

    Raises:
        RuntimeError: what it needs is not there.
    """
    module = importlib.import_module(TIMERS[device])
    timer: Timer = module.create()
    return timer


def mean(values: tuple[float, ...] | list[float]) -> float | None:
    """Return the arithmetic mean; None of nothing."""
    return statistics.fmean(values) if values else None

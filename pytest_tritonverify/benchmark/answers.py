"""What a worker tells of a measurement, read with care: it may run untrusted code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.benchmark.measurement import MeasurementError, SideMeasurement
from pytest_tritonverify.benchmark.plausible import Loop

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message

_TOLD = ("loop_ms", "forwards_ms")
# A mean of its samples, but for the rounding of sums.
_AGREEMENT = 1e-6


@dataclass(frozen=True)
class Measured:
    """A side as its worker told it.

    Attributes:
        side: the measurement.
        loop: its timed loop, by both clocks.
        kept: numbers of the forwards whose outputs it has kept, from 0.
    """

    side: SideMeasurement
    loop: Loop
    kept: tuple[int, ...] = ()


def read(message: Message, repeats: int, judged_s: float | None) -> Measured:
    """Read the answer to `measure`.

    Args:
        message: the answer.
        repeats: how many forwards were to be timed.
        judged_s: seconds of the timed loop by the judge's clock.

    Raises:
        MeasurementError: it is no answer to that.
    """
    timing = message.get("timing")
    if not isinstance(timing, dict):
        raise MeasurementError("there is no timing in it")
    fields: dict[str, Any] = {k: v for k, v in timing.items() if k not in _TOLD}
    side = SideMeasurement.from_json({**fields, "peak_memory_mb": message.get("peak_memory_mb")})
    told, forwards = (_milliseconds(timing, name) for name in _TOLD)
    if side.samples_ms:
        if len(side.samples_ms) != repeats:
            raise MeasurementError(f"it has {len(side.samples_ms)} samples of {repeats} forwards")
        mean = _mean(side.samples_ms)
        if side.latency_ms is None or not math.isclose(
            mean, side.latency_ms, rel_tol=_AGREEMENT, abs_tol=1e-9
        ):
            raise MeasurementError("its latency is not the mean of its samples")
    judged = None if judged_s is None else judged_s * 1000
    return Measured(side, Loop(judged, told, forwards), _numbers(message.get("kept", []), repeats))


def _mean(samples: tuple[float, ...]) -> float:
    """Return a mean; NaN where there is none, as of both infinities or beyond all numbers."""
    try:
        return math.fsum(samples) / len(samples)
    except (OverflowError, ValueError):
        return math.nan


def _numbers(value: Any, repeats: int) -> tuple[int, ...]:
    # Every forward twice at most: by itself, and under a profiler.
    if not isinstance(value, list) or len(value) > 2 * repeats:
        raise MeasurementError("`kept` is no list of numbers of its forwards")
    if not all(type(number) is int and 0 <= number < 2 * repeats for number in value):
        raise MeasurementError("`kept` holds what is no number of a forward")
    return tuple(value)


def _milliseconds(timing: dict[str, Any], name: str) -> float:
    found = figures.number(timing.get(name))
    if found is None or found < 0:
        raise MeasurementError(f"`{name}` is no time: {timing.get(name)!r:.100}")
    return found

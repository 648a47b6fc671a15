"""Times on CUDA devices: the profiler's kernel times, and events as a check on them.

Two loops over the same forwards. In the first, events stand around each forward; in the second,
torch's profiler notes what runs on the device, on whatever stream. Before each forward the second
level cache is overwritten, outside of the times.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler import profile, record_function

from pytest_tritonverify.execution.timing import clock
from pytest_tritonverify.execution.timing.timers import Plan, Timer, Timing, mean
from pytest_tritonverify.execution.timing.windows import Activity, Sums, attribute

if TYPE_CHECKING:
    from pytest_tritonverify.execution.timing.forward import Forward

PROFILED, BY_EVENTS = "cuda_profiler", "cuda_events"

# As much as triton.testing.do_bench overwrites: more than any second level cache holds.
_FLUSH_BYTES = 256 << 20
# Milliseconds that the device spins at most so that a host that is slow to launch keeps ahead.
_LONGEST_HEAD_START_MS = 5.0
_CALIBRATION_CYCLES = 1_000_000
# Some 30 ms, about what triton.testing.do_bench warms up for.
_WAKING_WRITES = 400
# Waiting for the device longer than its events account for: beyond both of these, something ran on
# after the last event.
_UNACCOUNTED_MS = 0.1
_UNACCOUNTED_SHARE = 0.1
_MARK, _ASIDE = "tritonverify::forward", "tritonverify::aside"
# The events around nothing measure this much, about; what takes little more is not resolved.
_FLOOR_FACTOR = 4.0

_TAKES_DEVICE = (2, 4)

# Bound before user code is there to replace them.
_synchronize = getattr(torch._C, "_cuda_synchronize", torch.cuda.synchronize)
_current_stream = torch.cuda.current_stream
_fill = torch.Tensor.zero_
_spin = getattr(torch.cuda, "_sleep", None)


def create() -> CudaTimer:
    """Make the timer."""
    return CudaTimer()


class _Events:
    """Points in a stream's time, on torch's own class of events, which Python can't change."""

    def __init__(self) -> None:
        base: Any = torch._C._CudaEventBase  # noqa: SLF001 - see above
        self._base = base
        self._new, self._record, self._elapsed = base.__new__, base.record, base.elapsed_time

    def mark(self, stream: Any) -> Any:
        event = self._new(self._base, enable_timing=True)
        self._record(event, stream)
        return event

    def between(self, first: Any, second: Any) -> float:
        """Return the milliseconds between two events that have been waited for."""
        elapsed: float = self._elapsed(first, second)
        return elapsed


@dataclass
class _EventTimes:
    samples_ms: list[float] = field(default_factory=list)
    loop_ms: float = 0.0
    forwards_ms: float = 0.0
    outlasted: int = 0


class CudaTimer(Timer):
    """Times forwards by the kernels that they run."""

    device = "cuda"

    def __init__(self) -> None:
        self._events = _Events()
        self._now = clock.nanoseconds
        self._head_start_cycles = 0
        self._cycles_per_ms = 0.0

    def measure(self, forward: Forward, plan: Plan) -> Timing:
        """Time forwards by events, then by the profiler."""
        buffer = self._buffer()
        self._wake(buffer)
        self._calibrate()
        floor_ms = self._floor(buffer)
        self._warm_up(forward, plan, buffer)
        self._wake(buffer)
        with clock.collector_paused():
            times = self._by_events(forward, plan, buffer)
        sums, problem = self._profiled(forward, plan, buffer)
        return _concluded(times, sums, problem, floor_ms)

    def _buffer(self) -> torch.Tensor:
        """Return what is written to overwrite the second level cache."""
        return torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device=self.device)

    @staticmethod
    def _wake(buffer: torch.Tensor) -> None:
        """Keep the device busy for some milliseconds, so that its clocks are up."""
        for _ in range(_WAKING_WRITES):
            _fill(buffer)
        _synchronize()

    def _calibrate(self) -> None:
        """Find out how long the device spins for a number of cycles."""
        if _spin is None:
            return
        stream = _current_stream()
        _spin(_CALIBRATION_CYCLES)
        first = self._events.mark(stream)
        _spin(_CALIBRATION_CYCLES)
        second = self._events.mark(stream)
        _synchronize()
        self._cycles_per_ms = _CALIBRATION_CYCLES / max(self._events.between(first, second), 1e-3)

    def _floor(self, buffer: torch.Tensor) -> float:
        """Return what events around nothing measure, in milliseconds."""
        found, stream = [], _current_stream()
        for _ in range(10):
            _fill(buffer)
            first = self._events.mark(stream)
            second = self._events.mark(stream)
            _synchronize()
            found.append(self._events.between(first, second))
        return statistics.median(found)

    def _warm_up(self, forward: Forward, plan: Plan, buffer: torch.Tensor) -> None:
        """Run forwards, and learn how far ahead of the device the host must be to launch one."""
        hosts = []
        for number in range(-plan.warmup, 0):
            forward.turn(number)
            _fill(buffer)
            begun = self._now()
            forward.call()
            hosts.append((self._now() - begun) / clock.NS_PER_MS)
            _synchronize()
        host_ms = statistics.median(hosts) if hosts else 0.0
        head_start_ms = min(1.5 * host_ms, _LONGEST_HEAD_START_MS)
        self._head_start_cycles = int(head_start_ms * self._cycles_per_ms)

    def _by_events(self, forward: Forward, plan: Plan, buffer: torch.Tensor) -> _EventTimes:
        times, now, mark = _EventTimes(), self._now, self._events.mark
        # The same one throughout, whatever a forward makes the current one.
        stream = _current_stream()
        _synchronize()
        plan.entered("timed")
        begun = now()
        for number in range(plan.repeats):
            forward.turn(number)
            # So that all that the device does from here on lies between events.
            _synchronize()
            before = mark(stream)
            if self._head_start_cycles and _spin is not None:
                _spin(self._head_start_cycles)
            _fill(buffer)
            start = mark(stream)
            called = now()
            outputs = forward.call()
            end = mark(stream)
            returned = now()
            if number in plan.kept:
                # In the stream's order, before anything waits for the device: what is still to
                # come on another stream must be seen to be missing.
                forward.keep(number, outputs)
                kept = now()
                _synchronize()
                times.forwards_ms += (returned - called + now() - kept) / clock.NS_PER_MS
                waited = 0.0
            else:
                _synchronize()
                done = now()
                times.forwards_ms += (done - called) / clock.NS_PER_MS
                waited = (done - returned) / clock.NS_PER_MS
            del outputs
            device_ms = self._events.between(start, end)
            missing = waited - self._events.between(before, end)
            if missing > max(_UNACCOUNTED_MS, _UNACCOUNTED_SHARE * device_ms):
                times.outlasted += 1
                device_ms += missing
            times.samples_ms.append(device_ms)
        times.loop_ms = (now() - begun) / clock.NS_PER_MS
        plan.entered("measured")
        return times

    def _profiled(
        self, forward: Forward, plan: Plan, buffer: torch.Tensor
    ) -> tuple[Sums | None, str | None]:
        """Return what the profiler saw, or why it saw nothing."""
        try:
            watch = _profiler()
            watch.__enter__()
        except (AttributeError, RuntimeError, TypeError) as error:
            return None, f"torch's profiler does not start: {error!r}"
        try:
            for number in range(plan.repeats):
                forward.turn(plan.repeats + number)
                _fill(buffer)
                _synchronize()
                with record_function(_MARK):
                    outputs = forward.call()
                    _synchronize()
                if plan.repeats + number in plan.kept:
                    with record_function(_ASIDE):
                        forward.keep(plan.repeats + number, outputs)
                        _synchronize()
                del outputs
        finally:
            with contextlib.suppress(RuntimeError):
                watch.__exit__(None, None, None)
        return _read(watch, plan.repeats)


def _profiler() -> Any:
    # Before torch 2.4, `use_device` was for other devices and silently ignored this one.
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _TAKES_DEVICE:
        return profile(use_cuda=True, use_kineto=True)
    return profile(use_device="cuda", use_kineto=True)


def _read(watch: Any, repeats: int) -> tuple[Sums | None, str | None]:
    """Return what a profile says of the forwards, or why it says nothing."""
    cpu: Any = DeviceType.CPU
    activities: list[Activity] = []
    spans: dict[str, list[tuple[int, int]]] = {_MARK: [], _ASIDE: []}
    results = getattr(watch, "kineto_results", None)
    for event in results.events() if results is not None else ():
        begin, lasted = _span(event)
        if event.device_type() != cpu:
            if _is_activity(event):
                activities.append(Activity(event.name(), begin, lasted))
        elif event.name() in spans:
            spans[event.name()].append((begin, begin + lasted))
    if not activities:
        # Not even the writes between the forwards: it is blind, and they are no measure of zero.
        return None, "torch's profiler sees nothing of what runs on the device"
    if len(spans[_MARK]) != repeats:
        return None, f"torch's profiler saw {len(spans[_MARK])} of {repeats} forwards"
    return attribute(activities, sorted(spans[_MARK]), _is_ours, spans[_ASIDE]), None


def _span(event: Any) -> tuple[int, int]:
    """Return begin and duration in nanoseconds."""
    if hasattr(event, "start_ns"):
        return int(event.start_ns()), int(event.duration_ns())
    return int(event.start_us() * 1000), int(event.duration_us() * 1000)  # torch before 2.4


def _is_activity(event: Any) -> bool:
    """Say whether something ran: ranges of the host are mirrored on the device's side, too."""
    kind = getattr(event, "activity_type", None)
    if kind is not None:
        return kind() in ("kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset")
    annotated = getattr(event, "is_user_annotation", None)
    if annotated is not None and annotated():
        return False
    return event.name() not in (_MARK, _ASIDE)


def _is_ours(name: str) -> bool:
    """Say whether an activity between forwards sets up inputs or overwrites the cache.

    No kernel of Triton has such a name: there are no brackets in Python's names.
    """
    return name.startswith(("Memcpy ", "Memset ")) or "FillFunctor<" in name


def _concluded(
    times: _EventTimes, sums: Sums | None, problem: str | None, floor_ms: float
) -> Timing:
    events_ms = mean(times.samples_ms)
    notes = []
    if times.outlasted:
        notes.append(
            f"{times.outlasted} forwards were not done when they returned: what ran on after them "
            "is part of their time"
        )
    if sums is None:
        if events_ms is not None and events_ms < _FLOOR_FACTOR * floor_ms:
            notes.append(
                f"events around nothing measure {floor_ms * 1000:.1f} us, so that so short a "
                "forward is not resolved"
            )
        notes.insert(0, f"times are those of events around each forward: {problem}")
        return Timing(
            method=BY_EVENTS,
            samples_ms=tuple(times.samples_ms),
            latency_ms=events_ms,
            loop_ms=times.loop_ms,
            forwards_ms=times.forwards_ms,
            notes=tuple(notes),
        )
    if sums.strays:
        named = ", ".join(f"{name} ({count})" for name, count in list(sums.strays.items())[:5])
        notes.append(f"kernels ran between the forwards and count as theirs: {named}")
    latency_ms = mean(sums.samples_ms)
    if latency_ms and events_ms is not None:
        ratio = events_ms / latency_ms
        notes.append(f"events around the forwards measure {ratio:.3f} times the kernels' time")
    return Timing(
        method=PROFILED,
        samples_ms=sums.samples_ms,
        latency_ms=latency_ms,
        operators=sums.operators,
        launches_per_forward=sums.launches_per_forward,
        cross_check_ms=events_ms,
        loop_ms=times.loop_ms,
        forwards_ms=times.forwards_ms,
        notes=tuple(notes),
    )

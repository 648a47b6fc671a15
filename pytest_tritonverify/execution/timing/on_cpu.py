"""Times on the CPU: the clock on the wall around each forward.

Kernels run on Triton's interpreter there, so that these times say nothing about any device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.execution.timing import clock
from pytest_tritonverify.execution.timing.timers import Plan, Timer, Timing, mean

if TYPE_CHECKING:
    from pytest_tritonverify.execution.timing.forward import Forward

METHOD = "cpu_wall_clock"
_NOTE = "wall clock on the CPU: an interpreter's time says nothing about a device"


def create() -> CpuTimer:
    """Make the timer."""
    return CpuTimer()


class CpuTimer(Timer):
    """Times forwards by the clock on the wall, threads that they start included."""

    device = "cpu"

    def __init__(self) -> None:
        self._now = clock.nanoseconds

    def measure(self, forward: Forward, plan: Plan) -> Timing:
        """Time forwards one by one."""
        now, samples = self._now, []
        threads = clock.Threads()
        for number in range(-plan.warmup, 0):
            forward.turn(number)
            forward.call()
            threads.wait()
        with clock.collector_paused():
            plan.entered("timed")
            begun = now()
            for number in range(plan.repeats):
                forward.turn(number)
                start = now()
                outputs = forward.call()
                if number in plan.kept:
                    returned = now()
                    # At once: what another thread is still to write must be seen to be missing.
                    forward.keep(number, outputs)
                    kept = now()
                    threads.wait()
                    samples.append(returned - start + now() - kept)
                else:
                    threads.wait()
                    samples.append(now() - start)
                del outputs
            ended = now()
            plan.entered("measured")
        samples_ms = tuple(sample / clock.NS_PER_MS for sample in samples)
        return Timing(
            method=METHOD,
            samples_ms=samples_ms,
            latency_ms=mean(samples_ms),
            loop_ms=(ended - begun) / clock.NS_PER_MS,
            forwards_ms=sum(samples_ms),
            notes=(_NOTE,),
        )

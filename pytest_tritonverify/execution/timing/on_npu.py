"""Times on Ascend NPUs: the device time of all kernels, from torch_npu's profiler.

Nothing overwrites caches there: what a forward finds in them is what the inputs of its turn leave,
which are written just before it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution.timing import clock, kernel_details
from pytest_tritonverify.execution.timing.timers import Plan, Timer, Timing

if TYPE_CHECKING:
    from pytest_tritonverify.execution.timing.forward import Forward

METHOD = "npu_profiler"
# Steps that only prepare inputs: they show which kernels of the table are not the forward's.
_REHEARSALS = 3
# A step that the profiler is given to get going, as its documentation advises.
_PROFILER_WARMUP = 1


def create() -> NpuTimer:
    """Make the timer.

    Raises:
        RuntimeError: torch_npu can't be imported.
    """
    try:
        import torch_npu
    except ImportError as error:
        raise RuntimeError(f"torch_npu can't be imported: {error}") from None
    return NpuTimer(torch_npu)


class NpuTimer(Timer):
    """Times forwards by the kernels that they run.

    Args:
        torch_npu: the module.
    """

    device = "npu"

    def __init__(self, torch_npu: Any) -> None:
        self._profiler = torch_npu.profiler
        self._synchronize = torch_npu.npu.synchronize
        self._now = clock.nanoseconds

    def measure(self, forward: Forward, plan: Plan) -> Timing:
        """Run the forwards by themselves, for the outputs and the clocks, then in one profile."""
        for number in range(-plan.warmup, 0):
            forward.turn(number)
            forward.call()
            self._synchronize()
        with clock.collector_paused():
            loop_ms, forwards_ms = self._loop(forward, plan)
        folder = Path(tempfile.mkdtemp(prefix="tritonverify_profile_"))
        try:
            aside = self._profile(forward, plan, folder)
            times = _read(folder, plan, aside)
        except kernel_details.TableError as error:
            return Timing(
                method="none", reason=str(error), loop_ms=loop_ms, forwards_ms=forwards_ms
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Timing(
            method=METHOD,
            samples_ms=times.samples_ms,
            latency_ms=times.latency_ms,
            operators=times.operators,
            launches_per_forward=times.launches_per_forward,
            loop_ms=loop_ms,
            forwards_ms=forwards_ms,
            notes=times.notes,
        )

    def _loop(self, forward: Forward, plan: Plan) -> tuple[float, float]:
        """Return the milliseconds of a loop and of its forwards, by the host's clock."""
        now, forwards = self._now, 0
        self._synchronize()
        plan.entered("timed")
        begun = now()
        for number in range(plan.repeats):
            forward.turn(number)
            self._synchronize()
            called = now()
            outputs = forward.call()
            if number in plan.kept:
                returned = now()
                forward.keep(number, outputs)
                kept = now()
                self._synchronize()
                forwards += returned - called + now() - kept
            else:
                self._synchronize()
                forwards += now() - called
            del outputs
        loop = now() - begun
        plan.entered("measured")
        return loop / clock.NS_PER_MS, forwards / clock.NS_PER_MS

    def _profile(self, forward: Forward, plan: Plan, folder: Path) -> frozenset[int]:
        """Run the profiled steps; return which of them ran no forward but kept outputs."""
        npu = self._profiler
        kept = [n for n in range(plan.repeats) if plan.repeats + n in plan.kept]
        active = _REHEARSALS + plan.repeats + len(kept)
        with npu.profile(
            # Steps are told apart by the host's side of the profile.
            activities=[npu.ProfilerActivity.CPU, npu.ProfilerActivity.NPU],
            schedule=npu.schedule(wait=0, warmup=_PROFILER_WARMUP, active=active, repeat=1),
            on_trace_ready=npu.tensorboard_trace_handler(str(folder)),
            experimental_config=self._detail(),
        ) as running:
            for number in range(-_PROFILER_WARMUP - _REHEARSALS, plan.repeats):
                forward.turn(plan.repeats + number)
                self._synchronize()
                outputs = None
                if number >= 0:
                    outputs = forward.call()
                    self._synchronize()
                running.step()
                if number in kept:
                    # In a step of its own, which is left out.
                    forward.keep(plan.repeats + number, outputs)
                    self._synchronize()
                    running.step()
                del outputs
        # Each one before it has moved it by a step.
        return frozenset(_REHEARSALS + n + 1 + before for before, n in enumerate(kept))

    def _detail(self) -> Any:
        npu = self._profiler
        return npu._ExperimentalConfig(  # noqa: SLF001 - the documented name
            aic_metrics=npu.AiCMetrics.PipeUtilization,
            profiler_level=npu.ProfilerLevel.Level1,
            l2_cache=False,
            data_simplification=False,
        )


def _read(folder: Path, plan: Plan, aside: frozenset[int]) -> kernel_details.KernelTimes:
    """Return the times that a profile holds.

    Raises:
        kernel_details.TableError: it holds none; the text says why.
    """
    rows = kernel_details.read(_table(folder).read_text("utf-8", "replace"))
    return kernel_details.sum_up(rows, plan.repeats, _REHEARSALS, _PROFILER_WARMUP, aside)


def _table(folder: Path) -> Path:
    """Return the one table that the profiler has left below a folder.

    Raises:
        kernel_details.TableError: there is none, or there are several.
    """
    name = kernel_details.FILE_NAME
    tables = sorted(folder.glob(f"*_ascend_pt/ASCEND_PROFILER_OUTPUT/{name}"))
    if len(tables) != 1:
        raise kernel_details.TableError(f"the profiler left {len(tables) or 'no'} {name}")
    return tables[0]

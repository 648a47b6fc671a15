"""The processes in which a pair is measured, one side after the other on the same device."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import gpu_task, starting
from pytest_tritonverify.benchmark import gpu_reference
from pytest_tritonverify.benchmark.case_benchmark import CaseBenchmark
from pytest_tritonverify.supervision import IMPLEMENTATION, REFERENCE, Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings
    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.settings import Settings


class PairBenchmark:
    """Measures the cases of one pair, in any order.

    Args:
        pair: the pair.
        settings: the session's settings.
        device: name of the device that both sides run on.
        inputs: the task's worker, which makes inputs and goldens.
        spawn: starts a worker from a start request.
    """

    def __init__(
        self,
        pair: Pair,
        settings: Settings,
        device: str,
        inputs: Process,
        spawn: Callable[[Message], Any],
    ) -> None:
        self.pair = pair
        self.settings = settings
        self.device = device
        self.inputs = inputs
        self.choose = random.SystemRandom()
        # Other values than the stored ones would have another golden.
        self.rotated = not gpu_task.returns_stored_output(pair.task)
        self._spawn = spawn
        reference = starting.reference(pair, settings, device)
        # Nothing is poisoned, lanes that a masked load leaves undefined included.
        candidate = starting.candidate(pair, settings, device, masked_lanes="zero", timed=True)
        self.reference = self._process(reference, REFERENCE, pair.task.name)
        self.candidate = self._process(candidate, IMPLEMENTATION, pair.implementation.name)

    def _process(self, start: Message, side: str, label: str) -> Process:
        return Process(lambda: self._spawn(start), side, label, self.device)

    def run_case(
        self,
        case_idx: int,
        entry: CaseEntry,
        name: str,
        perf: PerfSettings,
        item_timeout: float | None,
    ) -> CaseMeasurement:
        """Measure one case.

        Args:
            case_idx: number of the case, from 1.
            entry: the case as listed.
            name: the item's name.
            perf: how to measure.
            item_timeout: seconds that this may take; None: as long as verifying the pair may.
        """
        started = time.monotonic()
        perf = gpu_reference.settings_of(self.pair.task, perf)
        limit = min(self.settings.timeout, item_timeout or self.settings.timeout)
        case = CaseBenchmark(self, case_idx, entry, perf, started + limit, f"{limit:g}秒")
        return case.measure(name, started)

    def close(self) -> None:
        """End both processes."""
        self.reference.close()
        self.candidate.close()

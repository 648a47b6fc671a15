"""The processes in which a pair is measured, one side after the other on the same device."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from pytest_tritonverify import gpu_task
from pytest_tritonverify.benchmark import gpu_reference
from pytest_tritonverify.benchmark.case_benchmark import CaseBenchmark

if TYPE_CHECKING:
    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings
    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.pair_processes import PairProcesses


class PairBenchmark:
    """Measures the cases of one pair, in any order.

    Args:
        processes: makes the pair's processes; the shared one makes inputs and goldens.
    """

    def __init__(self, processes: PairProcesses) -> None:
        self.pair = processes.pair
        self.settings = processes.settings
        self.inputs = processes.shared
        self.choose: random.Random = random.SystemRandom()
        # Other values than the stored ones would have another golden.
        self.rotated = not gpu_task.returns_stored_output(self.pair.task)
        self.reference = processes.reference()
        # Nothing is poisoned, lanes that a masked load leaves undefined included.
        self.candidate = processes.candidate(masked_lanes="zero", timed=True)

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

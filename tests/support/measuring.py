"""Pairs measured in real worker processes, without pytest around them."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING

from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings
from pytest_tritonverify.benchmark.pair_benchmark import PairBenchmark
from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import Settings
from tests.support.workers import PATIENCE

if TYPE_CHECKING:
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.host import Host
    from pytest_tritonverify.supervision import Process

FEW = PerfSettings(warmup=2, repeats=8)


class MeasuringBench:
    """Measures cases of pairs on a host, and ends all processes with the test."""

    def __init__(self, host: Host) -> None:
        self.settings = Settings(timeout=PATIENCE)
        self._host = host
        self._open: list[PairBenchmark | Process] = []

    def measure(self, pair: Pair, perf: PerfSettings = FEW, device: str = "cpu") -> CaseMeasurement:
        """Measure the first case of a pair."""
        return self.measure_cases(pair, 1, perf, device)[0]

    def measure_cases(
        self, pair: Pair, count: int, perf: PerfSettings = FEW, device: str = "cpu"
    ) -> list[CaseMeasurement]:
        """Measure so many cases of a pair, one after the other."""
        settings = dataclasses.replace(self.settings, device=device)
        benchmark = PairBenchmark(PairProcesses(pair, settings, device, self._host.spawn))
        benchmark.choose = random.Random(0)
        self._open += [benchmark, benchmark.inputs]
        entry = CaseEntry("case1-float32-2x4", "float32")
        return [
            benchmark.run_case(case_idx, entry, f"benchmark{case_idx}", perf, None)
            for case_idx in range(1, count + 1)
        ]

    def close(self) -> None:
        """End everything that was started."""
        while self._open:
            self._open.pop().close()

"""Judge single pairs on the emulated NPU."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.judge import PairJudge
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import Settings
from pytest_tritonverify.supervision import VERIFIER, Process
from tests.support.workers import PATIENCE

if TYPE_CHECKING:
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.host import Host
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.results.records import CaseRecord

KERNEL = """
import os

import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, o, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0) * factor, mask=i < n)

@triton.jit
def out_of_bounds(x, o, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0) * factor, mask=i < n)

def twice(x, kernel=scale):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), 2, B=64)
    return o
"""


class Server:
    """Starts workers with variables of their own, and ends them with the test.

    Args:
        host: starts workers on the emulated device.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._open: list[Process | PairJudge] = []

    def _spawn(self, start: Message, variables: dict[str, str]) -> Any:
        return self.host.spawn({**start, "environment": variables})

    def facts(self, **variables: str) -> dict[str, Any]:
        """Return what the device says of itself."""
        start = {"role": "environment", "fresh_cache": False, "masked_lanes": "zero"}
        process = Process(lambda: self._spawn(start, variables), VERIFIER, "the survey", "")
        self._open.append(process)
        process.post({"op": "device"})
        found: dict[str, Any] = process.result(time.monotonic() + PATIENCE, "").message["facts"]
        return found

    def verdicts(
        self,
        pair: Pair,
        cases: int = 1,
        *,
        guard_bands: str = "on",
        stress: int = 1,
        **variables: str,
    ) -> list[CaseRecord]:
        """Judge the first cases of a pair, all that it has, in order."""
        settings = Settings(device="npu", timeout=PATIENCE, guard_bands=guard_bands, stress=stress)
        spawn = partial(self._spawn, variables=variables)
        judge = PairJudge(PairProcesses(pair, settings, "npu", spawn))
        self._open += [judge.reference, judge]
        entries = [CaseEntry(f"case{k}", "float32") for k in range(1, cases + 1)]
        return [judge.run_case(k, entry, cases, None) for k, entry in enumerate(entries, 1)]

    def close(self) -> None:
        """End everything that was started."""
        while self._open:
            self._open.pop().close()

"""Workers that are executed afresh instead of forked judge the same; some are made ahead."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.engine import Engine
from pytest_tritonverify.execution import processes
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from pytest_tritonverify.settings import Settings
from tests.support.living import is_alive
from tests.support.workers import PATIENCE, Bench, expect_gone, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair

TASK = """
import os
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * self.weight + hash("bias") % 7

def get_input_groups():
    return [[torch.randn(2, 4)], [torch.randn(3, 4)]]
"""
IMPLEMENTATION = """
import os
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, bias, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    w = tl.load(w_ptr + at % 4, mask=inside, other=0.0)
    tl.store(out_ptr + at, x * w + bias, mask=inside)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        if x.shape[0] == 2:
            print("started by", os.environ["PYTHONHASHSEED"], os.environ["TRITON_INTERPRET"])
        out = torch.empty_like(x)
        kernel[(1,)](x, self.weight, out, hash("bias") % 7, x.numel(), BLOCK=16)
        return out
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine that executes a fresh interpreter for every worker."""
    engine = Engine(Settings(device="cpu", start="spawn"), None, frozenset())
    yield engine
    engine.close()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return write_pair(tmp_path, TASK, IMPLEMENTATION)


def test_pair_is_judged_by_fresh_interpreters(engine: Engine, pair: Pair) -> None:
    listing = engine.catalogue.list(pair)
    assert [case.name for case in listing.cases] == ["case1-float32-2x4", "case2-float32-3x4"]
    judge = engine.judge(pair)
    records = [judge.run_case(k, case, 2, None) for k, case in enumerate(listing.cases, 1)]
    assert [record.status for record in records] == ["passed", "passed"]
    assert "started by 0 1" in records[0].output


class Ahead:
    """A host that keeps one process ready, and what it has made."""

    def __init__(self, config: HostConfig) -> None:
        self.host = Host(config)
        self.host.spares = 1
        self.bench = Bench(self.host)

    def close(self) -> None:
        """End everything."""
        self.bench.close()
        self.host.close()

    def worker(self) -> int:
        """Have a worker answer, and return its process id."""
        worker = self.bench.ready("environment", fresh_cache=False, masked_lanes="poison")
        assert self.bench.ask(worker, {"op": "device"}).message["facts"]["available"]
        return worker.pid

    def spare(self, *workers: int) -> int:
        """Return the process that is no worker, once there is one."""
        assert self.host._process is not None
        (server,) = processes.children(self.host._process.pid)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for pid in processes.children(server):
                if pid not in workers and is_alive(pid):
                    return pid
            time.sleep(0.01)
        raise AssertionError("there is none")


def test_a_process_made_ahead_becomes_a_worker() -> None:
    ahead = Ahead(HostConfig(DEVICES["cpu"], fork=False))
    try:
        first = ahead.worker()
        spare = ahead.spare(first)
        assert ahead.worker() == spare
        ahead.host.spares = 0
        last = ahead.spare(first, spare)
        assert ahead.worker() == last
        assert ahead.host._process is not None
        (server,) = processes.children(ahead.host._process.pid)
        assert set(processes.children(server)) == {first, spare, last}
    finally:
        ahead.close()
    assert not any(map(is_alive, (first, spare, last)))


def test_what_goes_wrong_ahead_costs_no_worker() -> None:
    ahead = Ahead(HostConfig(DEVICES["cpu"], fork=False, preload=("no_such_module",)))
    try:
        first = ahead.worker()
        # It could not import everything, and starts from the beginning.
        second = ahead.spare(first)
        assert ahead.worker() == second
        killed = ahead.spare(first, second)
        os.kill(killed, signal.SIGKILL)
        expect_gone(killed)
        assert ahead.worker() not in (first, second, killed)
    finally:
        ahead.close()

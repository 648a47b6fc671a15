"""Guard bands and stress on an NVIDIA GPU; without one there is nothing to test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.detection import likely
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from pytest_tritonverify.judge import PairJudge
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import Settings
from tests.support.workers import PATIENCE, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_tritonverify.results.records import CaseRecord

pytestmark = pytest.mark.skipif("cuda" not in likely(("cuda",)), reason="there is no GPU")

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {golden}

def get_inputs():
    return [{inputs}]
"""
KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, o, n, ahead, behind, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(o + i, value * 2, mask=i < n + behind)
    tl.store(o - 1 - i, value + 1, mask=i < ahead)

@triton.jit
def total(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))

@triton.jit
def races(x, o, n, B: tl.constexpr):
    # Each program adds to what it has read, and nobody keeps the others from doing so meanwhile.
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    tl.store(o, tl.load(o) + value)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.numel()
        {body}
        return o
"""
HONEST = """o = torch.empty_like(x)
        assert x.storage_offset() == 0 and x.data_ptr() % 512 == 0 and o.data_ptr() % 512 == 0
        assert x.untyped_storage().nbytes() == 4 * n == o.untyped_storage().nbytes()
        double[(triton.cdiv(n, 256),)](x, o, n, 0, {behind}, B=256)"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A fork server for the GPU."""
    host = Host(HostConfig(DEVICES["cuda"], fork=True))
    assert host.problems() == {}
    yield host
    host.close()


def verdict(host: Host, folder: Path, task: str, body: str, **wanted: Any) -> CaseRecord:
    pair = write_pair(folder, task, KERNELS.replace("{body}", body))
    settings = Settings(device="cuda", timeout=PATIENCE, **wanted)
    judge = PairJudge(PairProcesses(pair, settings, "cuda", host.spawn))
    try:
        return judge.run_case(1, CaseEntry("case1", "float32"), 1, None)
    finally:
        judge.close()
        judge.reference.close()


DOUBLE = TASK.format(golden="x * 2", inputs="torch.rand(1000)")
SUM = TASK.format(golden="x.sum().reshape(1)", inputs="torch.rand(100_000) * 100")


def test_an_honest_kernel_notices_nothing(host: Host, tmp_path: Path) -> None:
    record = verdict(host, tmp_path, DOUBLE, HONEST.format(behind=0), stress=20)
    assert record.passed, record.error_msg
    assert record.stress is not None
    assert record.stress["differing"] == 0
    assert record.stress["by_variation"]["busy"]["runs"] == 5


def test_a_write_beside_a_tensor_fails_a_case_that_is_right(host: Host, tmp_path: Path) -> None:
    body = HONEST.format(behind=3)
    assert verdict(host, tmp_path, DOUBLE, body, guard_bands="off").passed
    record = verdict(host, tmp_path, DOUBLE, body)
    assert record.error_type == "OutOfBoundsWrite"
    assert "12 bytes beyond the end of output (torch.float32, shape [1000])" in (
        record.error_msg or ""
    )
    body += "\n        double[(1,)](x, x, 1, 2, 0, B=256)"
    record = verdict(host, tmp_path, DOUBLE, body)
    assert "8 bytes before the beginning of input[0]" in (record.error_msg or "")


def test_atomics_and_races_are_found_by_their_bits(host: Host, tmp_path: Path) -> None:
    body = "o = torch.zeros(1, device=x.device)\n        {}[(triton.cdiv(n, 64),)](x, o, n, B=64)"
    record = verdict(host, tmp_path, SUM, body.format("total"), stress=50)
    assert record.error_type == "NonDeterminism"
    assert record.stress is not None
    assert record.stress["failed"] == 0
    low, high = record.stress["differing_rate_ci95"]
    assert low < record.stress["differing_rate"] <= high
    record = verdict(host, tmp_path, SUM, body.format("races"), stress=50)
    assert record.error_type in ("AccuracyError", "FlakyCase")
    assert record.stress is not None
    assert record.stress["outcomes"] > 1

"""On a device, what is written beside a tensor is found by what lay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.emulated_npu import emulated
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.npu import Server

pytestmark = emulated

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, flat):
        return x * 2

def get_input_groups():
    return [[torch.rand(k, 5).t(), torch.arange(30.0)[7:20]] for k in (3, 4, 5, 6)]
"""
IMPLEMENTATION = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, o, n, ahead, behind, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(o + i, value * 2, mask=i < n + behind)
    tl.store(o - 1 - i, value, mask=i < ahead)

@triton.jit
def reads(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(o + i, value * 2 + 0 * tl.sum(value), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x, flat):
        n, k = x.numel(), x.shape[1]
        y = x.t()
        if k == 5:
            o = torch.empty_like(y)
            double[(1,)](y, o, n, 0, 3, B=64)
        elif k == 6:
            o = torch.empty(y.shape, device=x.device)
            double[(1,)](y, o, n, 0, 0, B=64)
            double[(1,)](y, flat, 0, 9, 0, B=64)
        elif k == 4:
            o = y.new_empty(y.shape)
            reads[(1,)](y, o, n, B=64)
        else:
            o = torch.empty_strided(y.size(), y.stride(), device=x.device)
            double[(1,)](y, o, n, 0, 0, B=64)
            o.resize_(o.shape)
        return o.t()
"""


def test_writes_beside_tensors_fail_a_case_and_reads_find_no_number(
    npu: Server, tmp_path: Path
) -> None:
    pair = write_pair(tmp_path, TASK, IMPLEMENTATION)
    clean, read, behind, ahead = npu.verdicts(pair, 4)
    assert clean.passed, clean.error_msg
    assert read.error_type == "AssertionError"
    assert "NaN" in (read.error_msg or "")
    assert behind.error_type == "OutOfBoundsWrite"
    text = behind.error_msg or ""
    assert "12 bytes beyond the end of output (torch.float32, shape [5, 5])" in text
    line = 1 + IMPLEMENTATION[: IMPLEMENTATION.index("torch.empty_like(y)")].count("\n")
    assert f"made at op_triton_ascend_impl.py:{line}" in text
    assert "Kernels launched: double" in text
    assert ahead.error_type == "OutOfBoundsWrite"
    text = ahead.error_msg or ""
    # The input is a part of its storage, which begins 28 bytes ahead of it.
    assert "8 bytes before the beginning of input[1] (torch.float32, shape [13])" in text


def test_they_can_be_left_out(npu: Server, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, TASK, IMPLEMENTATION)
    _, _, behind, _ = npu.verdicts(pair, 4, guard_bands="off")
    assert behind.passed


def test_other_values_beside_tensors_show_what_is_read_there(npu: Server, tmp_path: Path) -> None:
    # A comparison with NaN is false, so that nothing comes of it by itself.
    reads = IMPLEMENTATION.replace("0 * tl.sum(value)", "tl.where(tl.max(value) > 5, 1.0, 0.0)")
    pair = write_pair(tmp_path, TASK.replace("3, 4, 5, 6", "3, 4"), reads)
    _, read = npu.verdicts(pair, 2)
    assert read.passed, read.error_msg
    clean, read = npu.verdicts(pair, 2, stress=5)
    assert clean.passed, clean.error_msg
    assert read.error_type == "FlakyCase"
    stress = read.stress
    assert stress is not None
    assert (stress["runs"], stress["failed"], stress["any_order"]) == (5, 1, None)
    assert stress["by_variation"]["memory"] == {"runs": 1, "failed": 1, "differing": 1}

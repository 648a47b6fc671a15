"""What goes wrong on an NPU: faults, memory, and what the CPU can't compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.emulated_npu import emulated
from tests.support.npu import KERNEL
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.npu import Server

pytestmark = emulated

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_input_groups():
    return [[torch.randn(k, 8)] for k in (1, 2, 3)]
"""
MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        print("process", os.getpid())
        {second}
        return twice(x)
"""


def _pids(outputs: list[str]) -> list[str]:
    return [line for output in outputs for line in output.splitlines() if "process" in line]


def test_a_faulting_kernel_costs_its_case_and_its_process(npu: Server, tmp_path: Path) -> None:
    second = "if len(x) == 2: return twice(x, out_of_bounds)"
    pair = write_pair(tmp_path, TASK, KERNEL + MODEL.format(second=second))
    records = npu.verdicts(pair, 3, EMULATED_NPU_FAULTS="out_of_bounds")
    assert [record.status for record in records] == ["passed", "failed", "passed"]
    fault = records[1]
    assert (fault.error_type, fault.phase, fault.side) == (
        "RuntimeError",
        "forward",
        "implementation",
    )
    assert fault.error_msg is not None
    assert "error code is 507015" in fault.error_msg
    assert "The aicore execution is abnormal" in fault.error_msg
    assert "brought the device down" in fault.error_msg
    assert "ASCEND_LAUNCH_BLOCKING=1" in fault.error_msg
    first, second_pid, third = _pids([record.output for record in records])
    assert first == second_pid != third


def test_memory_is_told_apart_from_a_fault(npu: Server, tmp_path: Path) -> None:
    second = "if len(x) == 2: kept = torch.empty(1 << 20, device=x.device); kept.add_(1)"
    pair = write_pair(tmp_path, TASK, KERNEL + MODEL.format(second=second))
    records = npu.verdicts(pair, 3, EMULATED_NPU_MEMORY=str(1 << 20))
    assert [record.status for record in records] == ["passed", "failed", "passed"]
    assert records[1].error_type == "OutOfMemoryError"
    assert records[1].error_msg is not None
    assert "NPU out of memory. Tried to allocate 4.00 MiB (NPU 0; 1.00 MiB total capacity" in (
        records[1].error_msg
    )
    assert "does not fit into memory" in records[1].error_msg
    assert "brought the device down" not in records[1].error_msg
    assert len(set(_pids([record.output for record in records]))) == 1


def test_memory_of_a_failed_run_is_given_back(npu: Server, tmp_path: Path) -> None:
    # Each run needs more than half of what there is.
    second = (
        "held = torch.zeros(150_000, device=x.device)\n        if len(x) == 2: raise ValueError"
    )
    pair = write_pair(tmp_path, TASK, KERNEL + MODEL.format(second=second))
    records = npu.verdicts(pair, 3, EMULATED_NPU_MEMORY=str(1 << 20))
    assert [record.error_type for record in records] == [None, "ValueError", None]


SWIGLU_TASK = """
import torch
import torch_npu

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        x.mul_(2)
        return torch_npu.npu_swiglu(x) * self.weight

def get_inputs():
    return [torch.randn(3, 8)]
"""
SWIGLU = """
import torch
import triton
import triton.language as tl

@triton.jit
def swiglu(x, w, o, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    gate = tl.load(x + row * 2 * B + i) * 2
    value = tl.load(x + row * 2 * B + B + i) * 2
    tl.store(x + row * 2 * B + i, gate)
    tl.store(x + row * 2 * B + B + i, value)
    tl.store(o + row * B + i, gate * tl.sigmoid(gate) * value * tl.load(w + i))

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        o = x.new_empty(3, 4)
        swiglu[(3,)](x, self.weight, o, B=4)
        return o
"""


def test_golden_falls_back_to_the_npu_with_everything_made_anew(
    npu: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = write_pair(tmp_path, SWIGLU_TASK, SWIGLU)
    with caplog.at_level("WARNING", "pytest_tritonverify"):
        (record,) = npu.verdicts(pair)
    # Its first attempt, on the CPU, had doubled the inputs already.
    assert record.passed, record.error_msg
    assert record.golden_device == "npu"
    (line,) = [r.getMessage() for r in caplog.records if "golden" in r.getMessage()]
    assert line.startswith(
        "[用例 1/1] golden 落 CPU 时执行失败,回退 golden 到 NPU 重试: NotImplementedError: "
        "Could not run 'npu::npu_swiglu' with arguments from the 'CPU' backend."
    )


def test_a_verdict_is_never_a_reason_to_compute_the_golden_again(
    npu: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = write_pair(tmp_path, TASK, KERNEL + MODEL.format(second="x = x + 1"))
    with caplog.at_level("WARNING", "pytest_tritonverify"):
        record, *_ = npu.verdicts(pair, 3)
    assert (record.error_type, record.golden_device) == ("AccuracyError", "cpu")
    assert not caplog.records


def test_a_reference_that_fails_everywhere_fails_as_the_reference(
    npu: Server, tmp_path: Path
) -> None:
    pair = write_pair(tmp_path, SWIGLU_TASK, SWIGLU)
    (record,) = npu.verdicts(pair, EMULATED_NPU_REFUSES="aten::silu")
    assert (record.side, record.error_type) == ("reference", "NotImplementedError")
    assert record.error_msg is not None
    assert "This is a failure of the reference" in record.error_msg


def test_a_reference_that_brings_the_device_down_is_replaced(npu: Server, tmp_path: Path) -> None:
    task = """
    import torch
    import torch_npu
    import triton
    import triton.language as tl

    @triton.jit
    def out_of_bounds(x, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), 0.0)

    class Model(torch.nn.Module):
        def forward(self, x):
            if len(x) == 2:
                x = x.npu()
                out_of_bounds[(1,)](x, B=2)
            return x * 2

    def get_input_groups():
        return [[torch.randn(k, 8)] for k in (1, 2, 3)]
    """
    pair = write_pair(tmp_path, task, KERNEL + MODEL.format(second=""))
    records = npu.verdicts(pair, 3, EMULATED_NPU_FAULTS="out_of_bounds")
    assert [record.status for record in records] == ["passed", "failed", "passed"]
    assert records[1].side == "reference"

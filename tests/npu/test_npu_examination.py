"""The examination on the emulated NPU, and what it makes of the profiler's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.evidence import operators
from pytest_tritonverify.observing import npu_kernels
from tests.support.emulated_npu import emulated
from tests.support.examining import examined, implementation, notes, the, violations
from tests.support.products import CHEATS, DOT, PRODUCT

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host


@emulated
def test_an_honest_kernel(npu_host: Host, tmp_path: Path) -> None:
    body = "return dot(x.t().contiguous().half().float().t().contiguous().to(x.dtype))"
    task = PRODUCT.replace("return x @ x", "x = x.half().float(); return x @ x")
    report = examined(npu_host, tmp_path, implementation(body, DOT), task)
    assert report.passed, report.message()
    assert "device_not_profiled" not in notes(report)
    (case,) = report.cases
    assert case.launches


@emulated
@pytest.mark.parametrize("name", CHEATS)
def test_cheats(npu_host: Host, tmp_path: Path, name: str) -> None:
    body, codes = CHEATS[name]
    report = examined(npu_host, tmp_path, implementation(body, DOT), PRODUCT)
    assert codes <= violations(report), report.to_json()
    if "device_kernel" in codes:
        assert "cann::MatMulV2" in the(report, "device_kernel").message


TABLE = """\
Step Id,Device_id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),HF32 Eligible
0,0,1,2,softmax_kernel,softmax_kernel,AI_VECTOR_CORE,"17.5\t",3.2,NO
0,0,2,2,aclnnMatmul_MatMulCommon_MatMulV2,MatMulV2,AI_CORE,18\t,9,NO
0,0,3,2,aclnnInplaceCopy_TensorMoveAiCore_TensorMove,TensorMove,AI_VECTOR_CORE,19\t,9,NO
"""  # noqa: E501 - one row a line
COMPUTING = """
    MatMulV2 MatMulV3 BatchMatMulV2 GroupedMatMul Conv2D SoftmaxV2 LogSoftmaxV2 LayerNormV3
    RmsNorm AddRmsNorm ReduceSum ReduceMax ArgMaxV2 Add Addcmul Sub Mul Muls RealDiv Pow Exp Log
    Rsqrt Sqrt Tanh Sigmoid Relu Gelu GeluV2 Swish SwiGlu Maximum FlashAttentionScore TopKV2 Sort
    CumsumD Equal Less LogicalAnd SelectV2 GatherV2 IndexPutV2 AvgPoolV2
"""
ALLOWED = """
    TensorMove MemSet ZerosLike Fill Fills Cast ViewCopy Identity Range TransData Transpose Slice
    StridedSliceV2 AsStrided ConcatD Pack Tile BroadcastTo PadV3 SplitV SplitD
    StatelessRandomNormalV2 DSARandomUniform
"""


def test_a_table_of_torch_npu(tmp_path: Path) -> None:
    table = tmp_path / "kernel_details.csv"
    table.write_text(TABLE)
    assert npu_kernels.read(table) == ["softmax_kernel", "cann::MatMulV2", "cann::TensorMove"]
    table.write_text("")
    assert npu_kernels.read(table) == []


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (COMPUTING, operators.COMPUTING),
        (ALLOWED, operators.ALLOWED),
        ("Whatever MadeUpV2", None),
    ],
)
def test_kernels_of_cann(names: str, kind: str | None) -> None:
    for name in names.split():
        assert operators.device_kernel_kind(f"cann::{name}") == kind, name

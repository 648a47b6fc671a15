"""A process that has lost its device is told by what its exceptions say, and by nothing else."""

from __future__ import annotations

import pytest

from pytest_tritonverify.faults import lost
from pytest_tritonverify.hints import hint

# As torch_npu 2.5 to 2.13, torch 2.1 to 2.13 and Triton write them; shortened.
NPU_FAULTS = [
    (
        "operator():build/CMakeFiles/torch_npu.dir/compiler_depend.ts:25 NPU function error: "
        "c10_npu::acl::AclrtSynchronizeStreamWithTimeout(copy_stream), error code is 507035\n"
        "[ERROR] 2025-04-29-18:46:11 (PID:1066924, Device:1, RankID:-1) ERR00100 PTA call acl api "
        "failed\n[Error]: The vector core execution is abnormal."
    ),
    (
        "npuSynchronizeDevice:torch_npu/csrc/core/npu/NPUStream.cpp:435 NPU function error: "
        "aclrtSynchronizeDevice, error code is 507046"
    ),
    "NPU function error: call aclnnMaskedSelect failed, error code is 507015",
    "NPU function error:  FORCE STOP, error code is 107022[ERROR] ERR00100 PTA call acl api failed",
]
NPU_OTHERS = [
    (
        "NPU out of memory. Tried to allocate 52.00 MiB (NPU 0; 60.96 GiB total capacity; 59.36 "
        "GiB already allocated; 59.36 GiB current active; 5.04 MiB free)"
    ),
    "NPU function error: call aclnnAdd failed, error code is 561103",
    "NPU function error: aclrtMalloc, error code is 207001",
    "NPU function error: aclrtMemcpy, error code is 107002",
    "The size of tensor a (507015) must match the size of tensor b (3)",
    "",
]
CUDA_FAULTS = [
    (
        "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
        "asynchronously reported at some other API call"
    ),
    "CUDA error: device-side assert triggered",
    "CUDA error: unspecified launch failure",
    "CUDA error: misaligned address",
    "Triton Error [CUDA]: an illegal memory access was encountered",
    "HIP error: an illegal memory access was encountered",
]
CUDA_OTHERS = [
    "CUDA out of memory. Tried to allocate 20.00 GiB.",
    "CUDA error: out of memory",
    "CUDA error: invalid argument",
    "Triton Error [CUDA]: invalid argument",
    "an illegal memory access was encountered, said the author of a kernel",
]


@pytest.mark.parametrize("message", NPU_FAULTS)
def test_an_npu_is_lost(message: str) -> None:
    assert lost("npu", message)
    advice = hint("npu", "RuntimeError", message, "")
    assert advice is not None
    assert "ASCEND_LAUNCH_BLOCKING=1" in advice
    assert not lost("cuda", message)
    assert not lost("cpu", message)


@pytest.mark.parametrize("message", CUDA_FAULTS)
def test_a_gpu_is_lost(message: str) -> None:
    assert lost("cuda", message)
    advice = hint("cuda", "RuntimeError", message, "")
    assert advice is not None
    assert "CUDA_LAUNCH_BLOCKING=1" in advice
    assert not lost("npu", message)
    assert not lost("cpu", message)


@pytest.mark.parametrize(
    ("device", "message"),
    [*(("npu", text) for text in NPU_OTHERS), *(("cuda", text) for text in CUDA_OTHERS)],
)
def test_other_failures_leave_the_device(device: str, message: str) -> None:
    assert not lost(device, message)


def test_memory_that_runs_out_is_called_that() -> None:
    for error_type in ("RuntimeError", "OutOfMemoryError"):
        advice = hint("npu", error_type, NPU_OTHERS[0], "")
        assert advice is not None
        assert "does not fit into memory" in advice


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("0 active drivers ([]). There should only be one.", "riton"),
        ("Torch not compiled with CUDA enabled", "transfer_to_npu"),
    ],
)
def test_code_that_meets_another_set_up(message: str, said: str) -> None:
    advice = hint("npu", "RuntimeError", message, "x.cuda()")
    assert advice is not None
    assert said in advice


def test_the_users_own_failures_get_no_advice_on_the_set_up() -> None:
    assert hint("npu", "ValueError", "sizes differ", "") is None
    advice = hint("npu", "ModuleNotFoundError", "No module named 'einops'", "import einops")
    assert advice == "Install the package for the Python that runs pytest, or drop the import."

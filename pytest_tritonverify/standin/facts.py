"""The devices that the stand-in takes itself for.

Only code that asks sees these numbers, to size grids and to choose between paths. Both devices are
the ones that most published kernels were written for, so that their checks hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CUDA_NAME = "NVIDIA H100 80GB HBM3"
CUDA_CAPABILITY = (9, 0)
CUDA_VERSION = "12.8"
NPU_NAME = "Ascend910B4"
# torch_npu's number for that chip.
NPU_SOC_VERSION = 224

# Bytes. NVIDIA H100 SXM: 80 GB, of which its driver keeps some.
_CUDA_MEMORY = 85_028_896_768
_NPU_MEMORY = 32 * 2**30


@dataclass(frozen=True)
class CudaProperties:
    """What torch.cuda.get_device_properties returns; the values of an NVIDIA H100 SXM."""

    name: str = CUDA_NAME
    major: int = CUDA_CAPABILITY[0]
    minor: int = CUDA_CAPABILITY[1]
    total_memory: int = _CUDA_MEMORY
    multi_processor_count: int = 132
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    L2_cache_size: int = 52428800
    clock_rate: int = 1980000
    memory_clock_rate: int = 2619000
    memory_bus_width: int = 5120
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = CUDA_NAME  # noqa: N815 - torch's name


@dataclass(frozen=True)
class NpuProperties:
    """What torch.npu.get_device_properties returns; the values of an Ascend 910B4."""

    name: str = NPU_NAME
    total_memory: int = _NPU_MEMORY
    cube_core_num: int = 20
    vector_core_num: int = 40
    L2_cache_size: int = 100663296


def soc_specification() -> dict[str, Any]:
    """Return what CANN says of the chip; sizes in bytes, of an Ascend 910B4."""
    npu = NpuProperties()
    return {
        "SOC_VERSION": NPU_NAME,
        "SHORT_SOC_VERSION": "Ascend910B",
        "CORE_NUM": npu.cube_core_num,
        "UB_SIZE": 196608,
        "L1_SIZE": 524288,
        "L0A_SIZE": 65536,
        "L0B_SIZE": 65536,
        "L0C_SIZE": 131072,
    }


def driver_properties(kind: str) -> dict[str, Any]:
    """Return what Triton's driver says of the device."""
    if kind == "npu":
        npu = NpuProperties()
        return {
            "max_shared_mem": 1,
            "num_aicore": npu.cube_core_num,
            "num_vectorcore": npu.vector_core_num,
        }
    cuda = CudaProperties()
    return {
        "max_shared_mem": cuda.shared_memory_per_block_optin,
        "max_num_regs": cuda.regs_per_multiprocessor,
        "multiprocessor_count": cuda.multi_processor_count,
        "multi_processor_count": cuda.multi_processor_count,
        "warpSize": cuda.warp_size,
        "sm_clock_rate": cuda.clock_rate,
        "mem_clock_rate": cuda.memory_clock_rate,
        "mem_bus_width": cuda.memory_bus_width,
    }

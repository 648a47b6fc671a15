"""What differs between the devices that a worker can run on.

A new device is a subclass of `Device` and an entry in `DEVICES`; hardly anything else in the
package asks which one it is.
"""

from __future__ import annotations

import os
from typing import Any

from pytest_tritonverify.execution.device import SEED, Device
from pytest_tritonverify.execution.npu import Npu

__all__ = ["DEVICES", "SEED", "Cpu", "Cuda", "Device"]


class Cpu(Device):
    """Triton's CPU interpreter: every machine has it."""

    name = "cpu"
    interpreted = True

    def environment(self) -> dict[str, str]:
        """Triton reads TRITON_INTERPRET when it is imported; back ends must not autoload.

        GPUs are hidden, so that a verdict of the CPU is the same on every machine.
        """
        return {
            "TRITON_INTERPRET": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "CUDA_VISIBLE_DEVICES": "",
            # Counting GPUs by the driver would spoil CUDA for every process forked afterwards.
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }

    def facts(self) -> dict[str, Any]:
        """The CPU is always there."""
        return {"available": True, "count": 1, "name": "Triton interpreter"}


class Cuda(Device):
    """NVIDIA GPUs, and AMD's under torch's ROCm build, which uses the same names."""

    name = "cuda"

    def environment(self) -> dict[str, str]:
        """Torch's own probe for GPUs must not create a context in the fork server.

        Kernels that ran on the interpreter would say nothing about the GPU.
        """
        return {
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "TRITON_INTERPRET": "0",
        }

    def facts(self) -> dict[str, Any]:
        """Ask torch which GPUs it sees."""
        import torch

        if not torch.cuda.is_available():
            built = torch.version.cuda or getattr(torch.version, "hip", None)
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            reason = (
                f"torch {torch.__version__} is built without CUDA"
                if built is None
                else f"torch {torch.__version__} sees no GPU"
                + (f" (CUDA_VISIBLE_DEVICES={visible!r})" if visible is not None else "")
            )
            return {"available": False, "reason": reason}
        return {
            "available": True,
            "count": torch.cuda.device_count(),
            "name": torch.cuda.get_device_name(),
        }

    def synchronize(self) -> None:
        """Wait for the current device."""
        import torch

        torch.cuda.synchronize()

    def release(self) -> None:
        """Empty torch's caching allocator."""
        import torch

        torch.cuda.empty_cache()


DEVICES: dict[str, Device] = {device.name: device for device in (Npu(), Cuda(), Cpu())}

"""Huawei's Ascend NPUs, by torch_npu and triton-ascend.

Every call is one that torch_npu documents for `torch.npu`. Devices are counted within
ASCEND_RT_VISIBLE_DEVICES: `npu:0` is the first one that it names.
"""

from __future__ import annotations

import os
from typing import Any

from pytest_tritonverify import ascend
from pytest_tritonverify.execution.device import SEED, Device


class Npu(Device):
    """The first visible NPU.

    Workers are fresh processes: torch_npu can't be used in a process that was forked from one
    that has used it, and CANN starts threads when it is loaded.
    """

    name = "npu"
    forkable = False

    def environment(self) -> dict[str, str]:
        """Have torch_npu imported by `load` alone, where a failure can be explained.

        Kernels that ran on the interpreter would say nothing about the NPU.
        """
        return {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "TRITON_INTERPRET": "0"}

    def load(self) -> None:
        """Import torch_npu, which makes `torch.npu`, `.npu()` and the device `npu` known.

        Raises:
            Exception: whatever the import raises, which depends on what is missing.
        """
        import torch_npu  # noqa: F401 - for its side effects

    def seed(self, seed: int = SEED) -> None:
        """Seed torch's generators on the CPU and on all NPUs."""
        import torch
        import torch_npu

        torch.manual_seed(seed)
        torch_npu.npu.manual_seed_all(seed)

    def facts(self) -> dict[str, Any]:
        """Open the device, and ask Triton whether it is its own, too."""
        try:
            import torch_npu

            if not torch_npu.npu.is_available():
                return _absent(ascend.none_visible(os.environ))
            torch_npu.npu.set_device(0)
            torch_npu.npu.synchronize()
            count, name = torch_npu.npu.device_count(), torch_npu.npu.get_device_name(0)
            target = _triton_target()
        except Exception as error:  # noqa: BLE001 - broken set-ups raise anything
            return _absent(ascend.explained(error, os.environ))
        if target != "npu":
            return _absent(ascend.foreign_triton(target))
        return {"available": True, "count": count, "name": name}

    def synchronize(self) -> None:
        """Wait for all streams of the current device."""
        import torch_npu

        torch_npu.npu.synchronize()

    def release(self) -> None:
        """Empty torch_npu's caching allocator."""
        import torch_npu

        torch_npu.npu.empty_cache()


def _absent(reason: str) -> dict[str, Any]:
    return {"available": False, "reason": reason}


def _triton_target() -> str:
    """Return the back end that Triton compiles for: `npu` where it is triton-ascend.

    Raises:
        RuntimeError: it finds none.
    """
    from triton.runtime import driver

    return str(driver.active.get_current_target().backend)

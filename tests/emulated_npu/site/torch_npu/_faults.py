"""What goes wrong with the emulated device on demand, in the words of torch_npu.

Attributes of a process, set by environment variables:
    EMULATED_NPU_FAULTS: names of kernels, separated by commas, after which the device is lost.
    EMULATED_NPU_REFUSES: operators, as `aten::add.Tensor`, that the device does not have.
    EMULATED_NPU_BUSY: the device can't be opened.
    EMULATED_NPU_WITHOUT_TRITON: the installed Triton is none for the device.
"""

from __future__ import annotations

import os
import time
from typing import Any

_AICORE = 507015
_BUSY = 507033
_pending: list[int] = []
_TEXTS = {
    _AICORE: "The aicore execution is abnormal. \n        Rectify the fault based on the error "
    "information in the ascend log.",
    _BUSY: "The device is being set up. \n        Rectify the fault based on the error "
    "information in the ascend log.",
}
_CALLS = {
    _AICORE: "operator():build/CMakeFiles/torch_npu.dir/compiler_depend.ts:456 NPU function "
    "error: AclrtSynchronizeDeviceWithTimeout",
    _BUSY: "SetDevice:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:158 NPU function error: "
    "c10_npu::SetDevice(device_id_)",
}


def _names(variable: str) -> list[str]:
    return [name for name in os.environ.get(variable, "").split(",") if name]


def _failed(code: int) -> RuntimeError:
    now = time.strftime("%Y-%m-%d-%H:%M:%S")
    return RuntimeError(
        f"{_CALLS[code]}, error code is {code}\n"
        f"[ERROR] {now} (PID:{os.getpid()}, Device:0, RankID:-1) ERR00100 PTA call acl api failed\n"
        f"[Error]: {_TEXTS[code]}\n"
        "EZ9999: Inner Error!\n"
        "        rtDeviceSynchronizeWithTimeout execute failed, reason=[aicore exception]"
        "[FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]\n"
        "        TraceBack (most recent call last):\n"
    )


def launched(kernel: str) -> None:
    """Take note of a launch, whose fault comes to light where the device is waited for."""
    if kernel in _names("EMULATED_NPU_FAULTS"):
        _pending.append(_AICORE)


def raise_pending() -> None:
    """Fail like everything does on a device that has had a fault, for good."""
    if _pending:
        raise _failed(_pending[0])


def open_device() -> None:
    """Fail where the device can't be had."""
    if os.environ.get("EMULATED_NPU_BUSY"):
        raise _failed(_BUSY)


def refuse(op: Any) -> None:
    """Fail where the device does not have an operator."""
    if str(op._schema.name) in _names("EMULATED_NPU_REFUSES"):
        raise NotImplementedError(
            f"Could not run '{op._schema.name}' with arguments from the 'PrivateUse1' backend."
        )

"""Advice for failures whose cause is known, matched on what the exception says."""

from __future__ import annotations

import re

_WANTS_DEVICE = re.compile(
    r"not compiled with CUDA|No CUDA GPUs are available|Found no NVIDIA driver"
    r"|0 active drivers|torch has no attribute 'npu'|module 'torch' has no attribute 'npu'"
    r"|No module named 'torch_npu'|must be (on|a) (the )?(CUDA|GPU|NPU)|on a? ?(CUDA|GPU) device"
    r"|(cuda|npu|gpu) tensors?\b|requires? (a )?(CUDA|GPU|NPU)|is_cuda|is_npu"
    r"|Expected one of cpu, cuda|device type at start of device string: npu"
    r"|no accelerator|Cannot initialize CUDA|driver.*not (found|installed)",
    re.IGNORECASE,
)


def hint(device: str, error_type: str, message: str) -> str | None:
    """Return a sentence on what to try, or None where nothing is known.

    Args:
        device: the device of the run.
        error_type: the exception's name.
        message: the exception's text.
    """
    if device == "cpu" and _WANTS_DEVICE.search(message):
        return (
            "This code asks for an accelerator, and this run judges on the CPU, on Triton's "
            "interpreter. Take the device from the inputs (`x.device`) instead of naming it, or "
            "judge on the accelerator with --verify-device=cuda."
        )
    if error_type == "ModuleNotFoundError":
        return "Install the package for the Python that runs pytest, or drop the import."
    if error_type in ("OutOfMemoryError", "MemoryError"):
        return "The case does not fit into memory here; try smaller shapes."
    return None

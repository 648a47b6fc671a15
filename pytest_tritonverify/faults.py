"""Tell failures after which a process can't use its device any more from all others."""

from __future__ import annotations

import re

_LOST = {
    # From acl/error_codes/rt_error_codes.h: 507xxx are faults of cores, timeouts, and errors of
    # the device's memory, links and driver; 107022 is what is told while it is being reset.
    "npu": re.compile(r"error code is (507\d{3}|107022)\b"),
    # From the CUDA runtime's descriptions of errors that leave a process in an inconsistent state.
    # HIP uses the same words, and so does Triton's launcher.
    "cuda": re.compile(
        r"((CUDA|HIP) error|Triton Error \[(CUDA|HIP)\]): .*"
        r"(illegal (memory access|instruction|address)|misaligned address|device-side assert"
        r"|unspecified launch failure|launch timed out|hardware stack error"
        r"|invalid program counter|uncorrectable ECC|memory access fault)",
        re.IGNORECASE,
    ),
}


def lost(device: str, message: str) -> bool:
    """Whether an exception says that the process has lost its device.

    One that is out of memory is not lost: other runs may still fit.

    Args:
        device: name of the device.
        message: the exception's text.
    """
    pattern = _LOST.get(device)
    return pattern is not None and pattern.search(message) is not None

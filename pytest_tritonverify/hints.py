"""Advice for failures whose cause is known, matched on what the exception says."""

from __future__ import annotations

import os
import re

from pytest_tritonverify import ascend, faults

# Messages of torch and triton themselves.
_LIBRARIES_WANT_DEVICE = re.compile(
    r"not compiled with CUDA|No CUDA GPUs are available|Found no NVIDIA driver"
    r"|Cannot initialize CUDA|requires a CUDA or other accelerator|libcuda\.so"
    r"|on a CUDA device but torch\.cuda\.is_available\(\) is False|from the '(CUDA|NPU)' backend"
    r"|\b0 active drivers"
    r"|has no attribute '(is_)?npu'|No module named 'torch_npu'"
    r"|device type at start of device string: npu"
)
_NAME = r"((Ascend|NVIDIA) )?\b(CUDA|GPU|NPU)s?\b"
_KIND = r"( (tensors?|inputs?|devices?|memory))?"
# What an author's own words look like; a device that is only mentioned is no demand for one.
_AUTHOR_WANTS_DEVICE = re.compile(
    r"\b(CUDA|GPU|NPU)[ -]tensors?\b"
    rf"|\b(on|to|requires?|needs?|expects?|expected|be|no|only( supports?)?) ((the|an?) )?{_NAME}"
    rf"{_KIND}(?=$|\W*\n|[.,;:!?()]| (but|and|or|for|to|not|is|are|got|found|in)\b)"
    rf"|{_NAME}{_KIND} ((is|are) )?(expected|required|needed|not available|not found)\b",
    re.IGNORECASE,
)
# In the line of code that raised, where the message itself may say nothing.
_ASKS_FOR_DEVICE = re.compile(r"\.is_cuda\b|\.is_npu\b|\bdevice\b.*[\"'](cuda|npu)\b")
_OUT_OF_MEMORY = re.compile(
    r"DefaultCPUAllocator: can't allocate memory|(NPU|CUDA|HIP) out of memory"
    r"|memory of tensors can't be mapped: OSError\(12,"
)
_WANTS_BLOCK_POINTERS = re.compile(r"Block pointers have been removed")
_WANTS_CUDA = re.compile(r"not compiled with CUDA")
_LAUNCHES_WAIT = {"npu": "ASCEND_LAUNCH_BLOCKING", "cuda": "CUDA_LAUNCH_BLOCKING"}


# Devices are open to everybody whom the system lets.
_DENIED = re.compile(r"\[Errno 13\] Permission denied: (?!'/dev/)")
_FILE_TOO_LARGE = re.compile(r"\[Errno 27\]")
_NO_PROCESS = re.compile(r"\[Errno 11\] Resource temporarily unavailable|can't start new thread")


def missing_module(python: str) -> str:
    """Return what to do about a module that an interpreter does not find."""
    return f"Install the package for {python}, or drop the import."


MISSING_MODULE = missing_module("the Python that runs pytest")


def of_confinement(message: str) -> str | None:
    """Return a sentence on what is kept from implementations, where a failure shows it.

    Args:
        message: the exception's text.
    """
    if _DENIED.search(message):
        return (
            "An implementation may read neither the task nor results, and write neither beside a "
            "pair nor into the Python installation. Its current folder and tempfile are free; "
            "--verify-isolation=off takes all of this back."
        )
    if _FILE_TOO_LARGE.search(message):
        return (
            "Its files, the one in which outputs travel included, may grow to a limit, the "
            "machine's memory or --verify-file-limit."
        )
    if _NO_PROCESS.search(message):
        return "It may have a limited number of processes and threads (--verify-process-limit)."
    return None


def hint(device: str, error_type: str, message: str, code: str) -> str | None:
    """Return a sentence on what to try, or None where nothing is known.

    Args:
        device: the device of the run.
        error_type: the exception's name.
        message: the exception's text.
        code: the line of the user's code that raised.
    """
    if device == "cpu" and _wants_device(error_type, message, code):
        return (
            "This code asks for an accelerator, and this run judges on the CPU, on Triton's "
            "interpreter. Let the CPU stand in for it (--verify-standin=auto, cuda or npu), take "
            "the device from the inputs (`x.device`) instead of naming or testing for one, or "
            "judge on a machine that has it, with --verify-device."
        )
    if error_type == "ModuleNotFoundError":
        return MISSING_MODULE
    if _WANTS_BLOCK_POINTERS.search(message):
        return (
            "Triton 3.9 has removed tl.make_block_ptr. Judge on the CPU (--verify-device=cpu), or "
            "with a Triton that has it, such as 3.8 or triton-ascend 3.2, or use "
            "tl.make_tensor_descriptor or plain pointers."
        )
    known = _of_device(device, message)
    if known is not None:
        return known
    if error_type in ("OutOfMemoryError", "MemoryError") or _OUT_OF_MEMORY.search(message):
        return (
            "The case does not fit into memory here, or into what --verify-memory-limit leaves it; "
            "try smaller shapes."
        )
    return None


def _of_device(device: str, message: str) -> str | None:
    """Return advice on what an accelerator's own libraries say."""
    if faults.lost(device, message):
        return (
            "A kernel has brought the device down, by an address out of bounds or by hanging, and "
            "its process was replaced. The fault shows where the device is waited for: set "
            f"{_LAUNCHES_WAIT[device]}=1 to see the launch."
        )
    if device != "npu" or _OUT_OF_MEMORY.search(message):
        return None
    if _WANTS_CUDA.search(message):
        return (
            "This code asks for CUDA on an NPU. Take the device from the inputs (`x.device`), or "
            "import torch_npu.contrib.transfer_to_npu first in both files."
        )
    known = ascend.by_text(message, os.environ)
    return known and f"{known[0].upper()}{known[1:]}."


def _wants_device(error_type: str, message: str, code: str) -> bool:
    if _LIBRARIES_WANT_DEVICE.search(message) or _AUTHOR_WANTS_DEVICE.search(message):
        return True
    complains = error_type == "AssertionError" or re.search(r"\braise\b", code)
    return bool(complains and _ASKS_FOR_DEVICE.search(code))

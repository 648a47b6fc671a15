"""A stand-in for an accelerator, so that code written for one can be judged on the CPU.

Tensors stay what they are, in the CPU's memory and with the CPU's values; the stand-in answers the
questions that such code asks about its device, and takes the device's names where they are given.
It works in the process that calls `install`, and is meant for workers: user code runs there.

Importing this package imports neither torch nor triton; `install` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.standin import usage

if TYPE_CHECKING:
    from pytest_tritonverify.standin.patches import Patches

OFF = "off"
CUDA = "cuda"
NPU = "npu"
KINDS = (NPU, CUDA, OFF)

_installed: list[tuple[str, Patches]] = []


def install(kind: str) -> None:
    """Let this process answer as if it had an accelerator.

    To be called before user code is imported. "off" changes nothing, a second call for the same
    kind neither.

    Args:
        kind: "cuda", "npu" or "off".

    Raises:
        ValueError: there is no such kind, or another one is installed.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no stand-in for {kind!r}; there are {', '.join(KINDS)}")
    if kind == OFF or installed() == kind:
        return
    if _installed:
        raise ValueError(f"the stand-in for {installed()} is installed; it can't be {kind} too")
    from pytest_tritonverify.standin import installing

    _installed.append((kind, installing.install(kind)))
    usage.forget()  # what was asked in the course of it


def uninstall() -> None:
    """Take everything back that `install` changed, and forget what was used.

    Only the name "npu" stays known to torch, which can't forget it.
    """
    while _installed:
        _installed.pop()[1].undo()
    usage.forget()


def installed() -> str:
    """Return the kind that is installed, "off" where none is."""
    return _installed[-1][0] if _installed else OFF


def used() -> list[str]:
    """Return what user code asked the stand-in for so far, as sorted short words.

    The words are stable: "autocast", "device" (of a tensor), "device argument", "generator",
    "is_cuda", "is_npu", "move" (`.cuda()`, `.npu()`, `.to(device)`), "torch.cuda", "torch.npu",
    "torch_npu", "torch.accelerator", "transfer_to_npu", "triton.driver", "do_bench", "warmup",
    "language.extra", "pin_memory", "cann".
    """
    return usage.words()

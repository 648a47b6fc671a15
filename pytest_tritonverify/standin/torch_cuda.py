"""torch.cuda under the stand-in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import device_module, facts, torch_cuda_parts, usage

if TYPE_CHECKING:
    from pytest_tritonverify.standin.accelerator import Accelerator
    from pytest_tritonverify.standin.patches import Patches

_WORD = "torch.cuda"


def install(accelerator: Accelerator, patches: Patches) -> None:
    """Answer for torch.cuda where the accelerator is one.

    The functions are put in place for an NPU too, where they do what torch's own do until
    `torch_npu.contrib.transfer_to_npu` is imported: whoever looks for functions that user code
    has changed must not find this.
    """
    for name, answer in device_module.names(accelerator).items():
        own = getattr(torch.cuda, name, None)
        if own is None and accelerator.kind != "cuda":
            continue
        patches.set(torch.cuda, name, _asked(accelerator, name, answer, own))
    if accelerator.kind != "cuda":
        return
    torch_cuda_parts.install(accelerator, patches)
    # Generated code imports these from there.
    patches.set(torch._C, "_cuda_getCurrentRawStream", lambda *_: 0)
    patches.set(torch._C, "_cuda_getDevice", lambda: 0)
    patches.set(torch.version, "cuda", facts.CUDA_VERSION)
    patches.set(torch.backends.cuda, "is_built", lambda: True)
    # Torch's own modules would hand their weights to cuDNN.
    patches.set(torch.backends.cudnn, "is_acceptable", lambda _: False)
    guards = getattr(torch._C, "_dynamo", None)
    guards = getattr(guards, "guards", None)
    if hasattr(guards, "_empty_strided_cuda"):
        patches.set(guards, "_empty_strided_cuda", _empty_strided)


def _asked(accelerator: Accelerator, name: str, answer: Any, own: Any) -> Any:
    """Note that code asks, and leave the answer to torch where the accelerator is no such one."""
    if isinstance(answer, type):
        return answer if accelerator.kind == "cuda" else _switching(accelerator, answer, own)
    if not callable(answer):
        return answer if accelerator.kind == "cuda" else own

    @functools.wraps(answer)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if not accelerator.answers("cuda"):
            return own(*args, **kwargs)
        usage.note(_WORD)
        return answer(*args, **kwargs)

    asked.__name__ = name
    return asked


def _switching(accelerator: Accelerator, answer: type, own: Any) -> type:
    """Make a class that makes torch's objects until the accelerator is one of CUDA's name."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        if accelerator.answers("cuda"):
            return object.__new__(cls)
        return own(*args, **kwargs)

    return type(answer.__name__, (answer,), {"__new__": __new__, "word": _WORD})


def _empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype)

"""Let code that was written for CUDA run on the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._device import _device_constructors

import torch_npu

_NAMES = (
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "synchronize",
)


def _moved(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("cuda"):
        return value.replace("cuda", "npu")
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("npu", value.index)
    return value


def _wrapped(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_moved, args), **{key: _moved(v) for key, v in kwargs.items()})

    return call


def _install() -> None:
    for function in _device_constructors():
        name = getattr(function, "__name__", "")
        if getattr(torch, name, None) is function:
            setattr(torch, name, _wrapped(function))
    for kind in (torch.Tensor, torch.nn.Module):
        patched: Any = kind
        patched.to = _wrapped(patched.to)
        patched.cuda = patched.npu
    tensor: Any = torch.Tensor
    tensor.is_cuda = tensor.is_npu
    for name in _NAMES:
        setattr(torch.cuda, name, getattr(torch_npu.npu, name))


_install()

"""Memory of the emulated device: memory of the host that torch takes for the device's.

A tensor of the device is a plain `torch.Tensor` with a storage of its own, as on a real one. Torch
makes such tensors of foreign memory through DLPack, whose "external device" is its PrivateUse1.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

import torch

# From DLPack's header.
_EXTERNAL_DEVICE = 12
_UNSIGNED = 1


class _Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (
    ("dl_tensor", _Tensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _DELETER),
)

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

# By the address of its description, what a storage of the device stands on.
_alive: dict[int, tuple[Any, ...]] = {}


@dataclass
class Statistics:
    """Bytes in use, and the most that were.

    Attributes:
        limit: how much memory the device has.
    """

    allocated: int = 0
    peak: int = 0
    limit: int = int(os.environ.get("EMULATED_NPU_MEMORY", str(32 << 30)))


statistics = Statistics()


@_DELETER  # type: ignore[untyped-decorator,unused-ignore]
def _free(managed: Any) -> None:
    held = _alive.pop(ctypes.addressof(managed.contents), None)
    if held is not None:
        statistics.allocated -= held[-1]


def _mebi(size: int) -> str:
    return f"{size / 2**20:.2f} MiB" if size < 1 << 30 else f"{size / 2**30:.2f} GiB"


def _reserve(size: int) -> None:
    """Count an allocation, or refuse it in the words of torch_npu's allocator."""
    free = statistics.limit - statistics.allocated
    if size > free:
        used = _mebi(statistics.allocated)
        raise torch.OutOfMemoryError(
            f"NPU out of memory. Tried to allocate {_mebi(size)} (NPU 0; "
            f"{_mebi(statistics.limit)} total capacity; {used} already allocated; {used} current "
            f"active; {_mebi(free)} free; {used} reserved in total by PyTorch).If reserved memory "
            "is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
        )
    statistics.allocated += size
    statistics.peak = max(statistics.peak, statistics.allocated)


def on_device(host: torch.Tensor) -> torch.Tensor:
    """Return the memory of a flat uint8 tensor of the CPU as one of the device."""
    size = host.numel()
    _reserve(size)
    shape, strides = (ctypes.c_int64 * 1)(size), (ctypes.c_int64 * 1)(1)
    managed = _Managed()
    managed.dl_tensor = _Tensor(
        host.data_ptr(),
        _Device(_EXTERNAL_DEVICE, 0),
        1,
        _DataType(_UNSIGNED, 8, 1),
        shape,
        strides,
        0,
    )
    managed.deleter = _free
    address = ctypes.addressof(managed)
    _alive[address] = (managed, shape, strides, host, size)
    made: torch.Tensor = torch._C._from_dlpack(_new_capsule(address, b"dltensor", None))
    return made


def host_view(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the CPU on the memory of one of the device, which must outlive it."""
    storage = tensor.untyped_storage()
    made: torch.Tensor = torch.empty(0, dtype=tensor.dtype)
    if storage.nbytes():
        host: Any = torch._C._construct_storage_from_data_pointer(
            storage.data_ptr(), torch.device("cpu"), storage.nbytes()
        )
    else:
        host = made.untyped_storage()
    made.set_(host, tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        made = made.conj()
    return torch._neg_view(made) if tensor.is_neg() else made

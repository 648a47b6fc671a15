"""Operators of the emulated device: the CPU's, on the device's memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_npu import _faults, _memory, _profile

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_ALIASES = torch.library.Library("aten", "IMPL")
_OTHERS = torch.library.Library("_", "IMPL")
_OWN = torch.library.Library("npu", "DEF")
generator = torch.Generator()

# They only make another view of a storage, whatever it lies on.
_METADATA = (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "set_.source_Storage_storage_offset",
    "set_.source_Storage",
    "set_.source_Tensor",
    "view.dtype",
)


def _is_ours(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "npu"


def _to_host(value: Any) -> Any:
    if _is_ours(value):
        return _memory.host_view(value)
    if isinstance(value, torch.device) and value.type == "npu":
        return torch.device("cpu")
    return value


def _made_on_device(host: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the device that takes over the memory of a new one of the CPU."""
    if host.is_conj() or host.is_neg():
        host = host.resolve_conj().resolve_neg()
    size = host.untyped_storage().nbytes()
    flat = torch.empty(0, dtype=torch.uint8).set_(host.untyped_storage(), 0, (size,), (1,))
    made = _memory.on_device(flat)
    return _shown(made.untyped_storage(), host)


def _shown(storage: Any, like: torch.Tensor) -> torch.Tensor:
    """Return a storage of the device as a tensor with the geometry of another one."""
    empty = _memory.on_device(torch.empty(0, dtype=torch.uint8))
    if like.dtype != torch.uint8:
        empty = torch.ops.aten.view.dtype.redispatch(_CPU, empty, like.dtype)
    return torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        _CPU, empty, storage, like.storage_offset(), list(like.size()), list(like.stride())
    )


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator of the CPU on the device's memory."""
    _faults.raise_pending()
    _faults.refuse(op)
    host_args, host_kwargs = pytree.tree_map(_to_host, (args, kwargs))
    leaves = (pytree.tree_leaves(tree) for tree in ((args, kwargs), (host_args, host_kwargs)))
    pairs = [(ours, host) for ours, host in zip(*leaves, strict=True) if _is_ours(ours)]
    if any(a.name == "generator" for a in op._schema.arguments):
        host_kwargs.setdefault("generator", generator)
        if host_kwargs["generator"] is None:
            host_kwargs["generator"] = generator
    before = {id(host): _geometry(host) for _, host in pairs}
    with _profile.kernel_of_cann(op):
        result = op(*host_args, **host_kwargs)
    for ours, host in pairs:
        if _geometry(host) != before[id(host)]:
            _follow_resize(ours, host)
    return pytree.tree_map(lambda value: _from_host(value, pairs), result)


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.untyped_storage().data_ptr(), tensor.size(), tensor.stride()


def _follow_resize(ours: torch.Tensor, host: torch.Tensor) -> None:
    """Let a tensor of the device follow the CPU's, which an operator has given another size."""
    made = _made_on_device(host)
    torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        _CPU, ours, made.untyped_storage(), 0, list(host.size()), list(host.stride())
    )


def _from_host(value: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return value
    for ours, host in pairs:
        if value is host:
            return ours
    address = value.untyped_storage().data_ptr()
    for ours, _ in pairs:
        if address and ours.untyped_storage().data_ptr() == address:
            return _shown(ours.untyped_storage(), value)
    return _made_on_device(value)


def _empty(
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    shaped = {} if memory_format is None else {"memory_format": memory_format}
    return _made_on_device(torch.empty(size, dtype=dtype, layout=layout, **shaped))


def _empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> torch.Tensor:
    return _made_on_device(torch.empty_strided(size, stride, dtype=dtype, layout=layout))


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    _faults.raise_pending()
    with _profile.kernel_of_cann(torch.ops.aten.copy_.default):
        _to_host(target).copy_(_to_host(source))
    return target


def _convolution(*args: Any) -> torch.Tensor:
    made: torch.Tensor = torch.ops.aten.convolution.default(*map(_to_host, args))
    return _made_on_device(made)


def _resize(tensor: torch.Tensor, size: Any, *, memory_format: Any = None) -> torch.Tensor:
    host = torch.empty(size, dtype=tensor.dtype)
    needed = host.untyped_storage().nbytes() + tensor.storage_offset() * tensor.element_size()
    storage, offset = tensor.untyped_storage(), tensor.storage_offset()
    if needed > storage.nbytes():
        grown = torch.empty(needed, dtype=torch.uint8)
        kept = _memory.host_view(tensor).untyped_storage()
        grown[: kept.nbytes()].set_(grown.untyped_storage(), 0, (kept.nbytes(),), (1,)).copy_(
            torch.empty(0, dtype=torch.uint8).set_(kept)
        )
        storage = _memory.on_device(grown).untyped_storage()
    return torch.ops.aten.set_.source_Storage_storage_offset.redispatch(
        _CPU, tensor, storage, offset, list(host.size()), list(host.stride())
    )


def _redispatched(name: str) -> Any:
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return op.redispatch(_CPU, *args, **kwargs)

    return kernel


def install() -> None:
    """Give torch the operators of the device."""
    _OTHERS.fallback(_run, "PrivateUse1")
    for name in _METADATA:
        _ALIASES.impl(name, _redispatched(name), "PrivateUse1")
    _ALIASES.impl("empty.memory_format", _empty, "PrivateUse1")
    _ALIASES.impl("empty_strided", _empty_strided, "PrivateUse1")
    _ALIASES.impl("copy_", _copy, "PrivateUse1")
    _ALIASES.impl("resize_", _resize, "PrivateUse1")
    _ALIASES.impl("convolution_overrideable", _convolution, "PrivateUse1")
    # One of the operators that only the device has.
    _OWN.define("npu_swiglu(Tensor self, int dim=-1) -> Tensor")
    _OWN.impl("npu_swiglu", _swiglu, "PrivateUse1")


def _swiglu(tensor: torch.Tensor, dim: int = -1) -> torch.Tensor:
    gate, value = tensor.chunk(2, dim)
    return torch.nn.functional.silu(gate) * value

"""Calls of torch that name a device or ask for one.

Torch's own hook for calls, a function mode, sees them all: functions, methods and attributes of
tensors, from wherever they were imported. Operators run as they are, on the CPU.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device as default_device

from pytest_tritonverify.standin import usage
from pytest_tritonverify.standin.accelerator import CPU, Accelerator, is_host
from pytest_tritonverify.standin.host_memory import same_memory, tensors_in
from pytest_tritonverify.standin.refusals import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    _Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

# These keep the memory, or at least the device, of a tensor that they are given.
_FROM_TENSORS = (torch.as_tensor, torch.asarray, torch.tensor)
_MOVES_MODULES = "torch.nn.modules.module"
_NAMED = {"cuda": "torch.cuda.", "npu": "torch.npu."}


class StandinMode(TorchFunctionMode):
    """Answers for a tensor's device, and runs on the CPU what names the accelerator."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()
        self._accelerator = accelerator
        self._host = accelerator.host
        self._ours = usage.our_folder()
        self._constructors = frozenset(default_device._device_constructors())  # noqa: SLF001 - torch offers no other list
        tensor = torch.Tensor
        self._handlers: dict[Any, _Handler] = {
            _getter("device"): self._device,
            _getter("is_cuda"): self._is_cuda,
            _getter("is_cpu"): self._is_cpu,
            tensor.get_device: self._get_device,
            tensor.to: self._to,
            tensor.cuda: self._cuda,
            tensor.cpu: self._cpu,
            tensor.type: self._type,
            tensor.pin_memory: self._pin,
            tensor.is_pinned: self._is_pinned,
            torch._C._nn._parse_to: self._parse_to,  # noqa: SLF001 - what `Module.to` calls
            tensor.set_: lambda func, args, kwargs: func(*args, **kwargs),
        }
        for name in ("get_device", "is_pinned", "pin_memory"):
            if hasattr(torch, name):
                self._handlers[getattr(torch, name)] = self._handlers[getattr(tensor, name)]

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(self._ours):
            return func(*args, **(kwargs or {}))
        handler = self._handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs or {})
        return self._call(func, args, kwargs or {})

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = kwargs.get("device")
        if device is not None and self._accelerator.is_meant(device):
            usage.note("device argument")
            result = func(*args, **{**self._unpinned(kwargs), "device": CPU})
            for given in tensors_in(args):
                if isinstance(result, torch.Tensor) and same_memory(given, result):
                    return self._moved(given, result)
            return result
        pinned = kwargs.get("pin_memory")
        if device is None and not pinned and func not in self._constructors:
            if not self._host:
                return func(*args, **kwargs)
            ends_on_host = self._host.holds_all(tensors_in((*args, *kwargs.values())))
        else:
            ends_on_host = self._is_for_host(func, args, device)
        result = func(*args, **self._unpinned(kwargs))
        if ends_on_host:
            for tensor in tensors_in((result,)):
                if not self._host.holds(tensor):
                    self._host.add(tensor, pinned=bool(pinned))
        return result

    def _is_for_host(self, func: Any, args: tuple[Any, ...], device: Any) -> bool:
        if device is not None:
            return is_host(device)
        if func in _FROM_TENSORS and any(True for _ in tensors_in(args)):
            return self._host.holds_all(tensors_in(args))
        default = default_device.CURRENT_DEVICE
        return default is None or not self._accelerator.is_meant(default)

    def _unpinned(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        if kwargs.get("pin_memory"):
            usage.note("pin_memory")
            return {**kwargs, "pin_memory": False}
        return kwargs

    def _truly_on_cpu(self, tensor: Any) -> bool:
        return bool(torch.Tensor.device.__get__(tensor).type == "cpu")

    def _is_on(self, tensor: Any) -> bool:
        return self._truly_on_cpu(tensor) and self._accelerator.holds(tensor)

    def _device(self, func: Any, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
        device = func(*args)
        if device.type != "cpu" or not self._accelerator.holds(args[0]):
            return device
        usage.note("device")
        return self._accelerator.device

    def _is_cuda(self, func: Any, args: tuple[Any, ...], _: dict[str, Any]) -> bool:
        if not self._accelerator.answers("cuda"):
            return bool(func(*args))
        usage.note("is_cuda")
        return self._is_on(args[0])

    def is_npu(self, tensor: torch.Tensor) -> bool:
        """Answer for the attribute that torch_npu adds to tensors."""
        usage.note("is_npu")
        with torch._C.DisableTorchFunction():
            return self._is_on(tensor)

    def _is_cpu(self, func: Any, args: tuple[Any, ...], _: dict[str, Any]) -> bool:
        return bool(func(*args)) and not self._accelerator.holds(args[0])

    def _get_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        tensor = args[0] if args else kwargs["input"]
        return 0 if self._is_on(tensor) else int(func(*args, **kwargs))

    def _to(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor, *rest = args
        place: Any = kwargs.get("device")
        other = kwargs.get("other", rest[0] if rest else None)
        if isinstance(other, torch.Tensor):
            place = CPU if self._host.holds(other) else self._accelerator.device
        elif place is None and rest and not isinstance(rest[0], torch.dtype):
            place = rest[0]
        if place is None or not self._truly_on_cpu(tensor):
            return self._call(func, args, kwargs)
        to_accelerator = self._accelerator.is_meant(place)
        if not to_accelerator and not is_host(place):
            return func(*args, **kwargs)
        if not isinstance(other, torch.Tensor):
            if "device" in kwargs:
                kwargs = {**kwargs, "device": CPU}
            else:
                args = (tensor, CPU, *rest[1:])
        result = func(*args, **kwargs)
        return self._moved(tensor, result) if to_accelerator else self._fetched(tensor, result)

    def _parse_to(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Torch looks for the accelerator that a mere number belongs to.
        if args and isinstance(args[0], int) and self._accelerator.is_meant(args[0]):
            args = (self._accelerator.device, *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs = {**kwargs, "device": self._accelerator.device}
        return func(*args, **kwargs)

    def _cuda(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._accelerator.answers("cuda"):
            return func(*args, **kwargs)
        return self.move(*args, **kwargs)

    def move(
        self,
        tensor: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,  # noqa: FBT001, FBT002 - torch's signature
        memory_format: torch.memory_format = torch.preserve_format,
        **_: Any,
    ) -> torch.Tensor:
        """Bring a tensor to the accelerator, as `.cuda()` and `.npu()` do."""
        if device is not None and not self._accelerator.is_meant(device):
            raise refuse(f"device {device}")
        del non_blocking
        result = tensor
        if memory_format is not torch.preserve_format:
            result = tensor.contiguous(memory_format=memory_format)
        return self._moved(tensor, result)

    def _moved(self, tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        """Return what a move to the accelerator yields: new memory, if it wasn't there."""
        usage.note("move")
        if not self._host.holds(tensor):
            return result
        if same_memory(tensor, result):
            result = result.clone()
        self._host.discard(result)
        return result

    def _cpu(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        return self._fetched(args[0], result) if self._truly_on_cpu(args[0]) else result

    def _fetched(self, tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        """Return what a move to the host yields: new memory, if it wasn't there."""
        # Depth 3: the handler that called, the mode, and who called torch.
        if sys._getframe(3).f_globals.get("__name__") == _MOVES_MODULES:
            # Whoever builds a model on the CPU moves it there, and that is the accelerator here.
            self._host.discard(result)
            return result
        if not self._host.holds(tensor) and same_memory(tensor, result):
            result = result.clone()
        self._host.add(result)
        return result

    def _type(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor, *rest = args
        wanted = rest[0] if rest else kwargs.get("dtype")
        prefix = _NAMED[self._accelerator.kind]
        if wanted is None:
            name = str(func(*args, **kwargs))
            return name.replace("torch.", prefix, 1) if self._is_on(tensor) else name
        if isinstance(wanted, str) and wanted.startswith(prefix):
            result = func(tensor, wanted.replace(prefix, "torch.", 1))
            return self._moved(tensor, result)
        return self._call(func, args, kwargs)

    def _pin(self, _func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        usage.note("pin_memory")
        tensor: torch.Tensor = args[0] if args else kwargs["input"]
        if self._host.pinned(tensor):
            return tensor
        copy = tensor.clone()
        self._host.add(copy, pinned=True)
        return copy

    def _is_pinned(self, _func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return self._host.pinned(args[0] if args else kwargs["input"])


def _getter(name: str) -> Any:
    return getattr(torch.Tensor, name).__get__

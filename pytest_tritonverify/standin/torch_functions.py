"""What in torch names a device without being a call that its function mode sees."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _device as default_device

from pytest_tritonverify.standin import usage
from pytest_tritonverify.standin.accelerator import CPU, Accelerator
from pytest_tritonverify.standin.refusals import refuse, refusing

if TYPE_CHECKING:
    from pytest_tritonverify.standin.patches import Patches
    from pytest_tritonverify.standin.torch_devices import StandinMode

_LIBRARIES_OF_DEVICES = ("nccl", "hccl", "lccl")


def install(accelerator: Accelerator, mode: StandinMode, patches: Patches) -> None:
    """Let these functions and classes know the stand-in."""
    _default_devices(accelerator, type(mode), patches)
    _generators(accelerator, patches)
    _autocast(accelerator, patches)
    _threads(type(mode), accelerator, patches)
    _accelerator_module(accelerator, patches)
    # Torch refuses streams that aren't its own before it asks a mode.
    patches.set(torch.Tensor, "record_stream", lambda *_: None)
    load = torch.load

    @functools.wraps(load)
    def loading(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, (str, torch.device)) and accelerator.is_meant(map_location):
            map_location = CPU
        return load(f, map_location, *args, **kwargs)

    patches.set(torch, "load", loading)
    patches.set(torch, "compile", _compile)
    if torch.distributed.is_available():
        _distributed(patches)


# Torch says nothing of its types.
_stack: Any = _get_current_function_mode_stack


def _stands_below(mode: type) -> bool:
    """Whether a mode of this type is still to see the call that is under way."""
    return any(isinstance(below, mode) for below in _stack())


def _default_devices(accelerator: Accelerator, mode: type, patches: Patches) -> None:
    """`with torch.device("cuda")` and `torch.set_default_device("cuda")`."""
    context = default_device.DeviceContext
    construct: Any = context.__torch_function__

    def __torch_function__(  # noqa: N807 - stands for it
        self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if accelerator.is_meant(self.device) and not _stands_below(mode):
            # The stand-in's mode has seen the call, and has decided where the result is.
            return func(*args, **(kwargs or {}))
        return construct(self, func, types, args, kwargs)

    patches.set(context, "__torch_function__", __torch_function__)
    set_type = torch.set_default_tensor_type

    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        prefix = f"torch.{accelerator.kind}."
        if name.startswith(prefix):
            usage.note("device argument")
            set_type(name.replace(prefix, "torch.", 1))
            torch.set_default_device(accelerator.device)
        else:
            set_type(kind)

    patches.set(torch, "set_default_tensor_type", set_default_tensor_type)


def _generators(accelerator: Accelerator, patches: Patches) -> None:
    real = torch.Generator

    class _Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    class Generator(metaclass=_Kind):
        def __new__(cls, device: Any = "cpu") -> Any:
            if accelerator.is_meant(device):
                usage.note("generator")
                device = CPU
            return real(device=device)

    Generator.__module__, Generator.__doc__ = "torch", real.__doc__
    patches.set(torch, "Generator", Generator)


def _autocast(accelerator: Accelerator, patches: Patches) -> None:
    """Autocasting of the accelerator's operators is that of the CPU's."""
    autocast = torch.amp.autocast_mode.autocast
    construct = autocast.__init__

    @functools.wraps(construct)
    def __init__(  # noqa: N807 - stands for it
        self: Any,
        device_type: str,
        dtype: torch.dtype | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if accelerator.is_meant(device_type):
            usage.note("autocast")
            # What torch takes for cuda and npu; the CPU's own default is bfloat16.
            device_type, dtype = "cpu", dtype or torch.float16
        construct(self, device_type, dtype, *args, **kwargs)

    patches.set(autocast, "__init__", __init__)
    enabled = torch.is_autocast_enabled
    modern = hasattr(torch, "get_autocast_dtype")  # which knows device types

    def is_autocast_enabled(device_type: str = accelerator.kind) -> bool:
        if modern:
            return enabled("cpu" if accelerator.is_meant(device_type) else device_type)
        return bool(torch.is_autocast_cpu_enabled())

    patches.set(torch, "is_autocast_enabled", is_autocast_enabled)
    if modern:
        get_dtype = torch.get_autocast_dtype

        def get_autocast_dtype(device_type: str) -> torch.dtype:
            return get_dtype("cpu" if accelerator.is_meant(device_type) else device_type)

        patches.set(torch, "get_autocast_dtype", get_autocast_dtype)
    patches.set(torch, "get_autocast_gpu_dtype", torch.get_autocast_cpu_dtype)


def _threads(make_mode: Any, accelerator: Accelerator, patches: Patches) -> None:
    """Function modes belong to a thread; user code's threads have the accelerator too."""
    run = threading.Thread.run

    def running(self: threading.Thread) -> None:
        with make_mode(accelerator):
            run(self)

    patches.set(threading.Thread, "run", running)


def _accelerator_module(accelerator: Accelerator, patches: Patches) -> None:
    """torch.accelerator (torch 2.6), which speaks of the accelerator without naming it."""
    module_of = getattr(torch, "get_device_module", None)
    if module_of is not None:

        @functools.wraps(module_of)
        def get_device_module(device: Any = None) -> Any:
            if device is not None and not accelerator.is_meant(device):
                return module_of(device)
            usage.note("torch.accelerator")
            return getattr(torch, accelerator.kind)

        patches.set(torch, "get_device_module", get_device_module)
    module = getattr(torch, "accelerator", None)
    if module is None:
        return

    def answer(name: str, value: Any) -> None:
        def answering(*_: Any, **__: Any) -> Any:
            usage.note("torch.accelerator")
            return value

        if hasattr(module, name):
            patches.set(module, name, answering)

    answer("is_available", value=True)
    answer("device_count", value=1)
    answer("current_accelerator", torch.device(accelerator.kind))
    for name in ("current_device_index", "current_device_idx"):
        answer(name, value=0)
    for name in ("set_device_index", "set_device_idx", "synchronize", "empty_cache"):
        answer(name, None)


class _Uncompiled:
    """What torch.compile returns: it can be kept and asked, but not run."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise refuse("torch.compile")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Stand for torch.compile, which would compile for the CPU instead."""
    del args
    if model is None:
        return lambda model: _compile(model, **kwargs)
    if kwargs.get("disable") or kwargs.get("backend") == "eager":
        return model
    return _Uncompiled(model)


def _distributed(patches: Patches) -> None:
    init = torch.distributed.init_process_group

    @functools.wraps(init)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if backend is not None and any(x in str(backend) for x in _LIBRARIES_OF_DEVICES):
            raise refuse(f"torch.distributed's {backend}")
        return init(backend, *args, **kwargs)

    patches.set(torch.distributed, "init_process_group", init_process_group)


def refuse_extensions(module: Any, patches: Patches) -> None:
    """Refuse to build extensions in CUDA C++, when torch.utils.cpp_extension is imported."""
    for name in ("load", "load_inline"):
        patches.set(module, name, refusing(f"torch.utils.cpp_extension.{name}"))

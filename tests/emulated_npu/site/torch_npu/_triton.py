"""Triton on the emulated device: launches run on Triton's interpreter, in the device's memory.

The interpreter is not what it is elsewhere: kernels are `JITFunction`s here as on every device, and
only the last step of a launch, which would hand a binary to the device, is another one.
"""

from __future__ import annotations

import importlib.util
import math
import os
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

import torch_npu
from torch_npu import _faults, _memory, _profile

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET = "Ascend910B4"
# Options that triton-ascend's compiler takes beside those of `num_warps` and the like.
_WORDS = """
    num_warps num_stages num_ctas debug multibuffer enable_auto_bind_sub_block unit_flag
    limit_auto_multi_buffer_only_for_local_buffer set_workspace_multibuffer
    tile_mix_vector_loop tile_mix_cube_loop enable_hivm_auto_cv_balance
"""
_OPTIONS = frozenset(_WORDS.split())


class _Utils:
    def get_device_properties(self, device: Any = 0) -> dict[str, int]:
        return {"max_shared_mem": 1, "num_aicore": 20, "num_vectorcore": 40}

    def get_aicore_num(self) -> int:
        return 20

    def get_aivector_core_num(self) -> int:
        return 40

    def get_arch(self) -> str:
        return TARGET


class Driver:
    """What triton-ascend's driver answers."""

    def __init__(self) -> None:
        self.utils = _Utils()

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("npu", TARGET, 0)

    def get_current_device(self) -> int:
        return int(torch_npu.npu.current_device())

    def set_current_device(self, device: int) -> None:
        torch_npu.npu.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("npu", self.get_current_device())

    def get_device_interface(self) -> Any:
        return torch_npu.npu

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def bench(call: Callable[[], object], quantiles: Any = None, **_: Any) -> list[float]:
            call()
            call()
            torch_npu.npu.synchronize()
            return [1.0] * len(quantiles or (0.5,))

        return bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1024, dtype=torch.int, device="npu")

    def clear_cache(self, cache: torch.Tensor) -> None:
        cache.zero_()


def install() -> None:
    """Make the emulated device Triton's."""
    if importlib.util.find_spec("triton") is None:
        return
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    if not os.environ.get("EMULATED_NPU_WITHOUT_TRITON"):
        driver.set_active(Driver())
    JITFunction.run = _run
    JITFunction.__call__ = _called_inside


def _interpreted(kernel: Any) -> Any:
    from triton.runtime.interpreter import InterpretedFunction

    if not hasattr(kernel, "_emulated"):
        _prepare()
        kernel._emulated = InterpretedFunction(kernel.fn)
    return kernel._emulated


_prepared: list[bool] = []


def _prepare() -> None:
    """Put right what the interpreter does otherwise than any device; tuners stay as they are."""
    if _prepared:
        return
    _prepared.append(True)
    from pytest_tritonverify import interpreter
    from pytest_tritonverify.interpreter import autotune

    take, autotune.take_first_configuration = autotune.take_first_configuration, lambda: None
    try:
        interpreter.prepare()
    finally:
        autotune.take_first_configuration = take


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device.type != "npu":
            # The words of triton-ascend's launcher for an address that is none of the device's.
            raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
        return _memory.host_view(value)
    if type(value).__name__ == "TensorDescriptor":
        return replace(value, base=_on_host(value.base))
    if isinstance(value, tuple):
        return (
            type(value)(*map(_on_host, value))
            if hasattr(value, "_fields")
            else tuple(map(_on_host, value))
        )
    return value


def _run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
    torch_npu.npu._lazy_init()
    _faults.raise_pending()
    for name in kwargs:
        if name not in _OPTIONS and name not in self.arg_names:
            raise KeyError(f"Keyword argument {name} was specified but unrecognised")
    for hook in self.pre_run_hooks:
        hook(*args, **kwargs)
    if warmup:
        return SimpleNamespace(metadata=SimpleNamespace(name=self.fn.__name__, target=TARGET))
    counted: list[tuple[int, ...]] = [()]

    def counting(arguments: Any) -> tuple[int, ...]:
        axes = grid(arguments) if callable(grid) else grid
        counted[0] = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        return counted[0]

    started = time.perf_counter()
    named = {name: _on_host(value) for name, value in kwargs.items() if name in self.arg_names}
    _interpreted(self).run(*map(_on_host, args), grid=counting, warmup=False, **named)
    name = self.fn.__name__
    _profile.ran(name, name, started, math.prod(map(int, counted[0])))
    _faults.launched(name)
    return None


def _called_inside(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a function that a kernel calls."""
    from pytest_tritonverify.interpreter import launching

    if not launching.running():
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    return _interpreted(self)(*args, **kwargs)

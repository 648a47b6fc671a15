"""What Triton's driver says of the device, and what compiled kernels say of themselves."""

from __future__ import annotations

import functools
import inspect
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import facts, usage
from pytest_tritonverify.standin.host_memory import tensors_in
from pytest_tritonverify.standin.refusals import StandinAttributeError, refusing, sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.standin.accelerator import Accelerator
    from pytest_tritonverify.standin.patches import Patches

_WORD = "triton.driver"
_NOT_COMPILED = ("load_binary", "unload_module", "launch", "fill_tma_descriptor")


class Driver:
    """The active driver of Triton. Nothing is ever compiled for it or launched through it."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self.utils = _Utils(accelerator)

    def get_current_target(self) -> Any:
        """Return backend, architecture and warp size."""
        from triton.backends.compiler import GPUTarget

        usage.note(_WORD)
        if self._accelerator.kind == "npu":
            return GPUTarget("npu", facts.NPU_NAME, 0)
        major, minor = facts.CUDA_CAPABILITY
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_current_device(self) -> int:
        """Return the device's number."""
        usage.note(_WORD)
        return 0

    def set_current_device(self, device: int) -> None:
        """Choose a device; there is one."""
        self._accelerator.is_meant(device)

    def get_current_stream(self, device: Any = None) -> int:
        """Return the default stream's handle."""
        del device
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Return the compute capability."""
        del device
        usage.note(_WORD)
        return facts.CUDA_CAPABILITY if self._accelerator.kind == "cuda" else (0, 0)

    def get_active_torch_device(self) -> torch.device:
        """Return the device in torch's terms."""
        usage.note(_WORD)
        return self._accelerator.device

    def get_device_interface(self) -> Any:
        """Return the device's module in torch."""
        return getattr(torch, self._accelerator.kind)

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return what times a function."""
        import triton.testing

        benchmarker: Callable[..., Any] = triton.testing.do_bench
        return benchmarker

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return memory to clear between two measurements; there is no cache to fill."""
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Clear that memory."""
        cache.zero_()

    @staticmethod
    def is_active() -> bool:
        """Say that it can be used."""
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise StandinAttributeError(sentence(f"triton.runtime.driver.active.{name}"))


class _Utils:
    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        for name in _NOT_COMPILED:
            setattr(self, name, refusing(f"triton.runtime.driver.active.utils.{name}"))

    def get_device_properties(self, device: Any = 0) -> dict[str, Any]:
        usage.note(_WORD)
        self._accelerator.is_meant(device)
        return facts.driver_properties(self._accelerator.kind)

    def get_aicore_num(self) -> int:
        usage.note(_WORD)
        return facts.NpuProperties().cube_core_num

    def get_aivector_core_num(self) -> int:
        usage.note(_WORD)
        return facts.NpuProperties().vector_core_num

    def get_arch(self) -> str:
        usage.note(_WORD)
        return facts.NPU_NAME


def install(accelerator: Accelerator, patches: Patches) -> None:
    """Make the driver the active one, and complete the interpreter's launches."""
    import triton.testing
    from triton.runtime import interpreter
    from triton.runtime.driver import driver

    before = dict(vars(driver))
    patches.later(lambda: (vars(driver).clear(), vars(driver).update(before)))
    driver.set_active(Driver(accelerator))
    patches.set(triton.testing, "do_bench", _do_bench)
    for name in ("do_bench_cudagraph", "do_bench_npu"):
        if hasattr(triton.testing, name):
            patches.set(triton.testing, name, refusing(f"triton.testing.{name}"))
    executor = interpreter.GridExecutor
    patches.set(executor, "__call__", _launching(accelerator, executor.__call__))
    _complete_launches(interpreter.InterpretedFunction, patches)


def _complete_launches(function: Any, patches: Patches) -> None:
    """Let `warmup` return something on kernels of the interpreter."""
    if hasattr(function, "run"):
        patches.set(function, "run", _running(function.run))
        return
    # Before triton 3.4 each kernel gets a `run` of its own when it is made, and has no `warmup`.
    original = function.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        original(self, *args, **kwargs)
        run = self.run

        def as_of_class(_self: Any, *args: Any, **kwargs: Any) -> Any:
            return run(*args, **kwargs)

        self.run = functools.partial(_running(as_of_class), self)

    def warmup(self: Any, *args: Any, grid: Any, **kwargs: Any) -> Any:
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    patches.set(function, "__init__", __init__)
    patches.set(function, "warmup", warmup)


def _launching(accelerator: Accelerator, launch: Any) -> Any:
    """Let the interpreter see the truth, and keep kernels from the host's memory."""

    @functools.wraps(launch)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        if accelerator.host:
            _refuse_host_memory(accelerator, self.fn, args, kwargs)
        grid = self.grid
        if callable(grid):
            self.grid = _as_user(grid)
        try:
            with torch._C.DisableTorchFunction():
                return launch(self, *args, **kwargs)
        finally:
            self.grid = grid

    return __call__


def _as_user(grid: Callable[..., Any]) -> Callable[..., Any]:
    enable = getattr(torch._C, "_EnableTorchFunction", None)
    if enable is None:
        return grid

    def evaluated(arguments: Any) -> Any:
        with enable():
            return grid(arguments)

    return evaluated


def _refuse_host_memory(
    accelerator: Accelerator, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    names = list(inspect.signature(function).parameters)
    named = {**dict(zip(names, args, strict=False)), **kwargs}
    for name, value in named.items():
        for tensor in tensors_in((getattr(value, "base", value),)):
            if accelerator.host.holds(tensor) and not accelerator.host.pinned(tensor):
                place = names.index(name) if name in names else name
                # The first sentence is the one that devices say.
                raise ValueError(
                    f"Pointer argument (at {place}) cannot be accessed from Triton (cpu tensor?): "
                    f"argument {name!r} of {function.__name__} was made on the CPU and never "
                    f"moved to the accelerator; create it with device=x.device, or move it"
                )


class _Compiled:
    """What a kernel's `warmup` returns: some facts, and a way to launch it."""

    n_regs = 32
    n_spills = 0
    hash = "standin"

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function = function
        names = function.arg_names
        constants = {**dict(zip(names, args, strict=False)), **kwargs}
        self._constants = {
            name: value
            for name, value in constants.items()
            if name in names and not hasattr(value, "data_ptr")
        }
        self.name = function.__name__
        self.metadata = SimpleNamespace(
            shared=0,
            name=self.name,
            num_warps=kwargs.get("num_warps", 4),
            num_stages=kwargs.get("num_stages", 3),
            num_ctas=1,
        )

    def _init_handles(self) -> None:
        """Nothing is to be loaded."""

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **kwargs: Any) -> Any:
            given = self._function.arg_names[: len(args)]
            rest = {k: v for k, v in self._constants.items() if k not in given}
            return self._function[grid](*args, **{**rest, **kwargs})

        return launch


def _running(run: Any) -> Any:
    @functools.wraps(run)
    def running(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        if warmup:
            usage.note("warmup")
            return _Compiled(self, args, kwargs)
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    return running


def _do_bench(
    fn: Callable[[], Any],
    *_: Any,
    quantiles: Any = None,
    return_mode: str = "mean",
    **__: Any,
) -> Any:
    """Run a function once, and return its wall time in milliseconds as triton's do_bench does."""
    usage.note("do_bench")
    started = time.perf_counter()
    fn()
    spent = 1000 * (time.perf_counter() - started)
    if quantiles is not None:
        return [spent] * len(quantiles) if len(quantiles) > 1 else spent
    return [spent] if return_mode == "all" else spent

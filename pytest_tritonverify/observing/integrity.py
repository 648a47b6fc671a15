"""Whether what is called is what was read: the entry point, and functions that others rely on."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from types import CodeType, FunctionType
from typing import Any

import torch

from pytest_tritonverify.evidence import codes

_MOST_WRAPPERS = 16
_MOST_HOOKS = 64

# Functions that measure, compare, allocate, copy, seed, call or launch.
WATCHED = (
    *(
        f"torch.{name}"
        for name in (
            "allclose",
            "arange",
            "are_deterministic_algorithms_enabled",
            "as_tensor",
            "empty",
            "empty_like",
            "empty_strided",
            "equal",
            "from_numpy",
            "full",
            "isclose",
            "isnan",
            "manual_seed",
            "ones",
            "tensor",
            "zeros",
            "zeros_like",
            "Tensor.__eq__",
            "Tensor.clone",
            "Tensor.contiguous",
            "Tensor.copy_",
            "Tensor.cpu",
            "Tensor.data_ptr",
            "Tensor.detach",
            "Tensor.item",
            "Tensor.numpy",
            "Tensor.to",
            "Tensor.tolist",
            "Tensor.untyped_storage",
            "UntypedStorage.nbytes",
            "autograd.profiler.profile.__enter__",
            "autograd.profiler.profile.__exit__",
            "cuda.Event.elapsed_time",
            "cuda.Event.record",
            "cuda.current_stream",
            "cuda.synchronize",
            "frombuffer",
            "nn.Module.__call__",
            "nn.Module.__init__",
            "nn.Module.__setattr__",
            "nn.Module._call_impl",
            "nn.Module.to",
            "overrides.TorchFunctionMode.__enter__",
            "testing.assert_close",
            "utils._python_dispatch.TorchDispatchMode.__enter__",
            "utils._python_dispatch.TorchDispatchMode.__exit__",
            "utils._python_dispatch._disable_current_modes",
        )
    ),
    "triton.cdiv",
    "triton.jit",
    "triton.next_power_of_2",
    "triton.runtime.autotuner.Autotuner.run",
    "triton.runtime.interpreter.GridExecutor.__call__",
    "triton.runtime.interpreter.InterpretedFunction.run",
    "triton.runtime.jit.JITFunction.run",
    "triton.runtime.jit.KernelInterface.__getitem__",
    "triton.testing.do_bench",
    *(f"builtins.{name}" for name in ("isinstance", "len", "range", "type", "getattr", "id")),
    *(f"time.{name}" for name in ("monotonic", "perf_counter", "perf_counter_ns", "time")),
    "hashlib.sha256",
    "json.dumps",
    "os.memfd_create",
    "os.pwrite",
    "sys._getframe",
)


class Snapshot:
    """The functions that are looked after, as they are at some moment."""

    def __init__(self) -> None:
        # The objects are kept, so that no other one can have their address.
        self._found = {name: _seen(name) for name in WATCHED}

    def changed(self) -> list[str]:
        """Return the names of those that are others now, or run other code.

        Each is followed by ` by ` and the file of what stands in its place.
        """
        found = []
        for name, before in self._found.items():
            now = _seen(name)
            # What was not there may be imported later on.
            if before[0] is not None and not _same(before, now):
                found.append(f"{name} by {_file_of(now[0])}")
        return found


def _same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(before, now, strict=True))


def _seen(name: str) -> tuple[object, object]:
    parts = name.split(".")
    # As attributes of loaded modules: looking must import nothing.
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None:
            found: Any = module
            for part in parts[length:]:
                found = (
                    vars(found).get(part) if isinstance(found, type) else getattr(found, part, None)
                )
            return found, getattr(found, "__code__", None)
    return None, None


def preload() -> None:
    """Import the modules whose functions are looked after: what is not there can't be watched."""
    names = ["triton.runtime.jit", "triton.runtime.autotuner", "triton.testing", "json"]
    if os.environ.get("TRITON_INTERPRET") == "1":
        names.append("triton.runtime.interpreter")
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def entry_facts(model: Any, model_class: Any) -> dict[str, Any]:
    """Describe what a call of the model runs, as plain data.

    Returns:
        `own_class`, `bound_on_instance`, `forward` and `call` (each `file`, `line`, `name`,
        `digest` and `wrappers`; of a function of torch's own only that it is), `hooks` (files of
        their functions), and `threads` (the number of Python's threads).
    """
    kind = type(model)
    facts: dict[str, Any] = {
        "own_class": kind is model_class,
        "bound_on_instance": sorted(
            {"forward", "__call__", "_call_impl", "_compiled_call_impl"}
            & {name for name, value in vars(model).items() if value is not None}
        )
        if hasattr(model, "__dict__")
        else [],
        "forward": _described(_looked_up(kind, "forward")),
        "call": _described(_looked_up(kind, "__call__")),
        "is_module": isinstance(model, torch.nn.Module),
        "call_is_torchs": _looked_up(kind, "__call__") is torch.nn.Module.__call__,
        "hooks": _hooks(model),
        "threads": threading.active_count(),
    }
    return facts


def _looked_up(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None


def _described(function: Any) -> dict[str, Any] | None:
    """Follow what decorators have wrapped around a function."""
    function = getattr(function, "__func__", function)
    wrappers = []
    for _ in range(_MOST_WRAPPERS):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        wrappers.append(_file_of(function))
        function = inner
    code = getattr(function, "__code__", None)
    if not isinstance(function, FunctionType) or not isinstance(code, CodeType):
        return None
    return {
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "name": code.co_name,
        "digest": codes.digest(code),
        "wrappers": wrappers,
    }


def _hooks(model: Any) -> list[str]:
    """Return the files of the functions that run before or after modules."""
    found: list[str] = []
    module = sys.modules["torch.nn.modules.module"]
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
        found += [_file_of(hook) for hook in dict(getattr(module, name, {})).values()]
    if isinstance(model, torch.nn.Module):
        for part in model.modules():
            for name in ("_forward_hooks", "_forward_pre_hooks"):
                found += [_file_of(hook) for hook in dict(vars(part).get(name, {})).values()]
    return found[:_MOST_HOOKS]


def _file_of(function: Any) -> str:
    function = getattr(function, "func", function)  # a partial
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        code = getattr(_looked_up(type(function), "__call__"), "__code__", None)
    return str(code.co_filename) if code is not None else "?"

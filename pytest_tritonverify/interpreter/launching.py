"""What a launch hands to a kernel: its arguments, its grid and its options."""

from __future__ import annotations

import copy
import difflib
import inspect
import operator
from typing import Any

import numpy as np

from pytest_tritonverify.interpreter.patching import missing, replace

_HOOKS = ("GridExecutor", "TensorHandle", "_get_np_dtype", "_implicit_cvt")
_EXECUTOR_HOOKS = ("__call__", "__init__", "_init_args_hst")

# Types that a parameter may be declared to have, as Triton shortens them, and their names in
# triton.language.
_DECLARED = {
    "u1": "int1",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"fp{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
}
# Options of devices that look like names which kernels give to their parameters.
_OPTIONS = {
    "debug",
    "enable_fp_fusion",
    "ir_override",
    "kpack",
    "matrix_instr_nonkdim",
    "maxnreg",
    "num_buffers_warp_spec",
    "num_consumer_groups",
    "num_ctas",
    "num_stages",
    "num_warps",
    "reg_dec_producer",
    "reg_inc_consumer",
    "waves_per_eu",
}

_NUMBERS: tuple[Any, ...] = (bool, int, float)

_running: list[Any] = []


def running() -> bool:
    """Whether a kernel is being run, so that functions of the language have a meaning."""
    return bool(_running)


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps launches from being made as a device makes them, if anything."""
    absent = missing(interpreter, _HOOKS)
    if not absent:
        absent = missing(interpreter.GridExecutor, _EXECUTOR_HOOKS)
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def install(interpreter: Any) -> None:
    """Correct the interpreter's module in place, without an `obstacle`."""
    executor = interpreter.GridExecutor
    replace(interpreter, "_implicit_cvt", lambda f: _converter(interpreter, f))
    replace(executor, "__init__", _with_constants)
    replace(executor, "_init_args_hst", lambda f: _with_declared_types(interpreter, f))
    replace(executor, "__call__", _with_plain_grid)


def _normalized(annotation: Any) -> str:
    from triton.runtime.jit import _normalize_ty

    if annotation is inspect.Parameter.empty or not annotation:
        return ""
    return str(_normalize_ty(annotation))


def _with_constants(original: Any) -> Any:
    """Know constants by the rule of devices, whatever the language is called in a module."""

    def __init__(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        original(self, fn, *args, **kwargs)
        parameters = inspect.signature(fn).parameters.values()
        self.constexprs = [p.name for p in parameters if "constexpr" in _normalized(p.annotation)]

    return __init__


class _DeclaredInt(int):
    kind: Any


class _DeclaredFloat(float):
    kind: Any


def _with_declared_types(interpreter: Any, original: Any) -> Any:
    """Give numbers the type that their parameter is declared to have, as devices do."""
    language = interpreter.tl

    def declared(function: Any) -> dict[str, Any]:
        kinds = {}
        for parameter in inspect.signature(function).parameters.values():
            # Versions differ in what they make of `tl.int64` itself.
            found = _normalized(parameter.annotation).rpartition(".")[2]
            name = _DECLARED.get(found, found)
            if name in _DECLARED.values():
                kinds[parameter.name] = getattr(language, name)
        return kinds

    def typed(value: Any, kind: Any) -> Any:
        if kind is None or not isinstance(value, _NUMBERS):
            return value
        if kind.is_floating():
            number: Any = _DeclaredFloat(value)
        else:
            number = _DeclaredInt(operator.index(value))
        number.kind = kind
        return number

    def _init_args_hst(self: Any, args: Any, kwargs: Any) -> Any:
        found, named = original(self, args, kwargs)
        kinds = declared(self.fn)
        if kinds:
            names = inspect.signature(self.fn).parameters
            found = [typed(x, kinds.get(name)) for name, x in zip(names, found, strict=False)]
            named = {name: typed(x, kinds.get(name)) for name, x in named.items()}
        return found, named

    return _init_args_hst


def _converter(interpreter: Any, original: Any) -> Any:
    """Make tensors of all numbers: a kernel may ask each for its type, or convert it."""
    language = interpreter.tl

    def tensor(value: Any, kind: Any) -> Any:
        dtype = interpreter._get_np_dtype(kind)  # noqa: SLF001 - the module is what is corrected
        # Numbers beyond the type wrap around, or become infinite.
        data = np.array([value]).astype(dtype)
        return language.tensor(interpreter.TensorHandle(data, kind), kind)

    def _implicit_cvt(arg: Any) -> Any:
        if isinstance(arg, (_DeclaredInt, _DeclaredFloat)):
            return tensor(arg.real, arg.kind)
        if isinstance(arg, bool):
            return tensor(arg, language.int1)
        if isinstance(arg, float):
            return tensor(arg, language.float32)
        converted = original(arg)
        if isinstance(arg, int):
            # Triton holds those from 2**31 to 2**32 in 32 bits and calls them 64 bits wide.
            return tensor(arg, converted.type)
        return converted

    return _implicit_cvt


def _with_plain_grid(original: Any) -> Any:
    """Hand a grid function what was passed to the launch, and take a list for a grid."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        signature = inspect.signature(self.fn)
        _refuse_misspelt(self.fn, signature, kwargs)
        executor = copy.copy(self)
        if callable(self.grid):
            known = {k: v for k, v in kwargs.items() if k in signature.parameters}
            bound = signature.bind(*args, **known)
            bound.apply_defaults()
            executor.grid = self.grid(dict(bound.arguments))
        if isinstance(executor.grid, list):
            executor.grid = tuple(executor.grid)
        # Older versions hand options of devices that they don't know to the kernel.
        given = {k: v for k, v in kwargs.items() if k in signature.parameters or k == "warmup"}
        _running.append(executor)
        try:
            return original(executor, *args, **given)
        finally:
            _running.remove(executor)

    return __call__


def _refuse_misspelt(function: Any, signature: inspect.Signature, kwargs: dict[str, Any]) -> None:
    """Refuse an argument that looks like a parameter which was left to its default.

    Devices refuse every name that is neither a parameter nor an option of theirs. The options of
    all devices are not known here, so that others are let through.

    Raises:
        TypeError: there is one.
    """
    left = {name.lower(): name for name in signature.parameters if name not in kwargs}
    for name in kwargs:
        if name in signature.parameters or name in _OPTIONS:
            continue
        close = difflib.get_close_matches(name.lower(), left, n=1, cutoff=0.8)
        if close:
            raise TypeError(
                f"{function.__name__} has no parameter {name!r}, and devices refuse the launch; "
                f"did you mean {left[close[0]]!r}?"
            )

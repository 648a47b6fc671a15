"""Arguments of a launch as plain data: what a compiler needs to know of each.

The data travels from the process that ran the implementation to the one that compiles its kernels,
which may have another interpreter and another Triton (`restoring` makes values of it there). A
tensor is only its type and its alignment. A number that is no constant is only what a compiler may
specialise on, so that launches that lead to the same code have the same data.
"""

from __future__ import annotations

import enum
import linecache
import math
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

Json = Any

SMALL = (1 << 31) - 1
"""Bytes up to which AMD's back end uses offsets of 32 bits."""

_ALIGNMENT = 16
# What is known of an integer that neither 16 nor 8 divides.
_ODD = 3
_MOST_ITEMS = 256
_MOST_DECORATOR_LINES = 1000
_LONGEST_TEXT = 4096
_DEEPEST = 6


def describe(value: Any, *, constant: bool, depth: int = 0) -> Json:
    """Describe an argument, an option or a variable of a kernel.

    Args:
        value: what was given.
        constant: its value matters, not only its type.
        depth: how many containers it stands in.
    """
    described = None
    if value is None or type(value) is bool:
        return value
    if depth <= _DEEPEST:
        for known in (_plain, _sequence, _of_torch, _of_triton, _of_numpy, _by_name):
            described = known(value, constant=constant, depth=depth)
            if described is not None:
                break
    return described or {"k": "opaque", "v": type(value).__qualname__[:200]}


def _plain(value: Any, *, constant: bool, depth: int) -> Json:
    del depth
    if type(value) is int:
        return {"k": "int", "v": value if constant else representative(value)}
    if isinstance(value, float):
        return {"k": "float", "v": (value if constant else 0.5).hex()}
    if type(value) is str and len(value) <= _LONGEST_TEXT:
        return {"k": "str", "v": value}
    return None


def representative(value: int) -> int:
    """Return a number that compilers treat as they treat this one.

    They look at its width (32 or 64 bits, or unsigned ones of 64), whether it is 1, and whether 16
    divides it; Triton before 3.2 also whether 8 does (`triton.backends.compiler.AttrsDescriptor`).
    """
    if value == 1:
        return 1
    least = next((n for n in (_ALIGNMENT, _ALIGNMENT // 2) if value % n == 0), _ODD)
    if -(1 << 31) <= value < 1 << 31:
        return least
    return ((1 << 32) if value < 1 << 63 else (1 << 63)) + least % _ALIGNMENT


def _sequence(value: Any, *, constant: bool, depth: int) -> Json:
    if not isinstance(value, (tuple, list)) or len(value) > _MOST_ITEMS:
        return None
    items = [describe(item, constant=constant, depth=depth + 1) for item in value]
    fields = getattr(type(value), "_fields", None)
    if fields is None:
        return {"k": "list" if isinstance(value, list) else "tuple", "v": items}
    return {"k": "named", "name": type(value).__name__, "fields": list(fields), "v": items}


def _of_torch(value: Any, *, constant: bool, depth: int) -> Json:
    del constant, depth
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(value, torch.dtype):
        return {"k": "torch_dtype", "v": str(value).rpartition(".")[2]}
    if not isinstance(value, torch.Tensor):
        return None
    # Devices allocate storages at far greater multiples than 16 bytes.
    offset = value.storage_offset() * value.element_size()
    return {
        "k": "tensor",
        "dtype": str(value.dtype).rpartition(".")[2],
        "aligned": offset % _ALIGNMENT == 0,
        "small": value.untyped_storage().nbytes() <= SMALL,
    }


def _of_triton(value: Any, *, constant: bool, depth: int) -> Json:
    language = sys.modules.get("triton.language")
    if language is None:
        return None
    kind, described = type(value).__name__, None
    function = getattr(value, "fn", None)
    if isinstance(value, language.constexpr):
        described = {"k": "constexpr", "v": describe(value.value, constant=True, depth=depth + 1)}
    elif type(value) is language.dtype:
        described = {"k": "dtype", "v": value.name}
    elif kind == "TensorWrapper" and hasattr(value, "base"):
        inner = describe(value.base, constant=constant, depth=depth + 1)
        described = {**inner, "dtype": None, "as": getattr(value.dtype, "name", str(value.dtype))}
    elif kind == "TensorDescriptor" and hasattr(value, "block_shape"):
        described = {
            "k": "descriptor",
            "base": describe(value.base, constant=constant, depth=depth + 1),
            **{
                name: [int(size) for size in getattr(value, name)]
                for name in ("shape", "strides", "block_shape")
            },
        }
    elif isinstance(function, FunctionType) and kind.endswith("Function"):
        described = {"k": "jit", "v": place_of(function)}
    return described


def _of_numpy(value: Any, *, constant: bool, depth: int) -> Json:
    del constant, depth
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.integer, numpy.floating, numpy.bool_)):
        return None
    return {"k": "numpy", "dtype": value.dtype.name, "v": value.item()}


def _by_name(value: Any, *, constant: bool, depth: int) -> Json:
    """Describe what a module holds under its own name, if that is so."""
    del constant, depth
    if isinstance(value, ModuleType):
        return {"k": "module", "v": value.__name__}
    if isinstance(value, enum.Enum):
        kind = type(value)
        return {"k": "name", "module": kind.__module__, "v": f"{kind.__qualname__}.{value.name}"}
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return {"k": "name", "module": value.__module__, "v": value.__qualname__}
    return None


def place_of(function: FunctionType) -> dict[str, Json]:
    """Say where a function is defined: its `name`, its `file`, and the `line` of its `def`."""
    code = function.__code__
    return {"name": code.co_name, "file": code.co_filename, "line": definition_line(code)}


def definition_line(code: Any) -> int:
    """Return the line of a function's `def`: code of a decorated one begins above it."""
    first = int(code.co_firstlineno)
    for line in range(first, first + _MOST_DECORATOR_LINES):
        text = linecache.getline(code.co_filename, line)
        if not text:
            break
        if text.lstrip().startswith("def "):
            return line
    return first


def shown(data: Json) -> str:
    """Return described data as people would write it."""
    if not isinstance(data, dict):
        return str(data)
    kind: str = data["k"]
    value: Any = data.get("v")
    if kind == "float":
        number = float.fromhex(value)
        return repr(number) if math.isfinite(number) else str(number)
    if kind in ("list", "tuple", "named"):
        return f"({', '.join(shown(item) for item in value)})"
    if kind == "constexpr":
        return shown(value)
    if kind == "jit":
        return str(value["name"])
    return repr(value) if kind == "str" else str(value)

"""Random tensors by the name of their dtype, as case files ask for them.

Importing this module doesn't import torch: names and limits are known without it.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_ALIASES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "boolean": "bool",
    "cdouble": "complex128",
    "cfloat": "complex64",
    "chalf": "complex32",
    "bf16": "bfloat16",
    "float8_e4m3": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    **{f"{short}{bits}": f"float{bits}" for short in ("f", "fp") for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}

_FLOAT_MAXIMA = {
    "float64": sys.float_info.max,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
}

_COMPLEX_PARTS = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}

_INT64_MAXIMUM = 2**63 - 1

_INTEGER_LIMITS = {
    "bool": (0, 1),
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
    # Drawn as int64, the widest integer that every torch can draw.
    "uint64": (0, _INT64_MAXIMUM),
}

_DEFAULT_INTEGERS = (0, 9)
"""The form's own range where none is given: values that also work as indices and counts."""

DTYPES = (*_FLOAT_MAXIMA, *_COMPLEX_PARTS, *_INTEGER_LIMITS)
"""The names of the dtypes that can be drawn."""


class MissingDtypeError(LookupError):
    """The installed torch has no dtype of a name that other versions know."""


def canonical(name: object) -> str:
    """Return torch's own name of a dtype for a name or alias in any case; others stay."""
    text = str(name).strip().lower().removeprefix("torch.")
    return _ALIASES.get(text, text)


def is_integer(dtype: str) -> bool:
    """Tell whether a dtype of `DTYPES` is an integer, bool among them."""
    return dtype in _INTEGER_LIMITS


def is_floating(dtype: str) -> bool:
    """Tell whether a dtype of `DTYPES` is a real floating one."""
    return dtype in _FLOAT_MAXIMA


def limits(dtype: str) -> tuple[float, float]:
    """Return the lowest and the highest finite value that can be drawn in a dtype of `DTYPES`.

    For complex dtypes they are those of the real and of the imaginary part.
    """
    if dtype in _INTEGER_LIMITS:
        return _INTEGER_LIMITS[dtype]
    maximum = _FLOAT_MAXIMA[_COMPLEX_PARTS.get(dtype, dtype)]
    return -maximum, maximum


def torch_dtype(name: str) -> "torch.dtype":
    """Return torch's dtype of a canonical name.

    Raises:
        MissingDtypeError: The installed torch has none of this name.
    """
    import torch

    dtype: torch.dtype | None = getattr(torch, name, None)
    if dtype is None:
        raise MissingDtypeError(
            f"torch {torch.__version__} has no dtype {name}; a newer one may have it"
        )
    return dtype


def draw(
    dtype: str, shape: tuple[int, ...], bounds: tuple[float, float] | None = None
) -> "torch.Tensor":
    """Draw a tensor on the CPU from torch's global generator.

    Args:
        dtype: One of `DTYPES`.
        shape: Its sizes; empty for a 0-d tensor.
        bounds: Lowest and highest value, both included, within `limits`. Without them floating
            and complex tensors are drawn like `torch.randn`, integers evenly from 0 to 9, and
            bool from False and True. With them all are drawn evenly between them (complex ones
            by part), up to the rounding of the dtype.

    Returns:
        A contiguous tensor.

    Raises:
        MissingDtypeError: The installed torch lacks the dtype.
    """
    import torch

    target = torch_dtype(dtype)
    if is_integer(dtype):
        default = _INTEGER_LIMITS["bool"] if dtype == "bool" else _DEFAULT_INTEGERS
        low, high = (int(bound) for bound in bounds or default)
        if high == _INT64_MAXIMUM:
            return torch.empty(shape, dtype=torch.int64).random_(low, None).to(target)
        return torch.randint(low, high + 1, shape).to(target)
    wide = dtype in ("float64", "complex128")
    if bounds is None:
        drawn_as = target
        if dtype.startswith("float8"):
            drawn_as = torch.float32
        elif dtype == "complex32":
            drawn_as = torch.complex64
        return torch.randn(shape, dtype=drawn_as).to(target)
    if dtype in _COMPLEX_PARTS:
        real, imaginary = (_draw_evenly(shape, bounds, wide=wide) for _ in range(2))
        return torch.complex(real, imaginary).to(target)
    return _draw_evenly(shape, bounds, wide=wide).to(target)


def _draw_evenly(
    shape: tuple[int, ...], bounds: tuple[float, float], *, wide: bool
) -> "torch.Tensor":
    import torch

    low, high = bounds
    share = torch.rand(shape, dtype=torch.float64 if wide else torch.float32)
    # A weighted mean, since high - low could overflow.
    return (share * high + (1 - share) * low).clamp(low, high)

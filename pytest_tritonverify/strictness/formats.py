"""What the gates need to know of a number format: its rounding, and the tolerance to scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.accuracy.dtypes import dtype_name
from pytest_tritonverify.accuracy.limits import FLOAT_FORMATS, cap_limits, eco_limits, npu_limits

if TYPE_CHECKING:
    import torch

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_NARROW_MANTISSA_BITS = 10
# IEEE double, and a power of two without mantissa.
_OTHERS = {"float64": (52, -1074), "float8_e8m0fnu": (0, -127)}


@dataclass(frozen=True)
class Format:
    """A number format.

    Attributes:
        name: Of the format, or of a complex one's parts.
        roundoff: The unit roundoff u: half the ULP of one.
        subnormal: The smallest positive number.
        narrow: Whether it has 16 bits or fewer.
        rtol, atol: The tolerance of the standard that judges it.
        cap: Greatest error of a single element, before it is scaled.
    """

    name: str
    roundoff: float
    subnormal: float
    narrow: bool
    rtol: float
    atol: float
    cap: float


def format_of(dtype: torch.dtype) -> Format:
    """Return the format of a floating-point dtype, or of a complex one's parts.

    Where the open ecosystem standard has no row, the tolerance is the three-way test's: its
    relative threshold, and the absolute part of its error cap.
    """
    name = _PARTS.get(dtype_name(dtype), dtype_name(dtype))
    if name in FLOAT_FORMATS:
        form = FLOAT_FORMATS[name]
        bits, smallest = form.mantissa_bits, form.smallest_subnormal_exponent
    else:
        bits, smallest = _OTHERS[name]
    eco = eco_limits(name)
    if eco is not None:
        rtol, atol, cap = eco.rtol, eco.atol, eco.max_abs_error_limit
    else:
        rtol, atol = npu_limits(name).rel_threshold, cap_limits(name).atol
        cap = atol
    return Format(
        name=name,
        roundoff=2.0 ** -(bits + 1),
        subnormal=2.0**smallest,
        narrow=bits <= _NARROW_MANTISSA_BITS,
        rtol=rtol,
        atol=atol,
        cap=cap,
    )

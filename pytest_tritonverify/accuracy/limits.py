"""Every threshold of the accuracy rules, and nothing else.

Sources: the tables of the open ecosystem accuracy standard (mixed tolerance, first standard) and of
the NPU Benchmark standard (three-way test, fallback). Rows are keyed by the standards' own names
for number formats, which torch's dtypes are mapped to here. No other module holds a threshold, and
none is taken from `torch.finfo`, whose answers for some float8 formats are wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class EcoLimits:
    """A row of the open ecosystem standard's table.

    Attributes:
        rtol: Relative part of the mixed tolerance.
        atol: Absolute part of the mixed tolerance.
        max_abs_error_limit: Floor of the absolute limit on every single element.
    """

    rtol: float
    atol: float
    max_abs_error_limit: float


@dataclass(frozen=True)
class NpuLimits:
    """A row of the NPU Benchmark standard's table of matching thresholds.

    Attributes:
        small_value_threshold: Goldens below it in magnitude are judged by absolute error.
        small_value_error: Greatest absolute error of a small value.
        rel_threshold: Greatest relative error of other values, and the bound of the mean.
    """

    small_value_threshold: float
    small_value_error: float
    rel_threshold: float


@dataclass(frozen=True)
class CapLimits:
    """A row of the NPU Benchmark standard's `max_error_cap` table: `atol + rtol * |golden|`."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class FloatFormat:
    """What a ULP needs to know of a number format.

    Attributes:
        mantissa_bits: Explicit mantissa bits.
        smallest_subnormal_exponent: The smallest positive subnormal is two to this power.
    """

    mantissa_bits: int
    smallest_subnormal_exponent: int


ECO_LIMITS: Mapping[str, EcoLimits] = {
    "float16": EcoLimits(rtol=2**-9, atol=2**-9, max_abs_error_limit=1e-1),
    "bfloat16": EcoLimits(rtol=2**-6, atol=2**-6, max_abs_error_limit=1.0),
    "float32": EcoLimits(rtol=2**-10, atol=2**-16, max_abs_error_limit=1e-2),
    "hifloat32": EcoLimits(rtol=2**-9, atol=2**-10, max_abs_error_limit=1e-1),
    "float8_e4m3": EcoLimits(rtol=2**-2, atol=2**-4, max_abs_error_limit=1.0),
    "float8_e5m2": EcoLimits(rtol=2**-1, atol=2**-3, max_abs_error_limit=1e-1),
}

ECO_REQUIRED_PERCENT = 99
"""Elements within the mixed tolerance, in percent of the finite ones."""

ECO_LIMIT_ULPS = 32
"""Multiple of the golden's ULP in the absolute limit."""

NPU_LIMITS: Mapping[str, NpuLimits] = {
    "float16": NpuLimits(2**-11, 2**-16, 2**-10),
    "bfloat16": NpuLimits(2**-8, 2**-16, 2**-7),
    "float32": NpuLimits(2**-14, 2**-30, 2**-13),
    "hifloat32": NpuLimits(2**-12, 2**-28, 2**-11),
    "float8_e4m3": NpuLimits(2**-4, 2**-6, 2**-3),
    "float8_e5m2": NpuLimits(2**-3, 2**-5, 2**-2),
}

NPU_OTHER_LIMITS = NpuLimits(2**-14, 2**-30, 2**-13)

CAP_LIMITS: Mapping[str, CapLimits] = {
    "float16": CapLimits(atol=9e-2, rtol=2**-10),
    "bfloat16": CapLimits(atol=1e-1, rtol=2**-7),
    "float32": CapLimits(atol=1e-3, rtol=2**-13),
}

CAP_OTHER_LIMITS = CapLimits(atol=1e-3, rtol=2**-13)

NPU_REQUIRED_PERCENT = 90
"""Matched elements of the three-way test, in percent of the finite ones."""

MERE_EPSILON = 1e-7
"""Added to the golden's magnitude before the division by it."""

QUANT_TOLERANCE = 1
"""Greatest difference of an integer output computed from floating-point inputs."""

# float8_e5m2fnuz and float8_e4m3fnuz have an exponent bias one greater than their siblings.
FLOAT_FORMATS: Mapping[str, FloatFormat] = {
    "float16": FloatFormat(10, -24),
    "bfloat16": FloatFormat(7, -133),
    "float32": FloatFormat(23, -149),
    "hifloat32": FloatFormat(11, -137),
    "float8_e4m3fn": FloatFormat(3, -9),
    "float8_e4m3fnuz": FloatFormat(3, -10),
    "float8_e5m2": FloatFormat(2, -16),
    "float8_e5m2fnuz": FloatFormat(2, -17),
}

# Casts that do not round: some torch releases saturate float8_e4m3fn, which has no infinity, and
# float8_e8m0fnu, which has no sign, takes a negative value's magnitude. Values outside these
# bounds have no counterpart in the format.
CAST_BOUNDS: Mapping[str, tuple[float, float]] = {
    "float8_e4m3fn": (-464.0, 464.0),
    "float8_e8m0fnu": (0.0, math.inf),
}

# A complex output is judged as its parts, by the rows of the part's format.
_ROW_NAMES: Mapping[str, str] = {
    "float8_e4m3fn": "float8_e4m3",
    "float8_e4m3fnuz": "float8_e4m3",
    "float8_e5m2fnuz": "float8_e5m2",
    "complex32": "float16",
    "complex64": "float32",
}

# From the most to the least precise; names on one line rank equal. The order of the real formats
# is the standard's; a complex format stands directly above its parts' format.
_RANKING: tuple[tuple[str, ...], ...] = (
    ("complex128",),
    ("float64",),
    ("complex64",),
    ("float32",),
    ("complex32",),
    ("float16",),
    ("bfloat16",),
    (
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ),
    ("float4_e2m1fn_x2",),
    ("int64", "uint64"),
    ("int32", "uint32"),
    ("int16", "uint16"),
    ("int8", "uint8"),
    ("bool",),
)

_RANKS: Mapping[str, int] = {
    name: len(_RANKING) - position for position, row in enumerate(_RANKING) for name in row
}


def row_format(name: str, *, hf32: bool = False) -> str:
    """Return the format whose rows judge outputs of a dtype.

    Args:
        name: The dtype's name without `torch.`.
        hf32: float32 outputs are judged by the rows of hifloat32. Complex ones are not: HF32 is
            a mode of real matrix products and convolutions.
    """
    return "hifloat32" if hf32 and name == "float32" else name


def eco_limits(name: str) -> EcoLimits | None:
    """Return the first standard's row for a format, or None where it defines none.

    Args:
        name: A dtype's name without `torch.`, or `hifloat32`.
    """
    # Complex outputs take the rows of their parts in the fallback only.
    if name.startswith("complex"):
        return None
    return ECO_LIMITS.get(_ROW_NAMES.get(name, name))


def npu_limits(name: str) -> NpuLimits:
    """Return the three-way test's matching thresholds for a format, named as in `eco_limits`."""
    return NPU_LIMITS.get(_ROW_NAMES.get(name, name), NPU_OTHER_LIMITS)


def cap_limits(name: str) -> CapLimits:
    """Return the three-way test's `max_error_cap` row for a format, named as in `eco_limits`."""
    return CAP_LIMITS.get(_ROW_NAMES.get(name, name), CAP_OTHER_LIMITS)


def precision_rank(name: str) -> int:
    """Return the place of a dtype among inputs: greater is more precise, 0 is unranked."""
    return _RANKS.get(name, 0)

"""Number formats that numpy lacks: how their values are held, widened and rounded.

The carriers are the array types of ml_dtypes. Everything is rounded the way torch rounds: through
float32, to nearest with ties to even.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Dtype = np.dtype[Any]

BFLOAT16: Dtype = np.dtype(ml_dtypes.bfloat16)
_UINT8: Dtype = np.dtype(np.uint8)
_E4M3FN: Dtype = np.dtype(ml_dtypes.float8_e4m3fn)

# By the name that Triton gives to a type.
CARRIERS: dict[str, Dtype] = {
    "bf16": BFLOAT16,
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": _E4M3FN,
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
}

# The format of Triton's own for NVIDIA GPUs without float8; ml_dtypes and torch lack it.
E4B15 = "fp8e4b15"

_BITS: dict[Dtype, Dtype] = {d: np.dtype(f"u{d.itemsize}") for d in CARRIERS.values()}
# Looking 256 values up is four times as fast as ml_dtypes' own widening.
_FLOAT8_VALUES: dict[Dtype, NDArray[np.float32]] = {
    dtype: np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    for dtype in _BITS
    if dtype.itemsize == 1
}
# In these the pattern of a negative zero is the one of NaN.
_UNSIGNED_ZERO = (CARRIERS["fp8e4b8"], CARRIERS["fp8e5b16"])
_FNUZ_NAN = 0x80
_SATURATED = np.float32(448)  # the largest float8_e4m3fn
_E4B15_LARGEST = 0x3F00  # 1.75 in float16


def is_carrier(values: Array) -> bool:
    """Whether an array holds a format that numpy can't compute in."""
    return values.dtype in _BITS


def is_e4b15(values: Array, kind: Any) -> bool:
    """Whether an array holds float8e4b15 patterns, given the Triton type of its block."""
    return values.dtype == _UINT8 and kind.scalar.name == E4B15


def bits_of(dtype: Dtype) -> Dtype:
    """Return the unsigned integer type that is as wide as a carrier."""
    return _BITS[dtype]


def largest(dtype: Dtype) -> float:
    """Return the largest finite value of a floating type."""
    if dtype not in _BITS:
        return float(np.finfo(dtype).max)
    bits = _BITS[dtype]
    values = widen(np.arange(2 ** (8 * bits.itemsize), dtype=bits).view(dtype))
    return float(values[np.isfinite(values)].max())


def widen(values: Array) -> Array:
    """Return the same values in a type that numpy computes in: float32 for every carrier."""
    table = _FLOAT8_VALUES.get(values.dtype)
    if table is not None:
        return table[values.view(np.uint8)]
    return values.astype(np.float32) if values.dtype == BFLOAT16 else values


def convert(values: Array, dtype: Dtype, *, toward_zero: bool = False) -> Array:
    """Convert between any two types, carriers or numpy's own.

    Overflow and infinity follow torch 2.13: float8_e4m3fn saturates at 448, the two `fnuz`
    formats turn into NaN, float8_e5m2 and bfloat16 into infinity.

    Args:
        values: what to convert.
        dtype: the type wanted.
        toward_zero: drop the digits that don't fit instead of rounding to nearest.
    """
    wide = widen(values)
    if not toward_zero:
        return _nearest(wide, dtype)
    limit = np.float64(largest(dtype)).astype(wide.dtype)
    finite = np.where(np.isinf(wide), wide, np.clip(wide, -limit, limit))
    rounded = _nearest(finite, dtype)
    # All these formats order magnitudes as their bits do, so the next smaller one is one less.
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    too_large = np.abs(widen(rounded).astype(np.float64)) > np.abs(wide.astype(np.float64))
    bits = bits - too_large.astype(bits.dtype)
    if dtype in _UNSIGNED_ZERO:
        bits[too_large & (bits == _FNUZ_NAN)] = 0
    truncated: Array = bits.view(dtype)
    return truncated


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z, rounded once, in the carrier of `z`.

    float64 holds the product exactly but not always the sum: rounding the sum to odd in between
    keeps the second rounding from being misled (S. Boldo and G. Melquiond, "Emulation of FMA and
    correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on
    Computers 57, 2008).
    """
    product = widen(x).astype(np.float64) * widen(y).astype(np.float64)
    addend = widen(z).astype(np.float64)
    total = product + addend
    back = total - product
    total = _to_odd(total, (product - (total - back)) + (addend - back))
    single = total.astype(np.float32)
    return convert(_to_odd(single, total - single), z.dtype)


def decode_e4b15(bits: Array) -> Array:
    """Return the float16 values of float8e4b15 patterns, as Triton's conversion has them."""
    wide = bits.astype(np.uint16)
    halves: Array = (((wide & 0x7F) << 7) | ((wide & 0x80) << 8)).view(np.float16)
    return halves


def encode_e4b15(values: Array) -> Array:
    """Return the float8e4b15 patterns of float16 values, as Triton's conversion has them.

    Halves round away from zero and everything beyond 1.75 becomes 1.75.
    """
    bits = values.view(np.uint16)
    magnitude = np.minimum(bits & 0x7FFF, _E4B15_LARGEST)
    patterns: Array = ((magnitude * 2 + 0x80) >> 8) | ((bits >> 8) & 0x80)
    return patterns.astype(np.uint8)


def _nearest(wide: Array, dtype: Dtype) -> Array:
    if dtype not in _BITS:
        return wide.astype(dtype)
    single = wide.astype(np.float32, copy=False)
    if dtype == _E4M3FN:
        single = np.clip(single, -_SATURATED, _SATURATED)
    return single.astype(dtype)


def _to_odd(rounded: Array, error: Array) -> Array:
    """Move a rounded value to its neighbour on the exact one's side if its last bit is even."""
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    even = (bits & 1) == 0
    inexact = np.isfinite(error) & (error != 0)
    side = np.copysign(np.inf, error).astype(rounded.dtype)
    return np.where(even & inexact, np.nextafter(rounded, side), rounded)

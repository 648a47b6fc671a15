"""Oracles for bfloat16 and float8: torch's own conversions, and bits to compare."""

from __future__ import annotations

import torch

E4M3FN = torch.float8_e4m3fn
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def rounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert as torch 2.13 does; older ones turn what float8_e4m3fn can't hold into NaN."""
    if dtype == E4M3FN:
        values = values.float().clamp(-448, 448)
    return values.to(dtype)


def finite_values(dtype: torch.dtype) -> torch.Tensor:
    """Return all finite values of a format of one or two bytes, in ascending order, as float64."""
    patterns = torch.arange(256 if dtype.itemsize == 1 else 65536, dtype=torch.int32)
    values = patterns.to(_INTEGERS[dtype.itemsize]).view(dtype).double()
    finite: torch.Tensor = torch.unique(values[values.isfinite()], sorted=True)
    return finite


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare bit by bit; any NaN equals any other."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    kind = _INTEGERS[actual.dtype.itemsize]
    same = actual.contiguous().view(kind) == expected.contiguous().view(kind)
    if actual.dtype.is_floating_point:
        same |= actual.double().isnan() & expected.double().isnan()
    if bool(same.all()):
        return
    first = tuple((~same).nonzero()[0].tolist())
    raise AssertionError(
        f"{int((~same).sum())} of {same.numel()} differ, first at {first}: "
        f"expected {expected.double()[first]}, got {actual.double()[first]}"
    )

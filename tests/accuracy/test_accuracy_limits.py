"""The limit tables, retyped from the standards' text."""

from __future__ import annotations

import pytest
import torch

from pytest_tritonverify.accuracy import limits

# Columns: rtol, atol, max_abs_error_limit.
ECO = """
float16      2^-9   2^-9   1e-1
bfloat16     2^-6   2^-6   1e-0
float32      2^-10  2^-16  1e-2
hifloat32    2^-9   2^-10  1e-1
float8_e4m3  2^-2   2^-4   1e-0
float8_e5m2  2^-1   2^-3   1e-1
"""

# Columns: small_value_threshold, small_value_error, rel_threshold; atol and rtol of the cap.
NPU = """
float16      2^-11  2^-16  2^-10  9e-2  2^-10
bfloat16     2^-8   2^-16  2^-7   1e-1  2^-7
float32      2^-14  2^-30  2^-13  1e-3  2^-13
hifloat32    2^-12  2^-28  2^-11  1e-3  2^-13
float8_e4m3  2^-4   2^-6   2^-3   1e-3  2^-13
float8_e5m2  2^-3   2^-5   2^-2   1e-3  2^-13
other        2^-14  2^-30  2^-13  1e-3  2^-13
"""

# Every format and the row that it takes, in the first standard's table and in the fallback's.
ROWS = {
    "float16": ("float16", "float16"),
    "bfloat16": ("bfloat16", "bfloat16"),
    "float32": ("float32", "float32"),
    "hifloat32": ("hifloat32", "hifloat32"),
    "float8_e4m3fn": ("float8_e4m3", "float8_e4m3"),
    "float8_e4m3fnuz": ("float8_e4m3", "float8_e4m3"),
    "float8_e5m2": ("float8_e5m2", "float8_e5m2"),
    "float8_e5m2fnuz": ("float8_e5m2", "float8_e5m2"),
    "float8_e8m0fnu": (None, "other"),
    "float64": (None, "other"),
    "complex32": (None, "float16"),
    "complex64": (None, "float32"),
    "complex128": (None, "other"),
}


def table(text: str) -> dict[str, list[float]]:
    return {
        name: [number(cell) for cell in cells]
        for name, *cells in (line.split() for line in text.strip().splitlines())
    }


def number(cell: str) -> float:
    base, _, exponent = cell.partition("^")
    return float(base) ** int(exponent) if exponent else float(cell)


@pytest.mark.parametrize("name", ROWS)
def test_every_format_takes_its_row(name: str) -> None:
    eco_row, npu_row = ROWS[name]
    eco = limits.eco_limits(name)
    if eco_row is None:
        assert eco is None
    else:
        assert eco is not None
        assert [eco.rtol, eco.atol, eco.max_abs_error_limit] == table(ECO)[eco_row]
    npu, cap = limits.npu_limits(name), limits.cap_limits(name)
    assert [
        npu.small_value_threshold,
        npu.small_value_error,
        npu.rel_threshold,
        cap.atol,
        cap.rtol,
    ] == table(NPU)[npu_row]


def test_every_row_of_the_first_standard_has_a_format_for_its_ulps() -> None:
    for name, (eco_row, _) in ROWS.items():
        assert (name in limits.FLOAT_FORMATS) is (eco_row is not None)


def test_required_shares_and_tolerances() -> None:
    assert limits.ECO_REQUIRED_PERCENT == 99
    assert limits.ECO_LIMIT_ULPS == 32
    assert limits.NPU_REQUIRED_PERCENT == 90
    assert limits.MERE_EPSILON == 1e-7
    assert limits.QUANT_TOLERANCE == 1


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_formats_agree_with_torch_where_torch_is_right(name: str) -> None:
    form = limits.FLOAT_FORMATS[name]
    info = torch.finfo(getattr(torch, name))
    assert 2.0**-form.mantissa_bits == info.eps
    assert 2.0**form.smallest_subnormal_exponent == info.smallest_normal * info.eps

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support.lowprecision import E4M3FN, assert_same_bits, finite_values, rounded

FNUZ = (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)


def done(kernels: dict[str, Any], name: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return sources and targets, less those that this version of Triton refuses to convert."""
    pairs = kernels["conversions"][name]
    return [(source, target) for source, target in pairs if not isinstance(target, str)]


def test_every_conversion_rounds_as_torch_does(kernels: dict[str, Any]) -> None:
    plans = done(kernels, "nearest")
    assert {source.dtype for source, _ in plans} > {torch.bfloat16, torch.float16, torch.int64}
    for source, target in plans:
        assert_same_bits(target, rounded(source, target.dtype))


@pytest.mark.parametrize(
    ("dtype", "beyond", "infinite"),
    [
        (torch.bfloat16, float("inf"), float("inf")),
        (torch.float8_e4m3fn, 448.0, 448.0),
        (torch.float8_e5m2, float("inf"), float("inf")),
        (torch.float8_e4m3fnuz, float("nan"), float("nan")),
        (torch.float8_e5m2fnuz, float("nan"), float("nan")),
    ],
    ids=str,
)
def test_overflow_and_infinity(
    kernels: dict[str, Any], dtype: torch.dtype, beyond: float, infinite: float
) -> None:
    wide, target = next(
        (source, target)
        for source, target in done(kernels, "nearest")
        if source.dtype == torch.float32 and target.dtype == dtype
    )
    large = target[wide == torch.finfo(torch.float32).max].double()
    infinities = target[wide == float("inf")].double()
    torch.testing.assert_close(large, torch.full_like(large, beyond), equal_nan=True)
    torch.testing.assert_close(infinities, torch.full_like(infinities, infinite), equal_nan=True)
    assert target[wide.isnan()].double().isnan().all()


def test_rounding_toward_zero_takes_the_next_smaller_magnitude(kernels: dict[str, Any]) -> None:
    for source, target in done(kernels, "truncated"):
        values = finite_values(target.dtype)
        values = values[values >= 0]
        finite = source.isfinite()
        exact, got = source[finite].double(), target[finite].double()
        below = values[torch.searchsorted(values, exact.abs(), right=True) - 1]
        torch.testing.assert_close(got.abs(), below, rtol=0, atol=0)
        zero_is_signed = target.dtype not in FNUZ
        signed = (got != 0) | torch.tensor(zero_is_signed)
        assert torch.equal(got.signbit()[signed], exact.signbit()[signed])
        assert_same_bits(target[~finite], rounded(source[~finite], target.dtype))
    assert {target.dtype for _, target in done(kernels, "truncated")} >= {
        torch.bfloat16,
        torch.float16,
        E4M3FN,
    }


def test_e4b15_goes_there_and_back_as_triton_converts_it(kernels: dict[str, Any]) -> None:
    halves, patterns, back = kernels["conversions"]["e4b15"]
    # Four bits of exponent with a bias of 15, three of mantissa, no infinity and no NaN.
    byte = patterns.int()
    exponent, mantissa = (byte >> 3) & 0xF, byte & 7
    magnitude = torch.where(
        exponent == 0, mantissa * 2.0**-17, (1 + mantissa / 8) * 2.0 ** (exponent - 15)
    )
    assert torch.equal(back.float(), torch.where(byte > 0x7F, -magnitude, magnitude))
    within = halves.float().abs() <= 1.75
    error = (back.float() - halves.float()).abs()
    spacing = 2.0 ** (exponent.clamp(min=1) - 18)
    assert (error[within] <= spacing[within] / 2).all()
    assert (back.float()[~within].abs() == 1.75).all()

"""Units in the last place, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.limits import FloatFormat

_FLOAT64_BIAS = 1023
_FLOAT64_MANTISSA_BITS = 52


def ulp(magnitudes: torch.Tensor, form: FloatFormat) -> torch.Tensor:
    """Return the ULP of every magnitude in a number format.

    ULP(x) is two to the power of `floor(log2 x) - mantissa_bits`, and the smallest subnormal for
    zero and everything below twice the smallest normal.

    Args:
        magnitudes: Finite, non-negative values of the format, held in float64, of any shape.
        form: The format, narrower than float64.

    Returns:
        A float64 tensor of the same shape; every element is an exact power of two.
    """
    # A narrower format's values are normal in float64: the bits say floor(log2 x), zero apart.
    exponents = magnitudes.view(torch.int64) >> _FLOAT64_MANTISSA_BITS
    exponents.sub_(_FLOAT64_BIAS + form.mantissa_bits)
    exponents.clamp_(min=form.smallest_subnormal_exponent)
    # `exp2`, `pow` and `ldexp` promise no exactness.
    return exponents.add_(_FLOAT64_BIAS).mul_(1 << _FLOAT64_MANTISSA_BITS).view(torch.float64)

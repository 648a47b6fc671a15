"""Units in the last place, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .limits import FloatFormat

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
    # frexp's mantissa lies in [0.5, 1): its exponent is one above floor(log2 x), and 0 for zero.
    exponents = torch.frexp(magnitudes).exponent.to(torch.int64)
    exponents.sub_(1 + form.mantissa_bits).clamp_(min=form.smallest_subnormal_exponent)
    exponents.masked_fill_(magnitudes == 0, form.smallest_subnormal_exponent)
    return _powers_of_two(exponents)


def _powers_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """Return exact powers of two: `exp2`, `pow` and `ldexp` promise no exactness."""
    return ((exponents + _FLOAT64_BIAS) << _FLOAT64_MANTISSA_BITS).view(torch.float64)

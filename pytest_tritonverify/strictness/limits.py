"""Every threshold of the gates beyond the standard, and where it comes from.

The gates and their numbers are those of a study that ran them on 1,293 wrong outputs and 65 honest
reorderings of 45 operators in float32, float16 and bfloat16: the open ecosystem standard accepted
296 of the wrong outputs, the gates 9. Their numbers were tuned on 20 of the operators;
`benchmarks/strictness.py` measures them anew on a corpus of its own.

Free of torch: settings are checked where torch is not imported.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FLOOR_ROUNDOFFS = 0.58
"""Error of correct rounding, in unit roundoffs of the golden's root mean square.

Rounding errors are spread evenly over an ULP: their root mean square is `ULP / sqrt(12)`, which is
`2 * u / sqrt(12)` at the lower end of a binade.
"""

FLOOR_SUBNORMALS = 0.3
"""The same for outputs among the subnormal numbers, `1 / sqrt(12)` of the smallest one."""

NULL_SCALE = 0.99
"""Factor of the null candidate that is wrong by a scale."""

NULL_ROUNDOFFS = 16.0
"""Root mean square error, in unit roundoffs of the golden's root mean square, from which on a null
candidate is a wrong output, and not one that another order of summation could have led to."""

NULL_ROUNDOFFS_NARROW = 2.0
"""The same for formats of up to 16 bits, where the final rounding dominates: two right outputs are
0.8 roundoffs apart, and 1 % is 2.6 in bfloat16."""

NULL_ERRORS = 2.0
"""A null candidate that errs by no more than so many times what the reference does is right."""


@dataclass(frozen=True)
class StrictLimits:
    """The thresholds that can be set; `u` is half the ULP of one in the output's format.

    Attributes:
        matched_ratio: Share of the elements that must lie within the scaled tolerance, 0 to 1.
            The standard's own number.
        slice_failing: Greatest share of failing elements in any slice along an axis, 0 to 1.
        slice_elements: Elements that a slice needs to be looked at.
        cap_roundoffs: No element may err by more than so many `u` of the greatest golden, unless
            `cap_tolerances` allows it.
        cap_tolerances: What an element may err by at any rate, in its own tolerances.
        error_ratio: Greatest root mean square error, in that of the reference, for float32 and
            wider formats. Honest orders of summation reach 4, computing in float16 1184 and more.
        error_ratio_low: The same for narrower formats, where the final rounding dominates: honest
            ones stay below 2, an accumulator in half precision reaches 8.
        bias_errors: Standard errors by which the mean error may be off.
        bias_roundoffs: What the mean error may be off by besides, in `u`, for float32 and wider
            formats. The errors of intermediate results don't average out where elements share
            them, as in a row that is divided by one sum or in a cumulative sum: honest orders
            of summation reach 0.7, where the study asked for 0.25.
        bias_roundoffs_low: The same for narrower formats. The final rounding, to nearest, is
            unbiased, so that 1 % is far beyond it.
    """

    matched_ratio: float = 0.99
    slice_failing: float = 0.1
    slice_elements: float = 8.0
    cap_roundoffs: float = 64.0
    cap_tolerances: float = 4.0
    error_ratio: float = 16.0
    error_ratio_low: float = 4.0
    bias_errors: float = 4.0
    bias_roundoffs: float = 4.0
    bias_roundoffs_low: float = 0.25

    def changed(self, entries: Iterable[str]) -> StrictLimits:
        """Return the limits with some of them set anew.

        Args:
            entries: Texts such as `error_ratio=8`.

        Raises:
            ValueError: One names no threshold, or gives an impossible value.
        """
        values: dict[str, float] = {}
        for entry in entries:
            name, separator, text = entry.partition("=")
            name = name.strip()
            if name not in self.to_json() or not separator:
                known = ", ".join(self.to_json())
                raise ValueError(f"{entry!r} is no NAME=VALUE with one of these names: {known}")
            values[name] = _checked(name, text.strip())
        return dataclasses.replace(self, **values)

    def ratio(self, *, narrow: bool) -> float:
        """Return the greatest error ratio of formats of up to 16 bits, or of wider ones."""
        return self.error_ratio_low if narrow else self.error_ratio

    def offset(self, *, narrow: bool) -> float:
        """Return how many unit roundoffs the mean error may be off by."""
        return self.bias_roundoffs_low if narrow else self.bias_roundoffs

    def to_json(self) -> dict[str, float]:
        """Return the thresholds by name."""
        return dataclasses.asdict(self)


_SHARES = ("matched_ratio", "slice_failing")
_AT_LEAST_ONE = ("error_ratio", "error_ratio_low", "cap_tolerances", "slice_elements")


def _checked(name: str, text: str) -> float:
    """Return a threshold's value.

    The reference's own output passes every gate whatever is set: ratios are at least 1.

    Raises:
        ValueError: It can't be followed.
    """
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name}={text}: {text!r} is no number") from None
    if name in _SHARES:
        low, high = 0.0, 1.0
    else:
        low, high = (1.0 if name in _AT_LEAST_ONE else 0.0), math.inf
    if not low <= value <= high or math.isinf(value):
        upper = f" and at most {high:g}" if math.isfinite(high) else ""
        raise ValueError(f"{name}={text}: the value must be at least {low:g}{upper}")
    return value

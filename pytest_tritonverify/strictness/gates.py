"""The gates beyond the standard: each a condition on what was measured of one output.

All compare an output with the *precise golden*, the reference's output in float64 where there is
one, and never ask for more than the reference's own output has: what the reference errs by is
allowed on top, element by element and in every mean. Its own output passes all gates.

Source of the gates and their numbers: see `limits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_tritonverify.strictness.limits import FLOOR_ROUNDOFFS, FLOOR_SUBNORMALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.strictness.formats import Format
    from pytest_tritonverify.strictness.limits import StrictLimits
    from pytest_tritonverify.strictness.measuring import Golden, Measured


@dataclass(frozen=True)
class Gate:
    """What one gate says of an output.

    Attributes:
        name: Which gate.
        holds: Whether it lets the output pass; None where it can't be applied.
        value: What was found; None where nothing was.
        limit: What was asked for.
        text: Both in words, for people.
    """

    name: str
    holds: bool | None
    value: float | None
    limit: float
    text: str

    def to_json(self) -> dict[str, object]:
        """Return the gate for the result file."""
        value = self.value if self.value is not None and math.isfinite(self.value) else None
        return {"name": self.name, "holds": self.holds, "value": value, "limit": self.limit}


@dataclass(frozen=True)
class Tolerances:
    """What single elements are allowed, besides what the reference errs by.

    Attributes:
        atol, rtol: An element passes iff it errs by at most `atol + rtol * |golden|`.
        cap: None may err by more than the greater of this and
        cap_tolerances: so many tolerances.
    """

    atol: float
    rtol: float
    cap: float
    cap_tolerances: float


def tolerances(form: Format, golden: Golden, limits: StrictLimits) -> Tolerances:
    """Scale a format's tolerance with the output.

    The standard's absolute part is a constant, below which everything passes. Here it shrinks
    with the root mean square of the golden: `max(min(atol, rms * rtol), smallest subnormal)`,
    plus what the reference's error and the ratio allowed make: a golden that is zero but for
    rounding has no other size; and the limit of single elements with the greatest golden:
    `min(limit, cap_roundoffs * u * max + atol)`.
    """
    atol = max(min(form.atol, golden.rms * form.rtol), form.subnormal)
    atol += limits.ratio(narrow=form.narrow) * golden.own_error
    cap = min(form.cap, limits.cap_roundoffs * form.roundoff * golden.greatest + atol)
    return Tolerances(atol, form.rtol, cap, limits.cap_tolerances)


def elements(measured: Measured, limits: StrictLimits) -> Gate:
    """At least 99 % of the elements are within the scaled tolerance."""
    share = measured.matched / measured.judged if measured.judged else 1.0
    enough = measured.matched >= Fraction(str(limits.matched_ratio)) * measured.judged
    allowed = measured.tolerances
    text = (
        f"{measured.matched} of {measured.judged} elements are within {allowed.atol:.4g} + "
        f"{allowed.rtol:.4g}*|golden|, a share of {share:.6g}; at least {limits.matched_ratio:g} "
        "is required"
    )
    return Gate("elements", enough, share, limits.matched_ratio, text)


def slices(measured: Measured, limits: StrictLimits) -> Gate:
    """In no slice along an axis does more than a tenth of the elements fail."""
    worst = measured.worst_slice
    if worst is None:
        return Gate("slices", True, 0.0, limits.slice_failing, "no slice has failing elements")  # noqa: FBT003 - a field
    text = (
        f"{worst.failing} of the {worst.judged} elements of the slice {worst.name} are outside "
        f"the tolerance, a share of {worst.share:.4g}; at most {limits.slice_failing:g} is allowed"
    )
    return Gate(
        "slices", worst.share <= limits.slice_failing, worst.share, limits.slice_failing, text
    )


def cap(measured: Measured, _limits: StrictLimits) -> Gate:
    """No element errs by more than the scaled limit."""
    worst = measured.worst
    if worst is None:
        return Gate("cap", True, 0.0, 1.0, "no element errs")  # noqa: FBT003 - a field
    text = (
        f"the element {worst.index} errs by {worst.error:.6g}: expected {worst.expected:.9g}, got "
        f"{worst.got:.9g}; at most {worst.allowed:.6g} is allowed"
    )
    return Gate("cap", worst.severity <= 1, worst.severity, 1.0, text)


def error_ratio(measured: Measured, limits: StrictLimits) -> Gate:
    """The root mean square error is not many times the reference's."""
    form, own = measured.form, measured.own_error
    limit = limits.ratio(narrow=form.narrow)
    if own is None:
        return _not_applied("error_ratio", measured, limit)
    base = base_error(measured)
    ratio = measured.error / base if base else (math.inf if measured.error else 0.0)
    text = (
        f"the root mean square error against the float64 golden is {measured.error:.4g}, "
        f"{ratio:.4g} times that of the reference ({base:.4g}, correct rounding at least); "
        f"at most {limit:g} times is allowed"
    )
    return Gate("error_ratio", ratio <= limit, ratio, limit, text)


def bias(measured: Measured, limits: StrictLimits) -> Gate:
    """Errors don't all point away from, or all towards, zero.

    `|sum((y - g) * sign(g))| / sum(|g|)` is the relative error of the output as a whole. For
    independent errors its standard error is `rmse * sqrt(n) / sum(|g|)`. A mean of relative
    errors, element by element, would be decided by the few smallest goldens.
    """
    own, magnitude = measured.own_bias, measured.golden.magnitude
    offset = limits.offset(narrow=measured.form.narrow) * measured.form.roundoff
    if own is None or measured.own_error is None:
        return _not_applied("bias", measured, offset)
    if not magnitude:
        return Gate("bias", True, 0.0, 0.0, "the golden is zero")  # noqa: FBT003 - a field
    scatter = base_error(measured) * math.sqrt(measured.judged) / magnitude
    limit = max(
        limits.ratio(narrow=measured.form.narrow) * abs(own),
        limits.bias_errors * scatter + offset,
    )
    found = abs(measured.bias)
    text = (
        f"the output is off by {measured.bias:+.4g} as a whole, relative to the float64 golden; "
        f"at most {limit:.4g} is allowed, the reference is off by {own:+.4g}"
    )
    return Gate("bias", found <= limit, found, limit, text)


GATES: tuple[Callable[[Measured, StrictLimits], Gate], ...] = (
    elements,
    slices,
    cap,
    error_ratio,
    bias,
)
"""All gates, in the order in which a message names them."""


def judge(measured: Measured, limits: StrictLimits) -> list[Gate]:
    """Return what every gate says."""
    return [gate(measured, limits) for gate in GATES]


def base_error(measured: Measured) -> float:
    """Return the reference's error, or that of correct rounding where it errs by less."""
    form = measured.form
    floor = FLOOR_ROUNDOFFS * form.roundoff * measured.golden.rms
    return max(measured.own_error or 0.0, floor, FLOOR_SUBNORMALS * form.subnormal)


def _not_applied(name: str, measured: Measured, limit: float) -> Gate:
    text = f"not applied: {measured.no_precise_golden}"
    return Gate(name, None, None, limit, text)

"""Values that went through a format with fewer bits than the golden has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.forensics.contents import REQUIRED_SURPRISE, Content, held, scale
from pytest_tritonverify.forensics.sampling import numbers, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Pairs, Survey

_FEWEST = 16
_WHOLLY = 0.98
_RESIDUAL = 0.25
_AGREEMENT = 0.8
_PRODUCTS = 256
_LARGEST_INNER = 1 << 15
_BIAS = 1023
_MANTISSA_BITS = 52


class _Format(NamedTuple):
    """A number format that values may have been rounded to.

    Attributes:
        name: What people call it.
        bits: Explicit mantissa bits.
        least: Exponent of its smallest normal number.
        greatest: Exponent above all of its numbers.
    """

    name: str
    bits: int
    least: int
    greatest: int

    def round(self, values: torch.Tensor, *, cut: bool = False) -> torch.Tensor:
        """Round float64 values to the nearest of the format's numbers, ties to even.

        Args:
            values: Finite values.
            cut: Round towards zero instead, as hardware does that leaves out mantissa bits.
        """
        exponent = torch.frexp(values).exponent
        exponent = exponent.long().clamp(min=self.least + 1) - self.bits - 1
        # An exact power of two, by its bits.
        step = (exponent.add(_BIAS) << _MANTISSA_BITS).view(torch.float64)
        steps = values / step
        rounded = (steps.trunc() if cut else steps.round()) * step
        return torch.where(rounded.abs() < 2.0**self.greatest, rounded, values.sign() * math.inf)


# From the fewest bits on: what has few is a number of the formats with more.
_FORMATS = (
    _Format("bfloat16", 7, -126, 128),
    _Format("float16", 10, -14, 16),
)
_TEN_BITS = _Format("TF32 or float16", 10, -126, 128)
_INPUT_FORMATS = (_FORMATS[0], _TEN_BITS, _FORMATS[1])
_SOURCE_BITS = {torch.float64: 52, torch.float32: 23, torch.float16: 10}


def find_rounding(case: FailedOutput, survey: Survey, region: Region) -> Content | None:
    """Explain small errors by a rounding to half precision, of results or of inputs."""
    available = _SOURCE_BITS.get(survey.golden.dtype)
    if available is None or region.special:
        return None
    pairs = _finite(_joined(survey))
    if pairs.count < _FEWEST or not _small_errors(survey, pairs):
        return None
    formats = [form for form in _FORMATS if form.bits < available]
    for form in formats:
        found = _rounded_result(form, pairs)
        if found is not None:
            return found
    return _rounded_inputs(case, survey, _INPUT_FORMATS if available > _TEN_BITS.bits else ())


def _rounded_result(form: _Format, pairs: Pairs) -> Content | None:
    nonzero = pairs.where(pairs.actual != 0)
    on_grid = nonzero.actual == form.round(nonzero.actual)
    by_chance = form.round(nonzero.golden) == nonzero.golden
    rate = (int(by_chance.sum()) + 1) / (nonzero.count + 2)
    if nonzero.count < _FEWEST or not held(on_grid):
        return None
    if nonzero.count * -math.log(rate) < REQUIRED_SURPRISE or rate > 1 - _AGREEMENT:
        return None
    exact = nonzero.actual == form.round(nonzero.golden)
    fact = (
        f"{int(on_grid.sum())} of {nonzero.count} sampled values are {form.name} numbers, "
        f"{int(by_chance.sum())} of the golden's are"
    )
    facts = (fact, f"the values are the golden rounded to {form.name}") if held(exact) else (fact,)
    return _content(form, "Results are", facts, clear=True)


def _rounded_inputs(
    case: FailedOutput, survey: Survey, formats: Sequence[_Format]
) -> Content | None:
    pairs = _finite(survey.failing)
    for form in formats:
        fact = _by_product(case, survey, form)
        if fact is not None:
            return _content(form, "Operands of a matrix product are", (fact,), clear=True)
    for form in formats:
        for position, tensor in enumerate(case.inputs):
            if tensor.numel() != survey.total or not tensor.is_floating_point():
                continue
            fact = _by_input(numbers(take(tensor, pairs.positions)), pairs, form, position)
            if fact is not None:
                return _content(form, "Inputs are", (fact,), clear=False)
    return None


def _by_input(values: torch.Tensor, pairs: Pairs, form: _Format, position: int) -> str | None:
    """Say whether the errors' signs follow those of an input's rounding errors."""
    return _by_signs(values, pairs, form, position, cut=False) or _by_signs(
        values, pairs, form, position, cut=True
    )


def _by_signs(
    values: torch.Tensor, pairs: Pairs, form: _Format, position: int, *, cut: bool
) -> str | None:
    rounding = form.round(values, cut=cut) - values
    error = pairs.actual - pairs.golden
    relative = error.abs() * (rounding != 0)
    counted = relative >= relative.median()
    signs = (error * rounding)[counted].sign()
    if signs.numel() < _FEWEST or float(signs.mean().abs()) < _AGREEMENT:
        return None
    return (
        f"the signs of the greater errors follow the rounding of input {position} to {form.name} "
        f"in {int(max((signs > 0).sum(), (signs < 0).sum()))} of {signs.numel()} elements"
    )


def _by_product(case: FailedOutput, survey: Survey, form: _Format) -> str | None:
    """Say whether a product of two inputs, rounded first, gives the values."""
    matrices = [t for t in case.inputs if t.dim() == 2 and t.is_floating_point()]  # noqa: PLR2004
    if survey.golden.dim() != 2:  # noqa: PLR2004 - matrices
        return None
    rows, columns = survey.golden.shape
    pairs = _finite(survey.failing)
    pairs = pairs.where(torch.arange(pairs.count) < _PRODUCTS)
    row, column = pairs.positions // columns, pairs.positions % columns
    for left in matrices:
        for right in (m for other in matrices if other is not left for m in (other, other.T)):
            inner = left.shape[1]
            fits = left.shape[0] == rows and right.shape == (inner, columns)
            if not fits or inner > _LARGEST_INNER:
                continue
            count = max(1, min(pairs.count, (1 << 21) // inner))
            a = left[row[:count]].double()
            b = right[:, column[:count]].T.double()
            golden, actual = pairs.golden[:count], pairs.actual[:count]
            error = (actual - golden).abs().median()
            true = (a * b).sum(dim=1)
            left_over = min(
                float((actual - _product(form, a, b, cut=cut)).abs().median())
                for cut in (False, True)
            )
            if (
                count >= _FEWEST
                and float((true - golden).abs().median()) <= _RESIDUAL * float(error)
                and left_over <= _RESIDUAL * float(error)
            ):
                return (
                    f"{count} sampled products of the inputs, rounded to {form.name} first, come "
                    f"within {_RESIDUAL:.0%} of the error"
                )
    return None


def _product(form: _Format, left: torch.Tensor, right: torch.Tensor, *, cut: bool) -> torch.Tensor:
    return (form.round(left, cut=cut) * form.round(right, cut=cut)).sum(dim=1)


def _content(form: _Format, what: str, evidence: tuple[str, ...], *, clear: bool) -> Content:
    hint = (
        "allow_tf32 / input_precision of tl.dot" if form is _TEN_BITS else "a cast or accumulator"
    )
    return Content(
        "half_precision",
        f"{what} rounded to {form.name}, a lower precision than the task's: look for {hint}.",
        f"they are rounded to {form.name}",
        evidence,
        everywhere=True,
        confidence="clear" if clear else "likely",
    )


def _small_errors(survey: Survey, pairs: Pairs) -> bool:
    """Tell whether errors are of the size that rounding makes: far below the values."""
    error = (pairs.actual - pairs.golden).abs()
    return bool((error <= 2.0**-4 * (pairs.golden.abs() + scale(survey))).double().mean() > _WHOLLY)


def _joined(survey: Survey) -> Pairs:
    left, right = survey.failing, survey.passing
    return type(left)(
        torch.cat((left.positions, right.positions)),
        torch.cat((left.golden, right.golden)),
        torch.cat((left.actual, right.actual)),
    )


def _finite(pairs: Pairs) -> Pairs:
    return pairs.where(torch.isfinite(pairs.golden) & torch.isfinite(pairs.actual))

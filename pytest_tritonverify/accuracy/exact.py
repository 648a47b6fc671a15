"""Rules without rounding: bits, booleans and integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .chunks import Chunk, chunk_pairs
from .dtypes import bit_view, is_64_bit, kind_of, same_bits, wide_integers
from .offenders import Addressing, Offender, WorstElements
from .verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from .verdict import Category

_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1


def compare_bits(golden: torch.Tensor, actual: torch.Tensor) -> Finding:
    """Compare every element bit for bit: NaN payloads and the sign of zero count.

    Args:
        golden: A tensor of any dtype but a quantised one.
        actual: A tensor of the same dtype and shape.

    Returns:
        The finding; `violation_count` counts elements, not bits.
    """
    violations = 0
    worst = WorstElements()
    words = 2 if golden.is_complex() else 1
    for start, expected, got in chunk_pairs(golden, actual):
        if same_bits(expected, got):
            continue
        differs = (bit_view(expected) != bit_view(got)).view(-1, words).any(dim=-1)
        pairs = expected.view(-1, words), got.view(-1, words)
        violations += _note_first(worst, Chunk(start // words, *pairs), differs, _value_and_bits)
    metrics: dict[str, object] = {
        "category": "non_compute",
        "dtype": str(golden.dtype),
        "violation_count": violations,
        "total_elements": golden.numel(),
    }
    summary = f"{violations} of {golden.numel()} elements differ in their bits (0 allowed)"
    return _finding(metrics, summary, violations, worst, golden)


def compare_bools(golden: torch.Tensor, actual: torch.Tensor) -> Finding:
    """Compare boolean tensors of one shape for equality."""
    violations = 0
    worst = WorstElements()
    for piece in chunk_pairs(golden, actual):
        if torch.equal(piece.golden, piece.actual):
            continue
        differs = piece.golden != piece.actual
        violations += _note_first(worst, piece, differs, torch.Tensor.item)
    metrics: dict[str, object] = {
        "category": "bool_output",
        "dtype": str(golden.dtype),
        "violation_count": violations,
        "total_finite": golden.numel(),
    }
    summary = f"{violations} of {golden.numel()} elements differ (0 allowed)"
    return _finding(metrics, summary, violations, worst, golden)


def compare_integers(
    golden: torch.Tensor, actual: torch.Tensor, tolerance: int, category: Category
) -> Finding:
    """Compare integers by value: no width or sign makes a difference wrap.

    Args:
        golden: An integer tensor.
        actual: An integer tensor of the same shape, of any width.
        tolerance: Greatest difference allowed.
        category: The rule's name for the metrics.

    Returns:
        The finding; `max_abs_diff` is exact, None for empty tensors.
    """
    violations = 0
    greatest = 0
    worst = WorstElements()
    wide = is_64_bit(golden.dtype) or is_64_bit(actual.dtype)
    same_dtype = golden.dtype == actual.dtype
    for piece in chunk_pairs(golden, actual):
        if same_dtype and same_bits(piece.golden, piece.actual):
            continue
        high, low = _distances(piece, wide=wide)
        top = high.max()
        greatest = max(greatest, (int(top) << _HALF_BITS) + int(low[high == top].max()))
        beyond = (high > 0) | (low > tolerance)
        failing = torch.nonzero(beyond).flatten()
        violations += failing.numel()
        severities = high[failing].double() * 2.0**_HALF_BITS + low[failing]
        for chosen in worst.select(severities):
            at = int(failing[chosen])
            got, expected = integer_at(piece.actual, at), integer_at(piece.golden, at)
            worst.add(
                Offender(
                    severity=severities[chosen].item(),
                    position=piece.start + at,
                    got=got,
                    expected=expected,
                    difference=abs(got - expected),
                    allowed=tolerance,
                )
            )
    metrics = _integer_metrics(
        category, str(golden.dtype), violations, golden.numel(), greatest, tolerance
    )
    return _finding(metrics, _integer_summary(metrics), violations, worst, golden)


def compare_python_integers(
    golden: int, actual: int, tolerance: int, category: Category, dtype: str
) -> Finding:
    """Compare two integers of any size; see `compare_integers` and `compare_bits`."""
    difference = abs(golden - actual)
    violations = int(difference > tolerance)
    metrics = _integer_metrics(category, dtype, violations, 1, difference, tolerance)
    summary = _integer_summary(metrics)
    details = (f"got {actual}, expected {golden}, difference {difference}, allowed {tolerance}",)
    if category == "non_compute":
        metrics = {
            "category": category,
            "dtype": dtype,
            "violation_count": violations,
            "total_elements": 1,
        }
    return Finding(violations == 0, metrics, summary, details if violations else ())


def integer_at(values: torch.Tensor, index: int) -> int:
    """Return one element of a flat integer tensor as an exact Python integer."""
    value = int(wide_integers(values[index : index + 1]).item())
    return value + (1 << 64) if value < 0 and not values.dtype.is_signed else value


def _distances(piece: Chunk, *, wide: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `|actual - golden|` as two int64 tensors: `high * 2**32 + low`, low below 2**32.

    Two 64-bit integers can lie further apart than 64 bits can say.
    """
    if not wide:
        distance = wide_integers(piece.actual).sub(wide_integers(piece.golden)).abs_()
        return distance >> _HALF_BITS, distance & _HALF_MASK
    golden_high, golden_low = _halves(piece.golden)
    actual_high, actual_low = _halves(piece.actual)
    high, low = actual_high - golden_high, actual_low - golden_low
    # Negate where negative, then borrow so that low is not negative; shifts round down.
    negative = (high < 0) | ((high == 0) & (low < 0))
    high, low = torch.where(negative, -high, high), torch.where(negative, -low, low)
    return high + (low >> _HALF_BITS), low & _HALF_MASK


def _halves(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Split integers into `high * 2**32 + low` with `0 <= low < 2**32`."""
    bits = wide_integers(values)
    high = bits >> _HALF_BITS
    return high if values.dtype.is_signed else high & _HALF_MASK, bits & _HALF_MASK


def _integer_metrics(
    category: Category, dtype: str, violations: int, total: int, greatest: int, tolerance: int
) -> dict[str, object]:
    return {
        "category": category,
        "dtype": dtype,
        "violation_count": violations,
        "total_finite": total,
        "max_abs_diff": greatest if total else None,
        "tolerance": tolerance,
    }


def _integer_summary(metrics: dict[str, object]) -> str:
    return (
        f"{metrics['violation_count']} of {metrics['total_finite']} elements differ by more than "
        f"{metrics['tolerance']} (0 allowed), greatest difference {metrics['max_abs_diff']}"
    )


def _note_first(
    worst: WorstElements,
    piece: Chunk,
    differs: torch.Tensor,
    show: Callable[[torch.Tensor], object],
) -> int:
    """Keep the first differing elements of a piece; return how many differ."""
    failing = torch.nonzero(differs).flatten()
    for at in failing[: worst.room].tolist():
        worst.add(
            Offender(
                severity=0.0,
                position=piece.start + at,
                got=show(piece.actual[at]),
                expected=show(piece.golden[at]),
            )
        )
    return failing.numel()


def _value_and_bits(element: torch.Tensor) -> str:
    """Return an element of one number, or of two parts, with its bits: `-0.0 (0x80000000)`."""
    digits = 2 * element.element_size()
    mask = (1 << 4 * digits) - 1
    bits = " ".join(f"0x{int(word) & mask:0{digits}x}" for word in bit_view(element).tolist())
    kind = kind_of(element.dtype)
    if kind is None:
        return bits
    value: object = integer_at(element, 0) if kind == "int" else element[0].item()
    if element.numel() > 1:
        value = complex(element[0].item(), element[1].item())
    return f"{value} ({bits})"


def _finding(
    metrics: dict[str, object],
    summary: str,
    violations: int,
    worst: WorstElements,
    golden: torch.Tensor,
) -> Finding:
    details = worst.lines(Addressing(tuple(golden.shape)), violations)
    return Finding(violations == 0, metrics, summary, details)

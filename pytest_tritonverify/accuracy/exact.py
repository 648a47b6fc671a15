"""Rules without rounding: bits, booleans and integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import Chunk, over_chunks
from pytest_tritonverify.accuracy.distances import integer_at, integer_distances
from pytest_tritonverify.accuracy.dtypes import bit_view, kind_of, same_bits
from pytest_tritonverify.accuracy.offenders import Addressing, Offender, WorstElements, greatest
from pytest_tritonverify.accuracy.verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_tritonverify.accuracy.distances import Distances
    from pytest_tritonverify.accuracy.verdict import Category


def compare_bits(golden: torch.Tensor, actual: torch.Tensor) -> Finding:
    """Compare every element bit for bit: NaN payloads and the sign of zero count.

    Args:
        golden: A tensor of any dtype but a quantised one.
        actual: A tensor of the same dtype and shape.

    Returns:
        The finding; `violation_count` counts elements, not bits.
    """
    words = 2 if golden.is_complex() else 1

    def scan(pieces: Iterator[Chunk]) -> _ExactTally:
        tally = _ExactTally()
        for start, expected, got in pieces:
            if same_bits(expected, got):
                continue
            differs = (bit_view(expected) != bit_view(got)).view(-1, words).any(dim=-1)
            pairs = expected.view(-1, words), got.view(-1, words)
            tally.add_first(Chunk(start // words, *pairs), differs, _value_and_bits)
        return tally

    found = _merged(over_chunks(golden, actual, scan))
    metrics: dict[str, object] = {
        "category": "non_compute",
        "dtype": str(golden.dtype),
        "violation_count": found.violations,
        "total_elements": golden.numel(),
    }
    summary = f"{found.violations} of {golden.numel()} elements differ in their bits (0 allowed)"
    return found.finding(metrics, summary, golden)


def compare_bools(golden: torch.Tensor, actual: torch.Tensor) -> Finding:
    """Compare boolean tensors of one shape for equality."""

    def scan(pieces: Iterator[Chunk]) -> _ExactTally:
        tally = _ExactTally()
        for piece in pieces:
            if not same_bits(piece.golden, piece.actual):
                tally.add_first(piece, piece.golden != piece.actual, torch.Tensor.item)
        return tally

    found = _merged(over_chunks(golden, actual, scan))
    metrics: dict[str, object] = {
        "category": "bool_output",
        "dtype": str(golden.dtype),
        "violation_count": found.violations,
        "total_finite": golden.numel(),
    }
    summary = f"{found.violations} of {golden.numel()} elements differ (0 allowed)"
    return found.finding(metrics, summary, golden)


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
    same_dtype = golden.dtype == actual.dtype

    def scan(pieces: Iterator[Chunk]) -> _ExactTally:
        tally = _ExactTally()
        for piece in pieces:
            if not (same_dtype and same_bits(piece.golden, piece.actual)):
                tally.add_integers(piece, tolerance)
        return tally

    found = _merged(over_chunks(golden, actual, scan))
    metrics = _integer_metrics(
        category, str(golden.dtype), found.violations, golden.numel(), found.greatest, tolerance
    )
    return found.finding(metrics, _integer_summary(metrics), golden)


@dataclass
class _ExactTally:
    """What was found in some pieces."""

    violations: int = 0
    greatest: int = 0
    worst: WorstElements = field(default_factory=WorstElements)

    def merge(self, later: _ExactTally) -> None:
        self.violations += later.violations
        self.greatest = max(self.greatest, later.greatest)
        self.worst.merge(later.worst)

    def add_first(
        self, piece: Chunk, differs: torch.Tensor, show: Callable[[torch.Tensor], object]
    ) -> None:
        """Take in a piece with its differing elements, of which the first are kept."""
        failing = torch.nonzero(differs).flatten()
        self.violations += failing.numel()
        for at in failing[: self.worst.room].tolist():
            self.worst.add(
                Offender(
                    severity=0.0,
                    position=piece.start + at,
                    got=show(piece.actual[at]),
                    expected=show(piece.golden[at]),
                )
            )

    def add_integers(self, piece: Chunk, tolerance: int) -> None:
        """Take in a piece of integers, of which the furthest apart are kept."""
        for start, distances in integer_distances(piece.golden, piece.actual):
            self.greatest = max(self.greatest, distances.greatest)
            if distances.greatest > tolerance:
                self._add_failing(piece, start, distances, tolerance)

    def _add_failing(self, piece: Chunk, start: int, distances: Distances, tolerance: int) -> None:
        failing = distances.beyond(tolerance)
        self.violations += failing.numel()
        if self.worst.outrank(distances.greatest):
            return
        for chosen in greatest(distances.ranks(failing), self.worst.limit):
            at = start + int(failing[chosen])
            got, expected = integer_at(piece.actual, at), integer_at(piece.golden, at)
            difference = abs(got - expected)
            self.worst.add(
                Offender(
                    severity=difference,
                    position=piece.start + at,
                    got=got,
                    expected=expected,
                    difference=difference,
                    allowed=tolerance,
                )
            )

    def finding(self, metrics: dict[str, object], summary: str, golden: torch.Tensor) -> Finding:
        details = self.worst.lines(Addressing(tuple(golden.shape)), self.violations)
        return Finding(self.violations == 0, metrics, summary, details)


def _merged(parts: list[_ExactTally]) -> _ExactTally:
    first, *others = parts
    for later in others:
        first.merge(later)
    return first


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

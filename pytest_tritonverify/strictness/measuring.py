"""What the gates look at, measured in two passes of bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import serial_operators
from pytest_tritonverify.accuracy.offenders import Addressing
from pytest_tritonverify.strictness.formats import Format, format_of
from pytest_tritonverify.strictness.gates import Tolerances, tolerances
from pytest_tritonverify.strictness.pieces import pieces, wide
from pytest_tritonverify.strictness.slices import Slice, SliceTally

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.strictness.limits import StrictLimits

    Alter = Callable[[int, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Golden:
    """The size of a golden, over what is finite on all sides.

    Attributes:
        greatest: The greatest magnitude.
        rms: The root mean square.
        magnitude: The sum of the magnitudes.
        judged: How many numbers there are.
        own_error: The root mean square error of the reference's output.
        trusted: The reference's output agrees with the precise golden by the standard's tolerance
            in 99 % of the numbers; otherwise one of the two is not what it should be.
    """

    greatest: float
    rms: float
    magnitude: float
    judged: int
    own_error: float
    trusted: bool


@dataclass(frozen=True)
class Worst:
    """The element that exceeds its limit by most, or comes nearest to it.

    Attributes:
        severity: Its error, in what it is allowed.
        index: Where it stands, for people.
        error, allowed, got, expected: The numbers.
    """

    severity: float
    index: str
    error: float
    allowed: float
    got: float
    expected: float


@dataclass(frozen=True)
class Measured:
    """What was measured of an output.

    Attributes:
        form: The golden's format.
        golden: The size of the precise golden.
        tolerances: What elements are allowed.
        judged: Numbers that are finite on all sides.
        matched: Those within their tolerance.
        worst: The element nearest to its limit or furthest above it; None where none errs.
        worst_slice: The slice with the greatest share of failing elements.
        error: The root mean square error.
        bias: The relative error of the output as a whole.
        own_error, own_bias: The same of the reference; None without a precise golden.
        no_precise_golden: Why there is none; empty where there is one.
    """

    form: Format
    golden: Golden
    tolerances: Tolerances
    judged: int
    matched: int
    worst: Worst | None
    worst_slice: Slice | None
    error: float
    bias: float
    own_error: float | None
    own_bias: float | None
    no_precise_golden: str = ""


@dataclass(frozen=True)
class Reference:
    """A reference's output, and what its true values are.

    Attributes:
        golden: The output, floating point or complex, of any strides.
        precise: The same computed more precisely, of the same shape; the golden itself where
            that could not be.
        missing: Why it could not; empty where it could.
    """

    golden: torch.Tensor
    precise: torch.Tensor
    missing: str = ""


def size_up(reference: Reference) -> Golden:
    """Measure the golden: the first pass."""
    with serial_operators():
        return _size_up(reference)


def _size_up(reference: Reference) -> Golden:
    form = format_of(reference.golden.dtype)
    parts: list[tuple[float, float, float]] = []
    judged = agreeing = 0
    own_norm = 0.0
    for _, (given, exact) in pieces((reference.golden, reference.precise)):
        own, true = wide(given), wide(exact)
        finite = torch.isfinite(own) & torch.isfinite(true)
        if not bool(finite.all()):
            own, true = own[finite], true[finite]
        if not true.numel():
            continue
        judged += true.numel()
        magnitudes = true.abs()
        error = own.sub(true).abs_()
        own_norm = math.hypot(own_norm, float(torch.linalg.vector_norm(error)))
        agreeing += int(torch.count_nonzero(error <= magnitudes * form.rtol + form.atol))
        greatest = float(magnitudes.max())
        # Squares of numbers up to 1e308 don't overflow when they are scaled first.
        scaled = magnitudes.div_(greatest or 1.0)
        parts.append((greatest, float(scaled.sum()), float(scaled.square_().sum())))
    greatest = max((part[0] for part in parts), default=0.0)
    own_error = own_norm / math.sqrt(judged or 1)
    trusted = agreeing * 100 >= judged * 99
    if not greatest:
        return Golden(0.0, 0.0, 0.0, judged, own_error, trusted)
    squares = math.fsum(square * (top / greatest) ** 2 for top, _, square in parts)
    total = math.fsum(share * (top / greatest) for top, share, _ in parts)
    return Golden(
        greatest=greatest,
        rms=greatest * math.sqrt(squares / judged),
        magnitude=greatest * total,
        judged=judged,
        own_error=own_error,
        trusted=trusted,
    )


def measure(
    reference: Reference,
    golden: Golden,
    actual: torch.Tensor,
    limits: StrictLimits,
    alter: Alter | None = None,
) -> Measured:
    """Measure an output: the second pass.

    Args:
        reference: What it is compared with.
        golden: The size of that; see `size_up`.
        actual: The output, of the reference's family and shape, of any strides.
        limits: The thresholds.
        alter: Makes another output of this one on the way: called with the flat position of a
            piece's first number and its values.
    """
    form = format_of(reference.golden.dtype)
    shape = tuple(reference.golden.shape)
    parts = 2 if reference.golden.is_complex() else 1
    allowed = tolerances(form, golden, limits)
    tally = _Tally(allowed, SliceTally(shape, parts, limits), golden.greatest or 1.0)
    with serial_operators():
        for start, (given, exact, got) in pieces((reference.golden, reference.precise, actual)):
            found = got if alter is None else alter(start, got)
            tally.add(start, wide(given), wide(exact), wide(found))
    addressing = Addressing(shape, complex_parts=parts > 1)
    count, scale = tally.judged, tally.scale
    magnitude = golden.magnitude / scale
    own_error = own_bias = None
    if not reference.missing:
        own_error = scale * math.sqrt(tally.own_squares / count) if count else 0.0
        own_bias = tally.own_signed / magnitude if magnitude else 0.0
    return Measured(
        form=form,
        golden=golden,
        tolerances=allowed,
        judged=count,
        matched=tally.matched,
        worst=tally.worst_at(addressing),
        worst_slice=tally.slices.finish(),
        error=scale * math.sqrt(tally.squares / count) if count else 0.0,
        bias=tally.signed / magnitude if magnitude else 0.0,
        own_error=own_error,
        own_bias=own_bias,
        no_precise_golden=reference.missing,
    )


class _Tally:
    """Sums over the pieces; errors are held in units of the greatest golden."""

    def __init__(self, allowed: Tolerances, slices: SliceTally, scale: float) -> None:
        self.slices = slices
        self.scale = scale
        self.judged = self.matched = 0
        self.squares = self.own_squares = self.signed = self.own_signed = 0.0
        self._allowed = allowed
        self._worst: tuple[float, int, float, float, float, float] | None = None

    def add(self, start: int, given: torch.Tensor, exact: torch.Tensor, got: torch.Tensor) -> None:
        count = exact.numel()
        finite = torch.isfinite(given) & torch.isfinite(exact) & torch.isfinite(got)
        skipped = torch.nonzero(~finite).flatten()
        if skipped.numel():
            given, exact, got = (x.where(finite, x.new_zeros(())) for x in (given, exact, got))
        self.judged += count - skipped.numel()
        error, own = got.sub(exact), given.sub(exact)
        sign = exact.sign()
        scaled, own_scaled = error / self.scale, own / self.scale
        self.signed += float(torch.dot(scaled, sign))
        self.own_signed += float(torch.dot(own_scaled, sign))
        self.squares += float(torch.dot(scaled, scaled))
        self.own_squares += float(torch.dot(own_scaled, own_scaled))
        error.abs_()
        own.abs_()
        tolerance = exact.abs().mul_(self._allowed.rtol).add_(self._allowed.atol)
        limit = (tolerance * self._allowed.cap_tolerances).clamp_(min=self._allowed.cap).add_(own)
        failing = torch.nonzero(~(error <= tolerance.add_(own))).flatten()
        self.matched += count - skipped.numel() - failing.numel()
        self.slices.add(failing + start, skipped + start, start, count)
        self._raise_worst(start, error / limit, (error, limit, got, exact))

    def _raise_worst(
        self, start: int, severity: torch.Tensor, numbers: tuple[torch.Tensor, ...]
    ) -> None:
        at = int(severity.argmax())
        most = float(severity[at])
        if most > (self._worst[0] if self._worst else 0.0):
            error, limit, got, exact = (float(values[at]) for values in numbers)
            self._worst = most, start + at, error, limit, got, exact

    def worst_at(self, addressing: Addressing) -> Worst | None:
        if self._worst is None:
            return None
        severity, position, error, allowed, got, expected = self._worst
        return Worst(severity, addressing.index(position), error, allowed, got, expected)

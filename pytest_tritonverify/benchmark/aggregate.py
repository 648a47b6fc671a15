"""From the measurements of all cases to the figures of a report, by the documented rules."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeGuard

    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, SideMeasurement

SpeedupClass = Literal["none", "nan", "inf", "negative", "zero", "valid"]

ABNORMAL: tuple[SpeedupClass, ...] = ("nan", "inf", "zero", "negative", "none")
"""Classes that have a list of case numbers in a report, in the documented order of the keys."""


def quotient(over: float | None, under: float | None) -> float | None:
    """Divide latencies as IEEE 754 does; None where either one was not measured.

    Python raises on a division by 0.0, which is a result here: 1.0 / 0.0 is infinite, and
    0.0 / 0.0 is no number.
    """
    if over is None or under is None:
        return None
    if under != 0:
        return over / under
    if over == 0 or math.isnan(over):
        return math.nan
    return math.copysign(math.inf, over) * math.copysign(1.0, under)


def classify(speedup: float | None) -> SpeedupClass:
    """Return the class of a case's speed-up. The first one that fits, in the documented order."""
    if speedup is None:
        return "none"
    if math.isnan(speedup):
        return "nan"
    if math.isinf(speedup):
        return "inf"
    if speedup < 0:
        return "negative"
    return "zero" if speedup == 0 else "valid"


def geometric_mean(speedups: Sequence[float]) -> float | None:
    """Return the geometric mean of positive numbers, or None of none.

    By logarithms, since the product of a few large or small speed-ups leaves a float's range.
    """
    if not speedups:
        return None
    return math.exp(math.fsum(map(math.log, speedups)) / len(speedups))


@dataclass(frozen=True, kw_only=True)
class CaseSpeedup:
    """The speed-up of one case that passed.

    Attributes:
        case_idx: number of the case.
        value: reference's latency over the implementation's, whatever came out; None where either
            one is missing.
        kind: its class.
    """

    case_idx: int
    value: float | None
    kind: SpeedupClass

    @property
    def valid(self) -> float | None:
        """The value where it enters the mean, None elsewhere: what a report holds."""
        return self.value if self.kind == "valid" else None


@dataclass(frozen=True, kw_only=True)
class SideTotals:
    """One side over all cases that passed.

    Attributes:
        latency_ms: arithmetic mean of the latencies that are times, zeros included; None where
            there is none.
        peak_memory_mb: the largest peak in MiB; None where none was measured.
        operators: milliseconds per forward by kernel name, the arithmetic mean over the cases that
            were measured; a kernel that a case doesn't launch counts as 0 there.
    """

    latency_ms: float | None
    peak_memory_mb: float | None
    operators: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """All cases in the documented figures.

    Attributes:
        total_cases, passed_cases, failed_cases: counts. A case whose times are abnormal has passed:
            the operator works, and only the measurement can't be relied on.
        speedups: one for each case that passed, by its number.
        framework: the reference's side.
        implementation: the implementation's side.
        speedup: geometric mean over the valid ones, None where there is none.
    """

    total_cases: int
    passed_cases: int
    failed_cases: int
    speedups: Mapping[int, CaseSpeedup]
    framework: SideTotals
    implementation: SideTotals
    speedup: float | None

    def indices(self, kind: SpeedupClass) -> list[int]:
        """Return the numbers of the cases of a class, ascending. Failed ones are in no class."""
        return sorted(found.case_idx for found in self.speedups.values() if found.kind == kind)


def total(cases: Sequence[CaseMeasurement]) -> Totals:
    """Draw the measurements of all cases together.

    Args:
        cases: one for each case, in any order.
    """
    passed = [case for case in cases if case.passed]
    speedups = {case.case_idx: case_speedup(case) for case in passed}
    valid = (speedups[case_idx].valid for case_idx in sorted(speedups))
    return Totals(
        total_cases=len(cases),
        passed_cases=len(passed),
        failed_cases=len(cases) - len(passed),
        speedups=speedups,
        framework=_side(case.framework for case in passed),
        implementation=_side(case.implementation for case in passed),
        speedup=geometric_mean([value for value in valid if value is not None]),
    )


def case_speedup(case: CaseMeasurement) -> CaseSpeedup:
    """Return the speed-up of a case that passed."""
    value = quotient(
        case.framework.latency_ms if case.framework else None,
        case.implementation.latency_ms if case.implementation else None,
    )
    return CaseSpeedup(case_idx=case.case_idx, value=value, kind=classify(value))


def is_time(value: float | None) -> TypeGuard[float]:
    """Say whether a figure was measured and can be one: neither negative nor without end."""
    return value is not None and math.isfinite(value) and value >= 0


def _side(sides: Iterable[SideMeasurement | None]) -> SideTotals:
    # Unlike fmean, mean is exact within: a sum may leave a float's range where the mean does not.
    there = [side for side in sides if side is not None]
    latencies = [side.latency_ms for side in there if is_time(side.latency_ms)]
    peaks = [side.peak_memory_mb for side in there if is_time(side.peak_memory_mb)]
    # One that launches nothing was measured too.
    measured = [side.operators for side in there if is_time(side.latency_ms)]
    names = dict.fromkeys(name for operators in measured for name in operators)
    return SideTotals(
        latency_ms=statistics.mean(latencies) if latencies else None,
        peak_memory_mb=max(peaks) if peaks else None,
        operators={
            name: statistics.mean(operators.get(name, 0.0) for operators in measured)
            for name in names
        },
    )

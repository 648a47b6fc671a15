"""The NPU Benchmark standard's three-way test, the fallback for formats the first one lacks.

All three must hold over the finite elements:

1. `max_error_cap`: every `|diff| <= atol + rtol * |golden|`;
2. `required_matched_ratio`: 90 % match, where a golden below `small_value_threshold` in magnitude
   matches iff `|diff| <= small_value_error`, and another iff
   `|diff| / (|golden| + 1e-7) <= rel_threshold`;
3. `MERE`: the mean of `|diff| / (|golden| + 1e-7)` is below `rel_threshold`.

Each element is evaluated in float32, in that order of operations, and in float64 where the golden
(or a part of it) is float64; the mean is accumulated in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch

from pytest_tritonverify.accuracy.floats import Block, blocks, greater
from pytest_tritonverify.accuracy.limits import (
    MERE_EPSILON,
    NPU_REQUIRED_PERCENT,
    CapLimits,
    NpuLimits,
)
from pytest_tritonverify.accuracy.offenders import Addressing, Offender, WorstElements
from pytest_tritonverify.accuracy.verdict import Finding

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.floats import Elements
    from pytest_tritonverify.accuracy.workspace import Workspace


class _Measured(NamedTuple):
    """What the three tests look at, element by element: `[n]` each, in one dtype."""

    magnitude: torch.Tensor
    difference: torch.Tensor
    relative: torch.Tensor
    cap: torch.Tensor


@dataclass
class NpuBenchmarkTally:
    """Counts elements against the three-way test; see `floats.FloatTally`.

    Attributes:
        limits: The matching thresholds' row.
        cap: The `max_error_cap` row.
    """

    limits: NpuLimits
    cap: CapLimits
    _total: int = 0
    _matched: int = 0
    _small: int = 0
    _violations: int = 0
    _relative_sums: list[float] = field(default_factory=list)
    _max_abs_diff: float = 0.0
    _failing: int = 0
    _worst: WorstElements = field(default_factory=WorstElements)

    def fresh(self) -> NpuBenchmarkTally:
        """Return a tally of the same rule that has taken in nothing yet."""
        return NpuBenchmarkTally(self.limits, self.cap)

    def merge(self, later: NpuBenchmarkTally) -> None:
        """Take in what was found in a later part of the tensors."""
        self._total += later._total
        self._matched += later._matched
        self._small += later._small
        self._violations += later._violations
        self._relative_sums += later._relative_sums
        self._max_abs_diff = greater(self._max_abs_diff, later._max_abs_diff)
        self._failing += later._failing
        self._worst.merge(later._worst)

    def add_equal(self, values: torch.Tensor, finite: int) -> None:
        """Take in a piece that is equal on both sides: all match, all errors are zero."""
        self._total += finite
        self._matched += finite
        magnitude = _evaluated(values).abs()
        self._small += int(torch.count_nonzero(magnitude < self.limits.small_value_threshold))

    def add(self, elements: Elements) -> None:
        """Take in elements that are finite on both sides, placeholders apart."""
        self._total += elements.count
        self._matched += elements.count
        self._max_abs_diff = greater(self._max_abs_diff, elements.greatest)
        measured = self._measure(elements.golden, elements.difference.values, elements.workspace)
        self._relative_sums.append(float(measured.relative.sum(dtype=torch.float64)))
        small = self._indices_of_small(measured.magnitude)
        self._small += small.numel()
        # Where no other element comes near a bound, the small ones are all that is left to test.
        clear = self._clear(measured, elements.workspace)
        for block in blocks(elements, small if clear else None):
            self._evaluate(elements, block)

    def _measure(
        self, golden: torch.Tensor, difference: torch.Tensor, workspace: Workspace
    ) -> _Measured:
        magnitude, relative, cap = (
            workspace.take(purpose, golden.numel(), golden.dtype)
            for purpose in ("magnitude", "relative", "cap")
        )
        torch.abs(golden, out=magnitude)
        torch.add(magnitude, MERE_EPSILON, out=relative)
        torch.div(difference, relative, out=relative)
        torch.mul(magnitude, self.cap.rtol, out=cap).add_(self.cap.atol)
        return _Measured(magnitude, difference, relative, cap)

    def _indices_of_small(self, magnitude: torch.Tensor) -> torch.Tensor:
        if float(magnitude.min()) >= self.limits.small_value_threshold:
            return torch.empty(0, dtype=torch.int64)
        return torch.nonzero(magnitude < self.limits.small_value_threshold).flatten()

    def _clear(self, measured: _Measured, workspace: Workspace) -> bool:
        """Tell whether all elements are within the cap and all relative errors below the bound."""
        if not float(measured.relative.max()) < self.limits.rel_threshold:
            return False
        cap = measured.cap
        excess = workspace.take("excess", cap.numel(), cap.dtype)
        return float(torch.sub(measured.difference, cap, out=excess).max()) <= 0

    def _evaluate(self, elements: Elements, block: Block) -> None:
        """Evaluate a block as the standard says."""
        limits = self.limits
        measured = self._measure(block.golden, block.difference, elements.workspace)
        magnitude, difference, relative, cap = measured
        small = magnitude < limits.small_value_threshold
        matches = torch.where(
            small, difference <= limits.small_value_error, relative <= limits.rel_threshold
        )
        within = difference <= cap
        self._matched -= int(torch.count_nonzero(~matches))
        self._violations += int(torch.count_nonzero(~within))
        # An element that matches may still be what lifts the mean to its bound.
        sound = matches & within & (relative < limits.rel_threshold)
        failing = sound.numel() - int(torch.count_nonzero(sound))
        if not failing:
            return
        self._failing += failing
        severities = (difference / cap).masked_fill_(sound, -math.inf)
        for at in self._worst.select(severities):
            index = int(block.indices[at])
            found = difference[at].item()
            self._worst.add(
                Offender(
                    severity=severities[at].item(),
                    position=elements.start + index,
                    got=elements.original[index].item(),
                    expected=elements.golden[index].item(),
                    difference=found,
                    allowed=self._allowed(magnitude[at].item(), found, cap[at].item()),
                )
            )

    def _allowed(self, magnitude: float, difference: float, cap: float) -> float:
        """Return the bound that an element exceeds, the cap before the matching tolerance."""
        if not difference <= cap:
            return cap
        limits = self.limits
        if magnitude < limits.small_value_threshold and difference > limits.small_value_error:
            return limits.small_value_error
        return limits.rel_threshold * (magnitude + MERE_EPSILON)

    def finding(self, addressing: Addressing) -> Finding:
        """Return the verdict, with the documented metrics; without elements all three hold."""
        total = self._total
        mere = _sum(self._relative_sums) / total if total else None
        checks = {
            "max_error_cap": self._violations == 0,
            "required_matched_ratio": self._matched * 100 >= NPU_REQUIRED_PERCENT * total,
            "MERE": mere is None or mere < self.limits.rel_threshold,
        }
        metrics: dict[str, object] = {
            "matched_ratio": self._matched / total if total else None,
            "max_abs_diff": _finite(self._max_abs_diff) if total else None,
            "MERE": _finite(mere),
            "rel_threshold": self.limits.rel_threshold,
            "small_value_threshold": self.limits.small_value_threshold,
            "small_value_error": self.limits.small_value_error,
            "atol": self.cap.atol,
            "rtol": self.cap.rtol,
            "max_error_cap_violation_count": self._violations,
            "required_matched_ratio": NPU_REQUIRED_PERCENT / 100,
            "total_finite": total,
            "matched_count": self._matched,
            "small_count": self._small,
            "normal_count": total - self._small,
            "checks": checks,
        }
        passed = all(checks.values())
        summary = (
            f"{self._matched} of {total} finite elements match "
            f"(required ratio {NPU_REQUIRED_PERCENT / 100}), "
            f"{self._violations} beyond the error cap (0 allowed), "
            f"mean relative error {mere} (below {self.limits.rel_threshold} required)"
        )
        details = () if passed else self._details(addressing, checks)
        return Finding(passed, metrics, summary, details)

    def _details(self, addressing: Addressing, checks: dict[str, bool]) -> tuple[str, ...]:
        limits = self.limits
        broken = ", ".join(name for name, holds in checks.items() if not holds)
        rule = (
            f"rule: every |diff| <= {self.cap.atol} + {self.cap.rtol}*|golden|; "
            f"{NPU_REQUIRED_PERCENT} % with |diff|/(|golden| + {MERE_EPSILON}) <= "
            f"{limits.rel_threshold}, or |diff| <= {limits.small_value_error} where |golden| < "
            f"{limits.small_value_threshold}; mean relative error < {limits.rel_threshold}"
        )
        return (
            f"broken: {broken}",
            rule,
            f"greatest difference: {self._max_abs_diff}",
            *self._worst.lines(addressing, self._failing),
        )


def _evaluated(values: torch.Tensor) -> torch.Tensor:
    """Return values in the dtype they are judged in: precision is raised, never lowered."""
    return values if values.dtype == torch.float64 else values.to(torch.float32)


def _sum(values: list[float]) -> float:
    """Return the sum of non-negative numbers, rounded once, whatever their order."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

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
from typing import TYPE_CHECKING

import torch

from .floats import position_of
from .limits import MERE_EPSILON, NPU_REQUIRED_PERCENT, CapLimits, NpuLimits
from .offenders import Addressing, Offender, WorstElements
from .verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    _relative_sum: float = 0.0
    _max_abs_diff: float = 0.0
    _failing: int = 0
    _worst: WorstElements = field(default_factory=WorstElements)

    def add_equal(self, values: torch.Tensor, finite: int) -> None:
        """Take in a piece that is equal on both sides: all match, all errors are zero."""
        self._total += finite
        self._matched += finite
        magnitude = _evaluated(values).abs()
        self._small += int(torch.count_nonzero(magnitude < self.limits.small_value_threshold))

    def add(
        self,
        positions: torch.Tensor | int,
        golden: torch.Tensor,
        actual: torch.Tensor,
        original: torch.Tensor,
    ) -> None:
        """Take in elements that are finite on both sides."""
        limits = self.limits
        expected = _evaluated(golden)
        difference = (_evaluated(actual) - expected).abs_()
        magnitude = expected.abs()
        relative = difference / (magnitude + MERE_EPSILON)
        small = magnitude < limits.small_value_threshold
        matches = torch.where(
            small, difference <= limits.small_value_error, relative <= limits.rel_threshold
        )
        cap = magnitude * self.cap.rtol + self.cap.atol
        within = difference <= cap
        self._total += difference.numel()
        self._small += int(torch.count_nonzero(small))
        self._matched += int(torch.count_nonzero(matches))
        self._violations += int(torch.count_nonzero(~within))
        self._relative_sum += float(relative.sum(dtype=torch.float64))
        greatest = float(difference.max())
        if not greatest <= self._max_abs_diff:
            self._max_abs_diff = greatest
        # An element that matches may still be what lifts the mean to its bound.
        failing = torch.nonzero(~(matches & within & (relative < limits.rel_threshold))).flatten()
        if failing.numel():
            self._failing += failing.numel()
            values = (magnitude, difference, cap, golden, original)
            self._examine(positions, failing, [value[failing] for value in values])

    def _examine(
        self,
        positions: torch.Tensor | int,
        failing: torch.Tensor,
        values: Sequence[torch.Tensor],
    ) -> None:
        magnitude, difference, cap, golden, original = values
        severities = difference / cap
        for chosen in self._worst.select(severities):
            size = magnitude[chosen].item()
            found = difference[chosen].item()
            self._worst.add(
                Offender(
                    severity=severities[chosen].item(),
                    position=position_of(positions, int(failing[chosen])),
                    got=original[chosen].item(),
                    expected=golden[chosen].item(),
                    difference=found,
                    allowed=self._allowed(size, found, cap[chosen].item()),
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
        mere = self._relative_sum / total if total else None
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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

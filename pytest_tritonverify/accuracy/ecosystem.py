"""The open ecosystem accuracy standard: mixed tolerance and an absolute limit per element.

Evaluated in float64 whatever the outputs' dtype is. An element matches iff
`|actual - golden| <= atol + rtol * |golden|`; 99 % of the finite elements must match, and none may
exceed `max(max_abs_error_limit, 32 * ULP(|golden|), atol + rtol * |golden|)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from .floats import position_of
from .limits import ECO_LIMIT_ULPS, ECO_REQUIRED_PERCENT, EcoLimits, FloatFormat
from .offenders import Addressing, Offender, WorstElements
from .ulp import ulp
from .verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class EcosystemTally:
    """Counts elements against the first standard; see `floats.FloatTally`.

    Attributes:
        dtype: The golden's dtype as text, for the metrics.
        limits: The table's row.
        form: The golden's number format.
    """

    dtype: str
    limits: EcoLimits
    form: FloatFormat
    _total: int = 0
    _matched: int = 0
    _over: int = 0
    _max_abs_diff: float = 0.0
    _worst: WorstElements = field(default_factory=WorstElements)

    def add_equal(self, values: torch.Tensor, finite: int) -> None:  # noqa: ARG002 - protocol
        """Take in a piece that is equal on both sides: every finite element matches."""
        self._total += finite
        self._matched += finite

    def add(
        self,
        positions: torch.Tensor | int,
        golden: torch.Tensor,
        actual: torch.Tensor,
        original: torch.Tensor,
    ) -> None:
        """Take in elements that are finite on both sides."""
        expected = golden.to(torch.float64)
        difference = actual.to(torch.float64).sub_(expected).abs_()
        magnitude = expected.abs()
        # rtol is a power of two, so the product is exact and the sum is rounded once.
        tolerance = magnitude * self.limits.rtol + self.limits.atol
        # A difference that overflowed in the cast is infinite or NaN: neither is "<=".
        matches = difference <= tolerance
        count = difference.numel()
        matched = int(torch.count_nonzero(matches))
        self._total += count
        self._matched += matched
        # max() of the tensor propagates NaN, max() of Python does not.
        greatest = float(difference.max())
        if not greatest <= self._max_abs_diff:
            self._max_abs_diff = greatest
        if matched < count:
            failing = torch.nonzero(~matches).flatten()
            self._examine(
                positions,
                failing,
                (
                    magnitude[failing],
                    difference[failing],
                    tolerance[failing],
                    golden[failing],
                    original[failing],
                ),
            )

    def _examine(
        self,
        positions: torch.Tensor | int,
        failing: torch.Tensor,
        values: Sequence[torch.Tensor],
    ) -> None:
        """Hold the unmatched elements against the absolute limit and keep the worst."""
        magnitude, difference, tolerance, golden, original = values
        limit = (ulp(magnitude, self.form) * ECO_LIMIT_ULPS).clamp_(
            min=self.limits.max_abs_error_limit
        )
        limit = torch.maximum(limit, tolerance)
        within = difference <= limit
        self._over += int(torch.count_nonzero(~within))
        severities = difference / limit
        for chosen in self._worst.select(severities):
            allowed = tolerance if within[chosen] else limit
            self._worst.add(
                Offender(
                    severity=severities[chosen].item(),
                    position=position_of(positions, int(failing[chosen])),
                    got=original[chosen].item(),
                    expected=golden[chosen].item(),
                    difference=difference[chosen].item(),
                    allowed=allowed[chosen].item(),
                )
            )

    def finding(self, addressing: Addressing) -> Finding:
        """Return the verdict, with metrics as documented: ratios are null without elements."""
        ratio_holds = self._matched * 100 >= ECO_REQUIRED_PERCENT * self._total
        passed = ratio_holds and self._over == 0
        required = ECO_REQUIRED_PERCENT / 100
        measured = self._total > 0 and math.isfinite(self._max_abs_diff)
        metrics: dict[str, object] = {
            "category": "eco_open_source",
            "dtype": self.dtype,
            "matched_ratio": self._matched / self._total if self._total else None,
            "required_matched_ratio": required,
            "matched_count": self._matched,
            "total_finite": self._total,
            "max_abs_diff": self._max_abs_diff if measured else None,
            "rtol": self.limits.rtol,
            "atol": self.limits.atol,
            "max_abs_error_limit": self.limits.max_abs_error_limit,
            "over_count": self._over,
            "checks": {"matched_ratio": ratio_holds, "abs_limit": self._over == 0},
        }
        summary = (
            f"{self._matched} of {self._total} finite elements within "
            f"atol + rtol*|golden| (required ratio {required}), "
            f"{self._over} above the absolute limit (0 allowed)"
        )
        details = () if passed else self._details(addressing)
        return Finding(passed, metrics, summary, details)

    def _details(self, addressing: Addressing) -> tuple[str, ...]:
        limits = self.limits
        rule = (
            f"rule: |actual - golden| <= {limits.atol} + {limits.rtol}*|golden| for "
            f"{ECO_REQUIRED_PERCENT} % of the elements, and for each at most "
            f"max({limits.max_abs_error_limit}, {ECO_LIMIT_ULPS}*ULP(|golden|), that tolerance)"
        )
        return (
            rule,
            f"greatest difference: {self._max_abs_diff}",
            *self._worst.lines(addressing, self._total - self._matched),
        )

"""The open ecosystem accuracy standard: mixed tolerance and an absolute limit per element.

Evaluated in float64 whatever the outputs' dtype is. An element matches iff
`|actual - golden| <= atol + rtol * |golden|`; 99 % of the finite elements must match, and none may
exceed `max(max_abs_error_limit, 32 * ULP(|golden|), atol + rtol * |golden|)`.

Nearly all elements can be told to match in float32, which takes a fraction of the time, and no
limit lies below the tolerance. Only those that float32 leaves in doubt are evaluated in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.floats import Block, blocks, greater
from pytest_tritonverify.accuracy.limits import (
    ECO_LIMIT_ULPS,
    ECO_REQUIRED_PERCENT,
    EcoLimits,
    FloatFormat,
)
from pytest_tritonverify.accuracy.offenders import Addressing, Offender, WorstElements
from pytest_tritonverify.accuracy.peaks import Peaks
from pytest_tritonverify.accuracy.ulp import ulp
from pytest_tritonverify.accuracy.verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_tritonverify.accuracy.floats import Elements

_CERTAIN = 1 - 2**-20
"""Share of the tolerance within which float32 decides.

The float32 difference, the two roundings of `difference - rtol * |golden|` and that of `atol` err
by 2^-24 of the tolerance each, or by 2^-149 where they are subnormal.
"""


@dataclass
class EcosystemTally:
    """Counts elements against the first standard; see `floats.FloatTally`.

    Attributes:
        dtype: The golden's dtype as text, or the format by whose row it is judged.
        limits: The table's row.
        form: The golden's number format, float32 or narrower.
    """

    dtype: str
    limits: EcoLimits
    form: FloatFormat
    _total: int = 0
    _matched: int = 0
    _over: int = 0
    _max_abs_diff: float = 0.0
    _max_rounded: float = 0.0
    _worst: WorstElements = field(default_factory=WorstElements)

    def fresh(self) -> EcosystemTally:
        """Return a tally of the same rule that has taken in nothing yet."""
        return EcosystemTally(self.dtype, self.limits, self.form)

    def merge(self, later: EcosystemTally) -> None:
        """Take in what was found in a later part of the tensors."""
        self._total += later._total
        self._matched += later._matched
        self._over += later._over
        self._max_abs_diff = greater(self._max_abs_diff, later._max_abs_diff)
        self._max_rounded = greater(self._max_rounded, later._max_rounded)
        self._worst.merge(later._worst)

    def add_equal(self, values: torch.Tensor, finite: int) -> None:  # noqa: ARG002 - protocol
        """Take in a piece that is equal on both sides: every finite element matches."""
        self._total += finite
        self._matched += finite

    def add(self, elements: Elements) -> None:
        """Take in elements that are finite on both sides, placeholders apart."""
        self._total += elements.count
        self._matched += elements.count
        self._raise_greatest(elements)
        certain = self.limits.atol * _CERTAIN
        # A difference that overflowed, in the cast or in float32, hides all others here.
        if not math.isfinite(elements.greatest):
            self._evaluate_all(elements, blocks(elements))
        elif elements.greatest > certain:
            excess = self._excess(elements)
            if excess.greatest > certain:
                self._evaluate_all(elements, blocks(elements, excess.listed_from(certain)))

    def _excess(self, elements: Elements) -> Peaks:
        """Return what of the differences the relative part of the tolerance leaves, rounded."""
        golden, share = elements.golden, self.limits.rtol * _CERTAIN
        excess = elements.workspace.take("excess", golden.numel(), golden.dtype)
        torch.abs(golden, out=excess)
        return Peaks.of(torch.sub(elements.difference.values, excess, alpha=share, out=excess))

    def _raise_greatest(self, elements: Elements) -> None:
        # Rounding keeps the order: the greatest difference rounds to the greatest rounded one.
        if elements.greatest == 0 or elements.greatest < self._max_rounded:
            return
        self._max_rounded = greater(self._max_rounded, elements.greatest)
        sides = elements.golden, elements.actual
        found: Iterable[Sequence[torch.Tensor]] = [sides]
        if math.isfinite(elements.greatest):
            found = elements.difference.around(elements.greatest, *sides)
        for golden, actual in found:
            exact = float(_exact_difference(golden.to(torch.float64), actual).max())
            self._max_abs_diff = greater(self._max_abs_diff, exact)

    def _evaluate_all(self, elements: Elements, chosen: Iterable[Block]) -> None:
        for block in chosen:
            self._evaluate(elements, block)

    def _evaluate(self, elements: Elements, block: Block) -> None:
        """Evaluate a block as the standard says."""
        golden = block.golden.to(torch.float64)
        difference = _exact_difference(golden, block.actual)
        magnitude = golden.abs()
        # rtol is a power of two, so the product is exact and the sum is rounded once.
        tolerance = magnitude * self.limits.rtol + self.limits.atol
        matches = difference <= tolerance
        # A difference that overflowed in the cast is infinite or NaN: neither is "<=".
        missed = matches.numel() - int(torch.count_nonzero(matches))
        if not missed:
            return
        self._matched -= missed
        limit = ulp(magnitude, self.form).mul_(ECO_LIMIT_ULPS)
        limit = torch.maximum(limit.clamp_(min=self.limits.max_abs_error_limit), tolerance)
        within = difference <= limit
        self._over += within.numel() - int(torch.count_nonzero(within))
        severities = difference / limit
        for at in self._worst.select(severities.masked_fill_(matches, -math.inf)):
            index = int(block.indices[at])
            allowed = tolerance if within[at] else limit
            self._worst.add(
                Offender(
                    severity=severities[at].item(),
                    position=elements.start + index,
                    got=elements.original[index].item(),
                    expected=golden[at].item(),
                    difference=difference[at].item(),
                    allowed=allowed[at].item(),
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


def _exact_difference(golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    return actual.to(torch.float64).sub_(golden).abs_()

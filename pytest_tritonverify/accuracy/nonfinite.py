"""NaN and infinity: both sides must have them in the same places, infinities with their signs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .offenders import Addressing

MAX_POSITIONS = 5
"""Positions named in a message."""


def all_finite(values: torch.Tensor) -> bool:
    """Tell whether a non-empty tensor holds finite values only."""
    # One reduction without temporaries; NaN propagates through both ends.
    low, high = torch.aminmax(values)
    return math.isfinite(low.item()) and math.isfinite(high.item())


@dataclass
class _Side:
    """Non-finite counts of one side."""

    nan: int = 0
    positive: int = 0
    negative: int = 0

    def add(self, values: torch.Tensor) -> None:
        self.nan += int(torch.count_nonzero(values.isnan()))
        self.positive += int(torch.count_nonzero(values == math.inf))
        self.negative += int(torch.count_nonzero(values == -math.inf))

    def infinities(self) -> str:
        return f"{self.positive} +Inf and {self.negative} -Inf"


@dataclass
class _Mismatches:
    """Places where the sides differ: how many, and the first few with their values."""

    count: int = 0
    first: list[tuple[int, float, float]] = field(default_factory=list)

    def add(
        self, start: int, mask: torch.Tensor, golden: torch.Tensor, actual: torch.Tensor
    ) -> None:
        found = int(torch.count_nonzero(mask))
        if not found:
            return
        self.count += found
        room = MAX_POSITIONS - len(self.first)
        if room > 0:
            for offset in torch.nonzero(mask).flatten()[:room].tolist():
                self.first.append((start + offset, golden[offset].item(), actual[offset].item()))

    def text(self, addressing: Addressing) -> str:
        return ", ".join(
            f"{addressing.index(position)} (expected {expected}, got {got})"
            for position, expected, got in self.first
        )


@dataclass
class NonFinite:
    """Compares the non-finite values of two tensors, piece by piece.

    Attributes:
        total: Elements seen.
        finite: Elements finite on both sides.
    """

    total: int = 0
    finite: int = 0
    _golden: _Side = field(default_factory=_Side)
    _actual: _Side = field(default_factory=_Side)
    _nan: _Mismatches = field(default_factory=_Mismatches)
    _infinity: _Mismatches = field(default_factory=_Mismatches)

    @property
    def agree(self) -> bool:
        """Whether no mismatch was seen so far."""
        return self._nan.count == 0 and self._infinity.count == 0

    def add(self, start: int, golden: torch.Tensor, actual: torch.Tensor) -> torch.Tensor | None:
        """Take in a piece.

        Args:
            start: Flat position of its first element.
            golden: Real values, shape `[n]`, n > 0, of a dtype that torch's predicates know.
            actual: Real values before any cast, shape `[n]`.

        Returns:
            A mask of shape `[n]` of the elements finite on both sides; None when all are.
        """
        self.total += golden.numel()
        if all_finite(golden) and all_finite(actual):
            self.finite += golden.numel()
            return None
        self._golden.add(golden)
        self._actual.add(actual)
        self._nan.add(start, golden.isnan() != actual.isnan(), golden, actual)
        signs_differ = (golden == math.inf) != (actual == math.inf)
        signs_differ |= (golden == -math.inf) != (actual == -math.inf)
        self._infinity.add(start, signs_differ, golden, actual)
        mask = torch.isfinite(golden) & torch.isfinite(actual)
        self.finite += int(torch.count_nonzero(mask))
        return mask

    def add_equal(self, values: torch.Tensor) -> int:
        """Take in a piece that is bit for bit equal on both sides; return its finite count."""
        self.total += values.numel()
        finite = values.numel()
        if not all_finite(values):
            self._golden.add(values)
            self._actual.add(values)
            finite = int(torch.count_nonzero(torch.isfinite(values)))
        self.finite += finite
        return finite

    def problems(self, addressing: Addressing) -> tuple[str, ...]:
        """Return what differs, NaN first; counts per side and the first positions."""
        lines = []
        if self._nan.count:
            lines.append(
                f"NaN positions differ at {self._nan.count} of {self.total} elements: "
                f"golden has {self._golden.nan} NaN, implementation {self._actual.nan}; "
                f"first at {self._nan.text(addressing)}"
            )
        if self._infinity.count:
            lines.append(
                f"Inf positions or signs differ at {self._infinity.count} of {self.total} "
                f"elements: golden has {self._golden.infinities()}, "
                f"implementation {self._actual.infinities()}; "
                f"first at {self._infinity.text(addressing)}"
            )
        return tuple(lines)

"""NaN and infinity: both sides must have them in the same places, infinities with their signs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.offenders import Addressing

MAX_POSITIONS = 5
"""Positions named in a message."""


def all_finite(values: torch.Tensor) -> bool:
    """Tell whether a non-empty tensor holds finite values only."""
    # One reduction without temporaries; NaN propagates through both ends.
    low, high = torch.aminmax(values)
    return math.isfinite(low.item()) and math.isfinite(high.item())


def non_finite(values: torch.Tensor) -> torch.Tensor:
    """Return a mask of a tensor's NaN and infinities."""
    # Vectorised by torch, unlike its predicates: x - x is zero, or NaN, which counts as true.
    return torch.sub(values, values).bool()


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

    def merge(self, later: _Side) -> None:
        self.nan += later.nan
        self.positive += later.positive
        self.negative += later.negative

    def infinities(self) -> str:
        return f"{self.positive} +Inf and {self.negative} -Inf"


@dataclass
class _Mismatches:
    """Places where the sides differ: how many, and the first few with their values."""

    count: int = 0
    first: list[tuple[int, float, float]] = field(default_factory=list)

    def add(
        self,
        positions: torch.Tensor,
        mask: torch.Tensor,
        golden: torch.Tensor,
        actual: torch.Tensor,
    ) -> None:
        found = int(torch.count_nonzero(mask))
        if not found:
            return
        self.count += found
        room = MAX_POSITIONS - len(self.first)
        if room > 0:
            for at in torch.nonzero(mask).flatten()[:room].tolist():
                place = int(positions[at]), golden[at].item(), actual[at].item()
                self.first.append(place)

    def merge(self, later: _Mismatches) -> None:
        self.count += later.count
        self.first = (self.first + later.first)[:MAX_POSITIONS]

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

    def merge(self, later: NonFinite) -> None:
        """Take in what was found in a later part of the tensors."""
        self.total += later.total
        self.finite += later.finite
        self._golden.merge(later._golden)
        self._actual.merge(later._actual)
        self._nan.merge(later._nan)
        self._infinity.merge(later._infinity)

    def add_finite(self, count: int) -> None:
        """Take in elements that are known to be finite on both sides."""
        self.total += count
        self.finite += count

    def add(
        self, positions: torch.Tensor, golden: torch.Tensor, actual: torch.Tensor
    ) -> torch.Tensor:
        """Take in elements among which non-finite ones are.

        Those that are finite on both sides are not counted: see `add_finite`.

        Args:
            positions: Flat positions, ascending, shape `[n]`.
            golden: Real values, shape `[n]`, of a dtype that torch's predicates know.
            actual: Real values before any cast, shape `[n]`.

        Returns:
            A mask of shape `[n]` of the elements that are non-finite on a side.
        """
        mask = non_finite(golden) | non_finite(actual)
        self.total += int(torch.count_nonzero(mask))
        self._golden.add(golden)
        self._actual.add(actual)
        self._nan.add(positions, golden.isnan() != actual.isnan(), golden, actual)
        signs_differ = (golden == math.inf) != (actual == math.inf)
        signs_differ |= (golden == -math.inf) != (actual == -math.inf)
        self._infinity.add(positions, signs_differ, golden, actual)
        return mask

    def add_equal(self, values: torch.Tensor) -> int:
        """Take in a piece that is bit for bit equal on both sides; return its finite count."""
        finite = values.numel()
        if not all_finite(values):
            others = values[non_finite(values)]
            self._golden.add(others)
            self._actual.add(others)
            finite -= others.numel()
        self.total += values.numel()
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

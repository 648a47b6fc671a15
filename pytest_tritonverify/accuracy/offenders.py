"""The worst elements of a comparison, kept in bounded memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch

MAX_SHOWN = 10
"""Elements named in a message."""


def element_index(position: int, shape: tuple[int, ...]) -> str:
    """Return the multi-dimensional index of a flat row-major position, such as `[3, 7]`."""
    index: list[int] = []
    for extent in reversed(shape):
        position, remainder = divmod(position, extent)
        index.append(remainder)
    return str(index[::-1])


@dataclass(frozen=True)
class Addressing:
    """How a comparator's flat positions map to elements.

    Attributes:
        shape: The output's shape.
        complex_parts: Whether real and imaginary parts are counted as neighbouring elements.
    """

    shape: tuple[int, ...]
    complex_parts: bool = False

    def index(self, position: int) -> str:
        """Return a position's index, such as `[3, 7]` or `[3, 7].imag`."""
        if not self.complex_parts:
            return element_index(position, self.shape)
        part = "imag" if position % 2 else "real"
        return f"{element_index(position // 2, self.shape)}.{part}"


@dataclass(frozen=True)
class Offender:
    """One element that broke a rule; the numbers are exact Python values, integers included."""

    severity: float
    position: int
    got: object
    expected: object
    difference: object = None
    allowed: object = None

    def describe(self, addressing: Addressing) -> str:
        """Return one line: index, got, expected, difference and what is allowed."""
        text = f"{addressing.index(self.position)}: got {self.got}, expected {self.expected}"
        if self.difference is not None:
            text += f", difference {self.difference}, allowed {self.allowed}"
        return text


def greatest(values: torch.Tensor, limit: int) -> list[int]:
    """Return the ascending indices of the greatest numbers, the first ones among equals."""
    if values.numel() <= limit:
        return list(range(values.numel()))
    # topk breaks ties as it likes: take all above its last value, then the earliest equals.
    last = torch.topk(values, limit).values[-1]
    above = torch.nonzero(values > last).flatten()
    equal = torch.nonzero(values == last).flatten()[: limit - above.numel()]
    return [int(index) for index in torch.cat((above, equal)).sort().values]


@dataclass
class WorstElements:
    """Collects the most severe offenders; equally severe ones in order of position."""

    limit: int = MAX_SHOWN
    _kept: list[Offender] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more offenders can be kept without dropping one."""
        return self.limit - len(self._kept)

    def outrank(self, severity: float) -> bool:
        """Tell whether a later element of a severity, or a less severe one, could not be kept."""
        return len(self._kept) == self.limit and severity <= self._kept[-1].severity

    def select(self, severities: torch.Tensor) -> list[int]:
        """Return which of a piece's failing elements are worth describing.

        Args:
            severities: Greater is worse, shape `[n]`, in order of position; NaN is worst, and
                what is minus infinity does not fail.

        Returns:
            At most `limit` indices into `severities`, ascending.
        """
        if severities.numel() == 0 or self.outrank(float(severities.max())):
            return []
        ranked = severities.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
        return [at for at in greatest(ranked, self.limit) if float(ranked[at]) > -math.inf]

    def add(self, offender: Offender) -> None:
        """Keep an offender if it is among the worst."""
        if math.isnan(offender.severity):
            offender = replace(offender, severity=math.inf)
        self._kept.append(offender)
        self._kept.sort(key=lambda kept: (-kept.severity, kept.position))
        del self._kept[self.limit :]

    def merge(self, later: WorstElements) -> None:
        """Keep the worst of these and of those found in a later part of the tensors."""
        for offender in later._kept:
            self.add(offender)

    def lines(self, addressing: Addressing, total: int) -> tuple[str, ...]:
        """Return the text that lists them.

        Args:
            addressing: Turns positions into indices.
            total: How many elements offend altogether.
        """
        if not self._kept:
            return ()
        shown = len(self._kept)
        head = f"worst {shown} of {total}:" if total > shown else "offending elements:"
        return (head, *(f"  {kept.describe(addressing)}" for kept in self._kept))

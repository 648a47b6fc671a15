"""Find the rare great numbers of a tensor without a mask of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_ROW = 64
_WORD = 8
_WORTH_LISTING = 4
"""Up to one in so many is listed: to list more takes longer than to look at all numbers."""


@dataclass(frozen=True)
class Peaks:
    """Numbers with the greatest of each row of them.

    Attributes:
        values: A contiguous tensor of shape `[n]`, n > 0.
        tops: The greatest number of each row, NaN where one is NaN; a row is 64 numbers, or all
            where 64 don't divide them.
    """

    values: torch.Tensor
    tops: torch.Tensor

    @classmethod
    def of(cls, values: torch.Tensor) -> Peaks:
        """Look at numbers once."""
        return cls(values, _rows(values).amax(dim=1))

    @property
    def greatest(self) -> float:
        """The greatest number; NaN where one is NaN."""
        return float(self.tops.max())

    def listed_from(self, bound: float) -> torch.Tensor | None:
        """Return the indices of the numbers at or above a bound.

        Args:
            bound: A number; it is rounded to the values' dtype.

        Returns:
            Ascending int64 indices, or None where they are more than a quarter of the numbers.
        """
        chosen = self._rows_from(bound)
        if chosen.numel() * 2 > self.tops.numel():
            # A comparison that writes numbers, unlike one that makes a mask, is vectorised.
            marks = torch.ge(self.values, bound, out=torch.empty_like(self.values))
            if float(marks.sum()) * _WORTH_LISTING > marks.numel():
                return None
            return _indices_of(marks.bool())
        found = torch.nonzero(_rows(self.values).index_select(0, chosen) >= bound)
        return chosen.index_select(0, found[:, 0]) * _ROW + found[:, 1]

    def around(self, bound: float, *others: torch.Tensor) -> list[torch.Tensor]:
        """Return the elements of other tensors in the rows that reach a bound.

        Args:
            bound: A number; it is rounded to the values' dtype.
            others: Contiguous tensors of shape `[n]`.

        Returns:
            Tensors of one shape, with the elements whose number is at or above the bound, and
            some others.
        """
        chosen = self._rows_from(bound)
        return [_rows(other).index_select(0, chosen) for other in others]

    def _rows_from(self, bound: float) -> torch.Tensor:
        return torch.nonzero(self.tops >= bound).flatten()


def _indices_of(marks: torch.Tensor) -> torch.Tensor:
    """Return where a contiguous mask of shape `[n]` is true, as ascending int64 indices.

    Most marks are false: words of them are looked at first, a fraction of the steps.
    """
    if marks.numel() % _WORD:
        return torch.nonzero(marks).flatten()
    words = torch.nonzero(marks.view(torch.int64)).flatten()
    found = torch.nonzero(marks.view(-1, _WORD).index_select(0, words))
    return words.index_select(0, found[:, 0]) * _WORD + found[:, 1]


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values.view(-1, values.numel() if values.numel() % _ROW else _ROW)

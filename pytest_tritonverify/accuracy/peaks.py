"""Find the rare great numbers of a tensor without a mask of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.dlpack import from_dlpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import torch

    _Floats = npt.NDArray[Any]
    _Indices = npt.NDArray[np.intp]

_ROW = 64
_ROWS_AT_ONCE = 256
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
        if chosen.size * 2 > self.tops.numel():
            marks = _reaching(_array(self.values), bound)
            if np.count_nonzero(marks) * _WORTH_LISTING > marks.size:
                return None
            return from_dlpack(np.flatnonzero(marks))
        row, column = np.nonzero(_reaching(_array(_rows(self.values))[chosen], bound))
        return from_dlpack(chosen[row] * _ROW + column)

    def around(self, bound: float, *others: torch.Tensor) -> Iterator[list[torch.Tensor]]:
        """Yield the elements of other tensors in the rows that reach a bound.

        Args:
            bound: A number; it is rounded to the values' dtype.
            others: Contiguous tensors of shape `[n]`.

        Yields:
            Tensors of one shape, of at most 2^14 elements where rows are short; together they hold
            the elements whose number is at or above the bound, and some others.
        """
        chosen = self._rows_from(bound)
        sides = [_array(_rows(other)) for other in others]
        for start in range(0, chosen.size, _ROWS_AT_ONCE):
            rows = chosen[start : start + _ROWS_AT_ONCE]
            yield [from_dlpack(side[rows]) for side in sides]

    def _rows_from(self, bound: float) -> _Indices:
        return np.flatnonzero(_reaching(_array(self.tops), bound))


def _reaching(values: _Floats, bound: float) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = values >= values.dtype.type(bound)
    return marks


def _array(values: torch.Tensor) -> _Floats:
    """View a tensor as an array: numpy's comparisons and searches take a third of torch's time.

    DLPack works for builds of torch that were made for another numpy as well.
    """
    return np.from_dlpack(values)


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values.view(-1, values.numel() if values.numel() % _ROW else _ROW)

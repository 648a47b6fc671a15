"""An output's axes: the ways to look at flat positions, and their names for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_ROW_AXES = 2


@dataclass(frozen=True)
class View:
    """A run of neighbouring axes taken as one; every element has an index along it.

    Attributes:
        axes: The first and the last axis, both included.
        size: How many indices there are.
        inner: Elements that one step along it spans.
        whole: Whether it runs over the whole output: indices are flat positions then.
    """

    axes: tuple[int, int]
    size: int
    inner: int
    whole: bool

    def index(self, positions: torch.Tensor) -> torch.Tensor:
        """Return the index of every flat position."""
        if self.whole:
            return positions
        index = positions // self.inner if self.inner > 1 else positions
        return index % self.size

    @property
    def single(self) -> bool:
        """Whether it is one axis of the output."""
        return self.axes[0] == self.axes[1]

    def to_json(self) -> int | list[int]:
        """Return the axis, or the first and the last one."""
        return self.axes[0] if self.single else list(self.axes)


@dataclass(frozen=True)
class Layout:
    """An output's shape.

    Attributes:
        shape: Its extents; complex elements are pairs along the last one.
        parts: Whether the last axis holds real and imaginary parts.
    """

    shape: tuple[int, ...]
    parts: bool = False

    def views(self) -> tuple[View, ...]:
        """Return every run of axes that has a choice of indices; single axes first."""
        axes = [axis for axis, extent in enumerate(self.shape) if extent > 1]
        return tuple(
            self._view(axes[first], axes[first + span], whole=span + 1 == len(axes))
            for span in range(len(axes))
            for first in range(len(axes) - span)
        )

    def axes(self) -> tuple[View, ...]:
        """Return the single axes of more than one index."""
        return tuple(view for view in self.views() if view.single)

    def _view(self, first: int, last: int, *, whole: bool) -> View:
        size = _product(self.shape[first : last + 1])
        return View((first, last), size, _product(self.shape[last + 1 :]), whole)

    def nouns(self, view: View) -> tuple[str, str]:
        """Return what an index along a view is called, one and many."""
        first, last = view.axes
        rank = len(self.shape) - self.parts
        if view.whole and (rank == 1 or not view.single):
            return "element", "elements"
        if self.parts and first == last == rank:
            return "part", "parts"
        if view.single and last == rank - 1:
            return "column", "columns"
        if view.single and last == rank - _ROW_AXES:
            return "row", "rows"
        if view.single:
            return f"slice of axis {first}", f"slices of axis {first}"
        return (
            f"position in axes {first} to {last}",
            f"positions in axes {first} to {last}",
        )

    def place(self, view: View, index: int) -> str:
        """Return an index along a view in words: `row 3 of 8`."""
        one, _ = self.nouns(view)
        word, _, rest = one.partition(" ")
        axes = f" {rest.replace('of', 'along', 1)}" if rest else ""
        return f"{word} {index} of {view.size}{axes}"

    def coordinates(self, position: int) -> list[int]:
        """Return the multi-dimensional index of a flat position."""
        index: list[int] = []
        for extent in reversed(self.shape):
            position, remainder = divmod(position, extent)
            index.append(remainder)
        return index[::-1]


def _product(extents: tuple[int, ...]) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result

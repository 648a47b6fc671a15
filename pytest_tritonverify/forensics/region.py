"""Where failing elements lie, as plain data and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.layout import Layout, View

Kind = Literal[
    "none",
    "one_element",
    "all",
    "interval",
    "box",
    "periodic",
    "slices",
    "borders",
    "scattered",
]

MOST_INDICES = 16
"""Indices that are listed."""


@dataclass(frozen=True)
class Region:
    """A part of an output that holds all failing elements.

    Attributes:
        kind: Its form; `scattered` where none was found.
        failing: How many elements fail.
        total: How many there are.
        text: The same for people.
        view: The axis of an interval, a period or slices.
        start: First index of an interval or of every period; the flat position of one element.
        stop: One above the last of them.
        period: The distance between repetitions.
        indices: The slices, ascending.
        bounds: First index and one above the last along every axis of a box.
        borders: Axis, lines at its beginning and lines at its end, of borders.
    """

    kind: Kind
    failing: int
    total: int
    text: str
    view: View | None = None
    start: int = 0
    stop: int = 0
    period: int = 0
    indices: tuple[int, ...] = ()
    bounds: tuple[tuple[int, int], ...] = ()
    borders: tuple[tuple[int, int, int], ...] = ()

    @property
    def width(self) -> int:
        """Indices of an interval, or of every period."""
        return self.stop - self.start

    @property
    def special(self) -> bool:
        """Whether the place alone tells something: a part of the output that has a form."""
        return self.kind in {"interval", "box", "periodic", "slices", "borders"}

    def to_json(self) -> dict[str, Any]:
        """Return builtins only; what does not belong to the form is left out."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "text": self.text,
            "failing": self.failing,
            "total": self.total,
        }
        if self.view is not None:
            found |= {"axis": None if self.view.whole else self.view.to_json()}
            found |= {"size": self.view.size}
        if self.kind in {"interval", "periodic"}:
            found |= {"start": self.start, "stop": self.stop}
        if self.kind == "periodic":
            found |= {"period": self.period}
        if self.kind == "slices":
            found |= {"count": len(self.indices), "indices": list(self.indices[:MOST_INDICES])}
        if self.kind == "box":
            found |= {"bounds": [list(pair) for pair in self.bounds]}
        if self.kind == "borders":
            found |= {"borders": [{"axis": a, "first": f, "last": n} for a, f, n in self.borders]}
        return found


def interval_text(layout: Layout, view: View, start: int, stop: int) -> str:
    """Return an interval in words: `the last 3 of 10 rows (7 to 9)`."""
    _, many = layout.nouns(view)
    width = stop - start
    if width == 1:
        return f"{layout.place(view, start)}{_which(view, start)}"
    span = f"({start} to {stop - 1})"
    if stop == view.size:
        return f"the last {width} of {view.size} {many} {span}"
    if start == 0:
        return f"the first {width} of {view.size} {many} {span}"
    return f"{width} of {view.size} {many} {span}"


def periodic_text(layout: Layout, view: View, period: int, start: int, stop: int) -> str:
    """Return a period in words: `every 4th column, from 1 on`."""
    one, many = layout.nouns(view)
    width = stop - start
    if width == 1:
        return f"every {ordinal(period)} {one}, from {start} on"
    if stop == period:
        return f"the last {width} of every {period} {many}"
    if start == 0:
        return f"the first {width} of every {period} {many}"
    return f"{width} of every {period} {many}, from {start} on"


def slices_text(layout: Layout, view: View, indices: tuple[int, ...]) -> str:
    """Return a set of slices in words: `3 of 10 rows: 1, 4, 8`."""
    _, many = layout.nouns(view)
    listed = ", ".join(map(str, indices[:MOST_INDICES]))
    more = ", ..." if len(indices) > MOST_INDICES else ""
    return f"{len(indices)} of {view.size} {many}: {listed}{more}"


def borders_text(layout: Layout, borders: tuple[tuple[int, int, int], ...]) -> str:
    """Return borders in words: `the first row, the last 2 columns`."""
    names = {view.axes[0]: layout.nouns(view) for view in layout.axes()}
    parts = []
    for axis, first, last in borders:
        one, many = names[axis]
        for count, word in ((first, "first"), (last, "last")):
            if count:
                parts.append(f"the {word} {one}" if count == 1 else f"the {word} {count} {many}")
    return ", ".join(parts)


def ordinal(number: int) -> str:
    """Return `2nd`, `11th`, `21st`."""
    teens = range(11, 14)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in teens else ending}"


def share(part: int, total: int) -> str:
    """Return a share for people, never rounded to none or all: `3.2 %`."""
    percent = 100 * part / total
    if part and percent < 0.1:  # noqa: PLR2004 - one decimal is shown
        return "under 0.1 %"
    if part < total and percent > 99.9:  # noqa: PLR2004 - likewise
        return "over 99.9 %"
    return f"{percent:.3g} %"


def _which(view: View, index: int) -> str:
    if index == 0:
        return " (the first)"
    return " (the last)" if index == view.size - 1 else ""

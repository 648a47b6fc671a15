"""Name a fault by the place of the failing elements: tails, blocks, periods, edges."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tritonverify.forensics.blocks import (
    block_of,
    coverage,
    known_sizes,
    rows_left,
    tail_block,
)
from pytest_tritonverify.forensics.facts import Diagnosis
from pytest_tritonverify.forensics.region import ordinal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.forensics.blocks import Block, Coverage
    from pytest_tritonverify.forensics.contents import Content
    from pytest_tritonverify.forensics.facts import Confidence, LaunchFacts
    from pytest_tritonverify.forensics.layout import Layout, View
    from pytest_tritonverify.forensics.region import Region

_FEW_LINES = 2
_LEAST_BLOCK = 16
_RIGHT_BY_CHANCE = 0.04
_MOST_READINGS = 3


class Placement:
    """Names faults by their place.

    Args:
        layout: The output's shape.
        launches: What was launched.
    """

    def __init__(self, layout: Layout, launches: Sequence[LaunchFacts]) -> None:
        self._layout = layout
        self._launches = launches
        self._known = known_sizes(launches)

    def name(self, region: Region, content: Content | None) -> Diagnosis | None:
        """Return the diagnosis that a place allows, or None where it says too little.

        Args:
            region: Where the failing elements lie.
            content: What they hold, where that is known.
        """
        if region.kind == "interval" and region.view is not None:
            return self._interval(region, region.view, content)
        if region.kind == "box":
            return self._tile(region, content)
        if region.kind == "periodic" and region.view is not None:
            return self._periodic(region, region.view, content)
        if region.kind == "borders":
            return self._borders(region, content)
        views = self._layout.views()
        if region.kind == "one_element" and views and region.stop == views[-1].size:
            return self._rows_left(region, views[-1], content)
        return None

    def _interval(self, region: Region, view: View, content: Content | None) -> Diagnosis | None:
        known = self._sizes(view)
        # The very last elements may be right by chance.
        if view.size - region.stop <= _RIGHT_BY_CHANCE * region.width:
            return self._end(region, view, content)
        block = block_of(region.start, region.stop, view.size, known)
        edge = self._edge(region, view)
        if edge is not None and (block is None or not block.known):
            return self._diagnosis(*edge, region, content)
        if block is None:
            return None
        return self._block(region, view, content)

    def _end(self, region: Region, view: View, content: Content | None) -> Diagnosis | None:
        """The last indices of an axis: a tail, the last block, or an edge."""
        known = self._sizes(view)
        _, many = self._layout.nouns(view)
        left = self._rows_left(region, view, content)
        by_grid = self._by_grid(region, view, content, left)
        if by_grid is not None:
            return by_grid
        tail = tail_block(region.start, view.size, known)
        if tail is not None and tail.known:
            fact = (
                f"{tail.number * tail.size} is where the last block of {tail.size} begins, which "
                f"has {view.size - tail.number * tail.size} {many}"
            )
            return self._tail(region, content, (fact,))
        if left is not None:
            return left
        block = block_of(region.start, region.stop, view.size, known)
        if block is not None and block.known:
            return self._block(region, view, content)
        edge = self._edge(region, view)
        if edge is not None:
            return self._diagnosis(*edge, region, content)
        return self._guessed_end(region, view, content)

    def _by_grid(
        self, region: Region, view: View, content: Content | None, left: Diagnosis | None
    ) -> Diagnosis | None:
        """Indices that no program of a launch reaches; `left` is what `_rows_left` found."""
        reached = coverage(region.start, view.size, self._launches, self._others(view))
        facts = self._reach(reached, region, view)
        if _surely(reached) and (_unwritten(content) or content is None):
            return self._tail(region, content, facts, grid=True)
        if left is not None and left.confidence == "clear":
            return left
        if any(reading.certain for reading in reached) and _unwritten(content):
            return self._tail(region, content, facts, confidence="likely")
        return None

    def _others(self, view: View) -> tuple[int, ...]:
        """Return the extents of the axes that a view does not run over."""
        if view.whole:
            return ()
        shape = self._layout.shape
        return (*shape[: view.axes[0]], *shape[view.axes[1] + 1 :])

    def _reach(self, reached: Sequence[Coverage], region: Region, view: View) -> tuple[str, ...]:
        _, many = self._layout.nouns(view)
        would = "" if _surely(reached) else "would "
        return tuple(
            f"{found.launch.kernel} ran {found.programs} programs of {found.size} {many}: they "
            f"{would}cover {region.start} of {view.size}"
            for found in reached[:_MOST_READINGS]
        )

    def _rows_left(self, region: Region, view: View, content: Content | None) -> Diagnosis | None:
        """The last indices of an axis that a launch has one program each for, but too few."""
        if not _unwritten(content):
            return None
        found = rows_left(region.start, view.size, self._launches, self._others(view))
        if not found:
            return None
        one, many = self._layout.nouns(view)
        width = region.width
        which = f"last {one} was" if width == 1 else f"last {width} {many} were"
        cause = (
            f"The {which} never written: with one program for each {one}, the grid has {width} "
            f"{'program' if width == 1 else 'programs'} too few."
        )
        facts = tuple(
            f"{reading.launch.kernel} ran {reading.programs} programs, the output has {view.size} "
            f"{many}"
            for reading in found[:_MOST_READINGS]
        )
        confidence: Confidence = "clear" if _surely(found) else "likely"
        return self._diagnosis("tail_unwritten", cause, region, content, facts, confidence)

    def _guessed_end(self, region: Region, view: View, content: Content | None) -> Diagnosis | None:
        """The last indices of an axis whose blocks are not known."""
        tail = tail_block(region.start, view.size, self._sizes(view))
        if tail is not None:
            first = tail.number * tail.size
            fact = f"{first} is a multiple of {first & -first}, as the beginning of a block is"
            return self._tail(region, content, (fact,), confidence="likely")
        if region.start and block_of(region.start, region.stop, view.size, self._sizes(view)):
            return self._block(region, view, content)
        # Wrong values from anywhere on may have been carried over from one element to the next.
        if not _unwritten(content) or 2 * region.width > view.size:
            return None
        return self._tail(region, content, (), confidence="likely")

    def _tail(
        self,
        region: Region,
        content: Content | None,
        facts: tuple[str, ...],
        *,
        grid: bool = False,
        confidence: Confidence = "clear",
    ) -> Diagnosis:
        if grid:
            cause = (
                "The tail was never written: the grid has too few programs, as when the division "
                "of the size by the block is rounded down instead of up."
            )
        elif _unwritten(content):
            cause = (
                "The tail of the last block was never written: the store's mask, the grid, or a "
                "loop's bound leaves out the last elements."
            )
        else:
            cause = (
                "The tail of the last block is wrong: its lanes beyond the end are unmasked, or "
                "masked by the wrong bound."
            )
        code = "tail_unwritten" if grid or _unwritten(content) else "tail_wrong"
        return self._diagnosis(code, cause, region, content, facts, confidence)

    def _block(self, region: Region, view: View, content: Content | None) -> Diagnosis:
        _, many = self._layout.nouns(view)
        found = block_of(region.start, region.stop, view.size, self._sizes(view))
        facts: tuple[str, ...] = ()
        program = ""
        if found is not None and found.size > 1:
            blocks = math.ceil(view.size / found.size)
            facts = (f"it is block {found.number} of {blocks}, of {found.size} {many} each",)
            program = self._program(found.number, blocks)
        elif found is not None:
            facts = (f"it is {self._layout.place(view, found.number)}",)
            program = self._program(found.number, view.size)
        was = "was never written" if _unwritten(content) else "is wrong"
        cause = (
            f"One block {was}: one program id{program} is missing, or takes a wrong offset or "
            f"branch."
        )
        sure = found is not None and found.known
        return self._diagnosis(
            "one_block", cause, region, content, facts, "clear" if sure or program else "likely"
        )

    def _program(self, number: int, blocks: int) -> str:
        """Return the id of a program that has the block, where a grid has that many."""
        for launch in self._launches:
            if blocks > 1 and (blocks in launch.grid or math.prod(launch.grid) == blocks):
                return f", {number},"
        return ""

    def _edge(self, region: Region, view: View) -> tuple[str, str] | None:
        """Return code and cause of first or last rows, columns and elements."""
        one, _ = self._layout.nouns(view)
        if not (view.single or view.whole):
            return None
        if region.width > _FEW_LINES or region.width * 2 > view.size:
            return None
        if region.start and region.stop != view.size:
            return None
        which = "last" if region.start else "first"
        many = region.width > 1
        noun = one if one in {"row", "column", "element"} else "slice"
        if noun == "element" and region.start:
            return None
        subject = f"{region.width} {noun}s are" if many else f"{noun} is"
        cause = (
            f"The {which} {subject} wrong: a loop or mask begins or ends too early or too late, or "
            f"a border is not handled."
        )
        return f"{which}_{noun}", cause

    def _tile(self, region: Region, content: Content | None) -> Diagnosis | None:
        facts = []
        known = True
        for view in self._layout.axes():
            start, stop = region.bounds[view.axes[0]]
            if (start, stop) == (0, view.size):
                continue
            found = block_of(start, stop, view.size, self._known)
            tail = tail_block(start, view.size, self._known) if stop == view.size else None
            found = found or tail
            if found is None:
                return self._run(region, content)
            known = known and (found.known or found.size == 1)
            facts.append(
                f"block {found.number} along axis {view.axes[0]}, of {found.size} indices each"
            )
        was = "was never written" if _unwritten(content) else "is wrong"
        return self._diagnosis(
            "one_block",
            f"One block {was}: one program id is missing, or takes a wrong offset or branch.",
            region,
            content,
            (", ".join(facts),),
            "clear" if known and self._known else "likely",
        )

    def _run(self, region: Region, content: Content | None) -> Diagnosis | None:
        """Take a box for what it is in the flat output, where it is one run of elements."""
        view = self._layout.views()[-1]
        start = stop = 0
        for (low, high), extent in zip(region.bounds, self._layout.shape, strict=True):
            start, stop = start * extent + low, stop * extent + high - 1
        volume = math.prod(high - low for low, high in region.bounds)
        if stop + 1 - start != volume:
            return None
        flat = replace(region, kind="interval", view=view, start=start, stop=stop + 1)
        return self._interval(flat, view, content)

    def _periodic(self, region: Region, view: View, content: Content | None) -> Diagnosis | None:
        period, width = region.period, region.width
        one, many = self._layout.nouns(view)
        known = period in self._known
        end = region.stop == period
        block_like = known or (width > 1 and period >= _LEAST_BLOCK and period & (period - 1) == 0)
        if (end or region.start == 0) and block_like and width * 2 < period:
            side = "last" if end else "first"
            was = "never written" if _unwritten(content) else "wrong"
            some = f"{width} {many if width > 1 else one}"
            return self._diagnosis(
                f"block_{'tails' if end else 'heads'}",
                f"The {side} {some} of each block of {period} {'are' if width > 1 else 'is'} "
                f"{was}: a mask or `tl.arange` inside the block has the wrong bound.",
                region,
                content,
                (f"{period} is the block size of a launch",) if known else (),
                "clear" if known else "likely",
            )
        if width == 1:
            return self._diagnosis(
                "every_kth",
                f"Every {ordinal(period)} {one} is wrong: a stride, an index modulo {period}, or a "
                f"vector lane is mishandled.",
                region,
                content,
            )
        if region.start % width == 0 and period % width == 0:
            return self._diagnosis(
                "every_kth",
                f"Every {ordinal(period // width)} block of {width} {many} is wrong: programs or "
                f"iterations are skipped, or take a wrong branch.",
                region,
                content,
            )
        return None

    def _borders(self, region: Region, content: Content | None) -> Diagnosis:
        tails = self._tails(region)
        if tails:
            confidence: Confidence = "clear" if all(tail.known for tail in tails) else "likely"
            fact = "the tails of several axes fail"
            return self._tail(region, content, (fact,), confidence=confidence)
        return self._diagnosis(
            "borders",
            "First and last lines are wrong: padding or the border of the output is not handled.",
            region,
            content,
            confidence="likely",
        )

    def _tails(self, region: Region) -> list[Block]:
        """Return the last blocks of all axes that a border stands for; empty where it is not."""
        sizes = {view.axes[0]: view.size for view in self._layout.axes()}
        found = []
        for axis, first, last in region.borders:
            tail = tail_block(sizes[axis] - last, sizes[axis], self._known)
            # A single last line is an edge, unless a block size is known to end there.
            if first or tail is None or (last == 1 and not tail.known):
                return []
            found.append(tail)
        return found if len(found) > 1 else []

    def _sizes(self, view: View) -> tuple[int, ...]:
        return tuple(size for size in self._known if size < view.size)

    def _diagnosis(
        self,
        code: str,
        cause: str,
        region: Region,
        content: Content | None,
        facts: tuple[str, ...] = (),
        confidence: Confidence = "clear",
    ) -> Diagnosis:
        evidence = list(facts)
        if content is not None:
            evidence += content.evidence
        return Diagnosis(code, cause, tuple(evidence), region.to_json(), confidence)


def _unwritten(content: Content | None) -> bool:
    return content is not None and content.unwritten


def _surely(found: Sequence[Coverage]) -> bool:
    """Tell whether launches' grids can be read in one way only."""
    return len(found) == 1 and found[0].certain

"""The table of kernels that torch_npu's profiler writes, and the times that are in it.

`ASCEND_PROFILER_OUTPUT/kernel_details.csv` has one row for each task that ran on the device. The
columns that count are `Name`, `Start Time(us)`, `Duration(us)` and, where the profiled program
marks its steps, `Step Id`; the others depend on the profiler's settings and version.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

FILE_NAME = "kernel_details.csv"
_NAME, _DURATION, _START, _STEP = "Name", "Duration(us)", "Start Time(us)", "Step Id"
_US_PER_MS = 1000.0
_NAMES_TOLD = 5


class TableError(ValueError):
    """A table that yields no time; the text says why."""


@dataclass(frozen=True)
class Row:
    """One task on the device.

    Attributes:
        name: of the kernel.
        duration_us: how long it ran.
        start_us: when it began; None where the table doesn't say.
        step: number of the step that it belongs to; None where it belongs to none.
    """

    name: str
    duration_us: float
    start_us: float | None = None
    step: int | None = None


@dataclass(frozen=True)
class KernelTimes:
    """Device time by forward and by kernel.

    Attributes:
        latency_ms: milliseconds of one forward, an average.
        samples_ms: milliseconds of each forward in order; empty where the table does not tell one
            forward from another.
        operators: milliseconds per forward by kernel name.
        launches_per_forward: rows of one forward, on average.
        notes: what a reader ought to know.
    """

    latency_ms: float
    samples_ms: tuple[float, ...] = ()
    operators: Mapping[str, float] = field(default_factory=dict)
    launches_per_forward: float = 0.0
    notes: tuple[str, ...] = ()


def read(text: str) -> list[Row]:
    """Read a table.

    Raises:
        TableError: it is empty, it lacks a column that is needed, or a duration is no number.
    """
    # The tool ends some cells with a tab, and some versions begin the file with a mark.
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    header = [cell.strip() for cell in next(reader, [])]
    if not header:
        raise TableError(f"{FILE_NAME} is empty")
    missing = [name for name in (_NAME, _DURATION) if name not in header]
    if missing:
        raise TableError(f"{FILE_NAME} has no column {', '.join(missing)}")
    rows = []
    for line, cells in enumerate(reader, 2):
        if any(cell.strip() for cell in cells):
            values = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
            rows.append(_row(values, line))
    return rows


def _row(values: Mapping[str, str], line: int) -> Row:
    duration = _number(values.get(_DURATION, ""))
    if duration is None or duration < 0:
        raise TableError(
            f"{FILE_NAME}, line {line}: {_DURATION} is {values.get(_DURATION, '')!r}, which is no "
            "time; a sum without that row would be too small"
        )
    step = _number(values.get(_STEP, ""))
    return Row(
        name=values[_NAME],
        duration_us=duration,
        start_us=_number(values.get(_START, "")),
        step=None if step is None else int(step),
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def sum_up(
    rows: Sequence[Row],
    repeats: int,
    rehearsals: int = 0,
    first_step: int = 1,
    aside: Collection[int] = (),
) -> KernelTimes:
    """Sum the rows of each forward. Every row counts, however long or rare its kernel is.

    Args:
        rows: the table.
        repeats: number of forwards that were profiled, one a step.
        rehearsals: number of steps before them that prepared inputs as a forward's step does, and
            ran no forward. What they have in common begins every later step, and is no part of it.
        first_step: number of the first of all these steps. A step without a kernel has no row.
        aside: steps among them, counted from 0, that ran no forward but kept the outputs of the
            one before; they are left out.

    Raises:
        TableError: there is no row at all; the steps are not those that ran; or the rows of the
            preparation can't be told from the forwards.
    """
    if not rows:
        raise TableError(f"{FILE_NAME} has a header and no row: the profiler saw no kernel")
    notes: list[str] = []
    if any(row.step is not None for row in rows):
        steps = _by_step(rows, first_step, rehearsals + repeats + len(aside), notes)
        steps = [step for number, step in enumerate(steps) if number not in aside]
        steps = _without_preparation(steps, rehearsals)
        return _summed(steps, notes)
    if rehearsals or aside:
        # Without steps nothing tells whose a row is that both kinds of step have.
        raise TableError(
            f"{FILE_NAME} has no column {_STEP}, so the preparation of inputs can't be told from "
            "the forwards"
        )
    return _without_steps(rows, repeats, notes)


def _in_order(rows: Sequence[Row]) -> list[Row]:
    if any(row.start_us is None for row in rows):
        return list(rows)
    return sorted(rows, key=lambda row: row.start_us or 0.0)


def _by_step(rows: Sequence[Row], first: int, count: int, notes: list[str]) -> list[list[Row]]:
    """Return the rows of each step; rows without one count for the step before them."""
    numbers = [row.step for row in rows if row.step is not None]
    lowest, highest = min(numbers), max(numbers)
    if highest - lowest + 1 == count:
        # All are there, from whatever number this version of the profiler starts.
        first = lowest
    if lowest < first or highest >= first + count:
        raise TableError(
            f"{FILE_NAME} has steps from {lowest} to {highest}; {first} to {first + count - 1} ran"
        )
    steps: list[list[Row]] = [[] for _ in range(count)]
    current, unnumbered = first, 0
    for row in _in_order(rows):
        if row.step is None:
            unnumbered += 1
        else:
            current = row.step
        steps[current - first].append(row)
    if unnumbered:
        notes.append(
            f"{unnumbered} kernels of {FILE_NAME} belong to no step; each counts for the step "
            "before it"
        )
    return steps


def _without_preparation(steps: list[list[Row]], rehearsals: int) -> list[list[Row]]:
    if not rehearsals:
        return steps
    known = [[row.name for row in step] for step in steps[:rehearsals]]
    # The longest beginning that all rehearsals share is what every preparation runs.
    shared = list(known[0])
    for names in known[1:]:
        length = next(
            (i for i, (a, b) in enumerate(zip(shared, names, strict=False)) if a != b),
            min(len(shared), len(names)),
        )
        del shared[length:]
    kept = []
    for number, step in enumerate(steps[rehearsals:], 1):
        if [row.name for row in step[: len(shared)]] != shared:
            raise TableError(
                f"{FILE_NAME}: forward {number} does not begin with the {len(shared)} kernels that "
                "prepare its inputs, so they can't be told from its own"
            )
        kept.append(step[len(shared) :])
    return kept


def _summed(steps: list[list[Row]], notes: list[str]) -> KernelTimes:
    total: dict[str, float] = {}
    for row in (row for step in steps for row in step):
        total[row.name] = total.get(row.name, 0.0) + row.duration_us
    counts = [Counter(row.name for row in step) for step in steps]
    _note_missing(counts, notes)
    samples = tuple(sum(row.duration_us for row in step) / _US_PER_MS for step in steps)
    return KernelTimes(
        latency_ms=math.fsum(samples) / len(steps),
        samples_ms=samples,
        operators=_per_forward(total, len(steps)),
        launches_per_forward=sum(len(step) for step in steps) / len(steps),
        notes=tuple(notes),
    )


def _note_missing(counts: Sequence[Counter[str]], notes: list[str]) -> None:
    """Say which kernels did not run equally often in all forwards."""
    names = list(dict.fromkeys(name for count in counts for name in count))
    for name in [n for n in names if len({count[n] for count in counts}) > 1][:_NAMES_TOLD]:
        usual, _ = Counter(count[name] for count in counts).most_common(1)[0]
        odd = [str(i) for i, count in enumerate(counts, 1) if count[name] != usual]
        told = ", ".join(odd[:_NAMES_TOLD]) + (", ..." if len(odd) > _NAMES_TOLD else "")
        notes.append(f"{name} ran {usual} times in most forwards, and not in forward {told}")


def _without_steps(rows: Sequence[Row], repeats: int, notes: list[str]) -> KernelTimes:
    """Divide the rows of each kernel evenly among the forwards, in the order in which they ran."""
    by_name: dict[str, list[float]] = {}
    for row in _in_order(rows):
        by_name.setdefault(row.name, []).append(row.duration_us)
    uneven = [name for name, times in by_name.items() if len(times) % repeats]
    samples: list[float] = []
    if not uneven:
        samples = [0.0] * repeats
        for times in by_name.values():
            each = len(times) // repeats
            for number in range(repeats):
                samples[number] += sum(times[number * each : (number + 1) * each]) / _US_PER_MS
    notes += [
        f"{name} ran {len(by_name[name])} times in {repeats} forwards, so that single forwards "
        "can't be told apart"
        for name in uneven[:_NAMES_TOLD]
    ]
    totals = {name: math.fsum(times) for name, times in by_name.items()}
    return KernelTimes(
        latency_ms=math.fsum(totals.values()) / repeats / _US_PER_MS,
        samples_ms=tuple(samples),
        operators=_per_forward(totals, repeats),
        launches_per_forward=len(rows) / repeats,
        notes=tuple(notes),
    )


def _per_forward(total_us: Mapping[str, float], count: int) -> dict[str, float]:
    """Return milliseconds per forward by name, the longest first."""
    ordered = sorted(total_us.items(), key=lambda item: -item[1])
    return {name: us / count / _US_PER_MS for name, us in ordered}

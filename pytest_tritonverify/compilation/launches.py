"""Recorded launches as the judge sees them: data of an untrusted process, and whose it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import values
from pytest_tritonverify.execution import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MOST = 256
_LARGEST = 1 << 16
_MOST_COMPILED = 1024
# Bytes, far below what a frame between two processes may have.
_LARGEST_REQUEST = 16 << 20
_LARGEST_LINE = 1 << 31
_LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True)
class Launch:
    """A kernel as it was launched: all launches that lead to the same code.

    Attributes:
        kernel: its name.
        file: the source file that it stands in.
        line: the line of its `def` there, from 1.
        entry: what was recorded, as `recording` makes it.
        key: the same for launches that a compiler can't tell apart.
    """

    kernel: str
    file: str
    line: int
    entry: Mapping[str, Any] = field(compare=False)
    key: str = ""

    @property
    def description(self) -> str:
        """The specialisation in words, such as `x: *float32, n: i32 (16 divides it), BLOCK=64`."""
        try:
            text = _described(self.entry)
        except Exception:  # noqa: BLE001 - whoever sent it may have sent anything
            text = "?"
        return errors.clip(errors.printable(text), _LONGEST_DESCRIPTION)


@dataclass(frozen=True)
class Recording:
    """The launches of a run.

    Attributes:
        launches: the distinct ones, in order.
        left_out: how many distinct ones were too many, or too large, to be recorded.
    """

    launches: tuple[Launch, ...] = ()
    left_out: int = 0

    @classmethod
    def of(cls, told: object) -> Recording | None:
        """Read what a process tells of its launches; None where it recorded none."""
        if not isinstance(told, dict):
            return None
        given, left_out = told.get("launches"), told.get("left_out")
        entries = given if isinstance(given, list) else []
        found = tuple(_launches(entries[:_MOST]))
        lost = len(entries) - len(found)
        return cls(found, lost + (left_out if type(left_out) is int and left_out > 0 else 0))


def _launches(entries: Iterable[object]) -> Iterator[Launch]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        name, file, line = entry.get("name"), entry.get("file"), entry.get("line")
        if not (isinstance(name, str) and isinstance(file, str) and type(line) is int):
            continue
        key = json.dumps(entry, sort_keys=True)
        if name and file and 0 < line < _LARGEST_LINE and len(key) <= _LARGEST:
            clipped = errors.clip(errors.printable(name), 200)
            yield Launch(clipped, errors.printable(file), line, entry, key)


def merged(recordings: Mapping[int, Recording | None]) -> dict[Launch, list[int]]:
    """Return the distinct launches of a pair's cases, each with the numbers of its cases.

    Args:
        recordings: by number of the case; None for one whose launches are not known.
    """
    first: dict[str, Launch] = {}
    cases: dict[Launch, list[int]] = {}
    for case_idx, recording in sorted(recordings.items()):
        for launch in recording.launches if recording else ():
            known = first.setdefault(launch.key, launch)
            numbers = cases.setdefault(known, [])
            if case_idx not in numbers:
                numbers.append(case_idx)
    return cases


def bounded(cases: Mapping[Launch, list[int]]) -> tuple[dict[Launch, list[int]], int]:
    """Return as many launches as one process is asked to compile, and how many are left out."""
    kept: dict[Launch, list[int]] = {}
    size = 0
    for launch, numbers in cases.items():
        size += len(launch.key)
        if len(kept) >= _MOST_COMPILED or size > _LARGEST_REQUEST:
            break
        kept[launch] = numbers
    return kept, len(cases) - len(kept)


def _described(entry: Mapping[str, Any]) -> str:
    constants = set(entry["constants"])
    parts = [
        f"{name}={values.shown(data)}" if name in constants else f"{name}: {_type(data)}"
        for name, data in entry["args"].items()
    ]
    options = [f"{name}={values.shown(data)}" for name, data in entry["options"].items()]
    return ", ".join(parts) + (f"; {', '.join(options)}" if options else "")


def _type(data: Any) -> str:
    """Return the type of an argument whose value is no constant, and what is specialised on."""
    if not isinstance(data, dict):
        return "None" if data is None else "i1"
    kind = data["k"]
    if kind == "tensor":
        return f"*{data['dtype'] or data['as']}" + ("" if data["aligned"] else " (not aligned)")
    if kind in ("tuple", "list", "named"):
        return f"({', '.join(_type(item) for item in data['v'])})"
    if kind == "descriptor":
        return f"descriptor of {_type(data['base'])}, block {data['block_shape']}"
    if kind == "int" and data["v"] != 1:
        number = data["v"]
        width = "i32" if number < 1 << 31 else "i64" if number < 1 << 63 else "u64"
        return width + (" (16 divides it)" if number % 16 == 0 else "")
    return "fp32" if kind == "float" else values.shown(data)

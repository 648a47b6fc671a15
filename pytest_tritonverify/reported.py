"""What an implementation's process tells of a run: hints for a diagnosis, and never evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_tritonverify.compilation.launches import Recording
from pytest_tritonverify.execution import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.wire import Message

_MOST = 64
_LARGEST = 1 << 62
# Each is a run of the implementation.
_MOST_CONFIGURATIONS = 1000
_KINDS = ("cuda", "npu")
_LONGEST_REASON = 300
STRAY_KINDS = ("load", "store", "atomic")
# Tuples, since what is looked for may be a list, and no set can be asked for that.
SIDES = ("before", "after")


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        kernel: its name.
        file: the source file that it stands in.
        line: its line there, from 1.
        grid: programs along each axis of the grid.
        constexprs: the integers among its compile-time arguments by name.
    """

    kernel: str
    file: str
    line: int
    grid: tuple[int, ...]
    constexprs: dict[str, int]


@dataclass(frozen=True)
class UndefinedLoad:
    """A masked `tl.load` without `other` that left lanes undefined.

    Attributes:
        file: the source file of the load.
        line: its line there, from 1.
        lanes: undefined lanes over all programs.
    """

    file: str
    line: int
    lanes: int

    def __str__(self) -> str:
        """Return the place, as the implementation's author names it."""
        return f"{PurePosixPath(self.file).name}:{self.line}"


@dataclass(frozen=True)
class Stray:
    """Accesses of one line outside of the tensors that a launch was given.

    Attributes:
        file: the source file of the access.
        line: its line there, from 1.
        kind: one of `STRAY_KINDS`.
        tensor: parameter, dtype and shape of the nearest tensor.
        side: "before" its first byte or "after" its last one.
        lanes: how many lanes were out of bounds, over all programs.
        reach: how many bytes the farthest one lies, or ends, outside.
    """

    file: str
    line: int
    kind: str
    tensor: str
    side: str
    lanes: int
    reach: int

    @property
    def writes(self) -> bool:
        """Whether memory was changed, not only read."""
        return self.kind != "load"

    def __str__(self) -> str:
        """Return the place and what happened there."""
        lanes = "1 lane" if self.lanes == 1 else f"{self.lanes} lanes"
        end = "beyond the end" if self.side == "after" else "before the beginning"
        place = f"{PurePosixPath(self.file).name}:{self.line}"
        return f"{place}: {self.kind} of {lanes}, up to {self.reach} bytes {end} of {self.tensor}"


@dataclass(frozen=True)
class Breach:
    """Memory beside a tensor that was written to, seen by guard bands.

    Attributes:
        tensor: its path among inputs or outputs, where it has one, with dtype and shape.
        side: "before" its first byte or "after" its last one.
        count: how many bytes have changed.
        reach: how many bytes away the farthest of them lies, itself included.
        file: where the tensor was made; empty for inputs.
        line: its line there, from 1; 0 for inputs.
    """

    tensor: str
    side: str
    count: int
    reach: int
    file: str
    line: int

    def __str__(self) -> str:
        """Return what was seen."""
        size = "1 byte" if self.count == 1 else f"{self.count} bytes"
        end = "beyond the end" if self.side == "after" else "before the beginning"
        far = "" if self.reach == self.count else f", up to {self.reach} bytes away"
        made = f", made at {PurePosixPath(self.file).name}:{self.line}" if self.file else ""
        return f"{size} {end} of {self.tensor}{made}{far}"


@dataclass(frozen=True)
class Choice:
    """Which configuration of an autotuned kernel ran.

    Attributes:
        kernel: its name.
        count: how many configurations there were.
        index: the one that ran, from 0; None where all did.
        name: of that configuration, such as "BLOCK=64, num_warps=4".
    """

    kernel: str
    count: int
    index: int | None
    name: str


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run besides its outputs.

    Attributes:
        launches: the distinct launches.
        undefined_loads: the loads that left lanes undefined; None where nobody looked.
        choices: what ran of autotuned kernels.
        standin: the `kind` of device that was stood in for, and what was `used` of it; None where
            nothing was.
        strays: accesses outside of tensors.
        breaches: writes beside tensors.
        unguarded: why not all tensors lay between guard bands; empty where they did.
        recording: the launches as a compiler needs them; None where they were not recorded.
        block_pointers: whether a kernel used them in a Triton that has removed them.
    """

    launches: tuple[Launch, ...] = ()
    undefined_loads: tuple[UndefinedLoad, ...] | None = None
    choices: tuple[Choice, ...] = ()
    standin: dict[str, Any] | None = None
    strays: tuple[Stray, ...] = ()
    breaches: tuple[Breach, ...] = ()
    unguarded: str = ""
    recording: Recording | None = None
    block_pointers: bool = False

    @property
    def writes_outside(self) -> bool:
        """Whether memory outside of tensors was written to."""
        return bool(self.breaches) or any(stray.writes for stray in self.strays)

    @classmethod
    def of(cls, message: Message) -> RunFacts:
        """Read the facts of an answer; what is not in its proper form is left out."""
        loads = message.get("masked_loads")
        return cls(
            tuple(_launches(message.get("launches"))),
            None if loads is None else tuple(_loads(loads)),
            tuple(_choices(message.get("configurations"))),
            _standin(message.get("standin")),
            tuple(_strays(message.get("strays"))),
            tuple(_breaches(message.get("breaches"))),
            _text(message.get("unguarded"))[:_LONGEST_REASON],
            Recording.of(message.get("recording")),
            message.get("block_pointers") is True,
        )


def _entries(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (entry for entry in value[:_MOST] if isinstance(entry, dict))


def _launches(value: object) -> Iterator[Launch]:
    for entry in _entries(value):
        kernel, file, line = _text(entry.get("kernel")), _text(entry.get("file")), entry.get("line")
        grid, constants = entry.get("grid"), entry.get("constexprs")
        if (
            kernel
            and file
            and _is_count(line)
            and isinstance(grid, list)
            and 1 <= len(grid) <= 3  # noqa: PLR2004 - the axes of a grid
            and all(_is_count(axis) for axis in grid)
            and isinstance(constants, dict)
        ):
            sizes = {
                _text(name): size
                for name, size in list(constants.items())[:_MOST]
                if type(size) is int and abs(size) < _LARGEST
            }
            yield Launch(kernel, file, line, tuple(grid), sizes)


def _loads(value: object) -> Iterator[UndefinedLoad]:
    for entry in _entries(value):
        file, line, lanes = _text(entry.get("file")), entry.get("line"), entry.get("lanes")
        if file and _is_count(line) and _is_count(lanes):
            yield UndefinedLoad(file, line, lanes)


def _strays(value: object) -> Iterator[Stray]:
    for entry in _entries(value):
        file, line, tensor = _text(entry.get("file")), entry.get("line"), _text(entry.get("tensor"))
        kind, side = entry.get("kind"), entry.get("side")
        lanes, reach = entry.get("lanes"), entry.get("reach")
        known = kind in STRAY_KINDS and side in SIDES
        if file and tensor and known and _is_count(line) and _is_count(lanes) and _is_count(reach):
            yield Stray(file, line, str(kind), tensor, str(side), lanes, reach)


def _breaches(value: object) -> Iterator[Breach]:
    for entry in _entries(value):
        tensor, file, line = _text(entry.get("tensor")), _text(entry.get("file")), entry.get("line")
        side, count, reach = entry.get("side"), entry.get("count"), entry.get("reach")
        known = side in SIDES
        if tensor and known and _is_count(count) and _is_count(reach) and _is_count(line):
            yield Breach(tensor, str(side), count, reach, file, line)


def _choices(value: object) -> Iterator[Choice]:
    for entry in _entries(value):
        kernel, name = _text(entry.get("kernel")), _text(entry.get("name"))
        count, index = entry.get("count"), entry.get("index")
        known = index is None or (_is_count(index) and index < _MOST_CONFIGURATIONS)
        if kernel and _is_count(count) and count <= _MOST_CONFIGURATIONS and known:
            yield Choice(kernel, count, index, name)


def _standin(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict) or value.get("kind") not in _KINDS:
        return None
    words = value.get("used")
    used = [_text(word)[:40] for word in words[:_MOST]] if isinstance(words, list) else []
    return {"kind": value["kind"], "used": sorted({word for word in used if word})}


def _text(value: object) -> str:
    return errors.clip(errors.printable(value), 4096) if isinstance(value, str) else ""


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _LARGEST

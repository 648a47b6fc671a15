"""What an untrusted process told of a run, read with care: bounded, and nothing but plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_tritonverify import figures

MOST_ITEMS = 4096
_LONGEST = 400
_LARGEST = 1 << 62


class ObservationError(ValueError):
    """What came is no observation."""


@dataclass(frozen=True)
class Place:
    """A line of user code; `file` is None where none is known."""

    file: str | None = None
    line: int = 0


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        kernel: name of its function.
        defined: where its function begins.
        site: the line that launched it.
        programs: how many programs ran.
        completed: it ended without an exception.
        wrote: the arguments whose bytes it changed.
        tuned: a tuner launched it.
        own_thread: it came from the thread that called the forward.
    """

    kernel: str
    defined: Place
    site: Place
    programs: int
    completed: bool
    wrote: tuple[str, ...]
    tuned: bool
    own_thread: bool


@dataclass(frozen=True)
class Operator:
    """An operator of torch, from one line.

    Attributes:
        name: as torch names it.
        place: the line that issued it.
        on: what the tensors that it read depend on ("input", "parameter", "launch", "host", ...).
        reorders: it copies a view, in the view's order.
        count: how often.
        on_device: all that it read holds elements, in an accelerator's memory.
    """

    name: str
    place: Place
    on: frozenset[str] = frozenset()
    reorders: bool = False
    count: int = 1
    on_device: bool = False


@dataclass(frozen=True)
class Content:
    """The bytes of an odd argument of a launch.

    Attributes:
        kind: "write" where something unobserved changed it, "host" where nothing observed made it.
        digest: of its bytes at the launch.
        tensor: dtype and shape.
        kernel: the kernel's name.
        site: the line that launched it.
    """

    kind: str
    digest: str
    tensor: str
    kernel: str
    site: Place


@dataclass(frozen=True)
class Event:
    """An unexplained change, or a tensor from nowhere, and who met it first."""

    kind: str
    tensor: str
    where: str
    place: Place


@dataclass(frozen=True)
class Origin:
    """What an outcome of a call may depend on, and what is odd about its bytes."""

    path: str
    marks: frozenset[str]
    odd: str | None


@dataclass(frozen=True)
class Entry:
    """A function that a call runs."""

    place: Place
    name: str
    digest: str
    wrappers: tuple[str, ...]


@dataclass(frozen=True)
class EntryFacts:
    """What a call of the model runs, as found before or after it."""

    own_class: bool
    bound_on_instance: tuple[str, ...]
    forward: Entry | None
    call: Entry | None
    is_module: bool
    call_is_torchs: bool
    hooks: tuple[str, ...]
    threads: int


@dataclass(frozen=True)
class Observation:
    """The observed run of a case."""

    launches: tuple[Launch, ...]
    launch_count: int
    operators: tuple[Operator, ...]
    contents: dict[str, Content]
    events: tuple[Event, ...]
    origins: tuple[Origin, ...]
    before: EntryFacts
    after: EntryFacts
    changed: dict[str, tuple[str, ...]]
    launcher_intact: bool
    seconds: float

    @classmethod
    def of(cls, told: object) -> Observation:
        """Read an observation.

        Raises:
            ObservationError: it has not the form of one.
        """
        data = _object(told)
        changed = _object(data.get("changed"))
        return cls(
            launches=tuple(_launch(item) for item in _items(data, "launches")),
            launch_count=_natural(data.get("launch_count")),
            operators=tuple(_operator(item) for item in _items(data, "operators")),
            contents=_contents(data.get("contents")),
            events=tuple(_event(item) for item in _items(data, "events")),
            origins=tuple(_origin(item) for item in _items(data, "outputs")),
            before=_entry_facts(data.get("before")),
            after=_entry_facts(data.get("after")),
            changed={stage: _texts(changed.get(stage)) for stage in ("import", "build", "forward")},
            launcher_intact=_flag(data.get("launcher_intact")),
            seconds=_seconds(data.get("seconds")),
        )


@dataclass(frozen=True)
class Replay:
    """The replayed run: `native` and `device_kernels` are what torch's profiler saw."""

    launches: tuple[Launch, ...] = ()
    contents: dict[str, Content] = field(default_factory=dict)
    native: dict[str, int] = field(default_factory=dict)
    device_kernels: dict[str, int] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def of(cls, told: object) -> Replay:
        """Read what was told of a replay.

        Raises:
            ObservationError: it has not the form of one.
        """
        data = _object(told)
        return cls(
            launches=tuple(_launch(item) for item in _items(data, "launches")),
            contents=_contents(data.get("contents")),
            native=_counts(_items(data, "native")),
            device_kernels=_counts(_items(data, "device_kernels")),
            problem=_text_or_none(data.get("problem")),
        )


@dataclass(frozen=True)
class Endurance:
    """The calls after the replay."""

    calls: int = 0
    native: dict[str, int] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def of(cls, told: object) -> Endurance:
        """Read what was told of further calls.

        Raises:
            ObservationError: it has not the form of that.
        """
        data = _object(told)
        return cls(
            calls=_natural(data.get("calls")),
            native=_counts(_items(data, "native")),
            problem=_text_or_none(data.get("problem")),
        )


def operators_of(told: object) -> tuple[Operator, ...]:
    """Read a list of operators.

    Raises:
        ObservationError: it is none.
    """
    return tuple(_operator(item) for item in _items({"operators": told}, "operators"))


def broke_off(told: object) -> str | None:
    """Return why a forward without launches had no outputs, None where it had some.

    Raises:
        ObservationError: that was not told.
    """
    return _text_or_none(_object(told).get("broke_off"))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ObservationError("an observation has not the form of one")
    return value


def _items(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list) or len(value) > 3 * MOST_ITEMS:
        raise ObservationError(f"the observation's {key} are no list, or an endless one")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ObservationError("an observation holds something else where text belongs")
    return value[:_LONGEST].encode("utf-8", "backslashreplace").decode()


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise ObservationError("an observation holds no list where one belongs")
    return tuple(_text(item) for item in value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ObservationError("an observation holds something else where a truth value belongs")
    return value


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ObservationError("an observation holds something else where a count belongs")
    return value


def _seconds(value: object) -> float:
    seconds = figures.number(value)
    if seconds is None or seconds < 0:
        raise ObservationError("an observation holds something else where seconds belong")
    return seconds


def _place(data: dict[str, Any], file: str = "file", line: str = "line") -> Place:
    return Place(_text_or_none(data.get(file)), _natural(data.get(line)))


def _launch(value: object) -> Launch:
    data = _object(value)
    return Launch(
        kernel=_text(data.get("kernel")),
        defined=_place(data),
        site=_place(data, "site_file", "site_line"),
        programs=_natural(data.get("programs")),
        completed=_flag(data.get("completed")),
        wrote=_texts(data.get("wrote")),
        tuned=_flag(data.get("tuned")),
        own_thread=_flag(data.get("own_thread")),
    )


def _operator(value: object) -> Operator:
    data = _object(value)
    return Operator(
        name=_text(data.get("name")),
        place=_place(data),
        on=frozenset(_texts(data.get("on"))),
        reorders=_flag(data.get("reorders")),
        count=_natural(data.get("count")),
        on_device=data.get("on_device") is True,
    )


def _contents(value: object) -> dict[str, Content]:
    data = _object(value)
    if len(data) > MOST_ITEMS:
        raise ObservationError("the observation's contents are endless")
    found = {}
    for key, item in data.items():
        one = _object(item)
        found[_text(key)] = Content(
            kind=_text(one.get("kind")),
            digest=_text(one.get("digest")),
            tensor=_text(one.get("tensor")),
            kernel=_text(one.get("kernel")),
            site=_place(one),
        )
    return found


def _event(value: object) -> Event:
    data = _object(value)
    return Event(
        _text(data.get("kind")), _text(data.get("tensor")), _text(data.get("where")), _place(data)
    )


def _origin(value: object) -> Origin:
    data = _object(value)
    marks = frozenset(_texts(data.get("marks")))
    return Origin(_text(data.get("path")), marks, _text_or_none(data.get("odd")))


def _entry(value: object) -> Entry | None:
    if value is None:
        return None
    data = _object(value)
    return Entry(
        _place(data), _text(data.get("name")), _text(data.get("digest")), _texts(data["wrappers"])
    )


def _entry_facts(value: object) -> EntryFacts:
    data = _object(value)
    return EntryFacts(
        own_class=_flag(data.get("own_class")),
        bound_on_instance=_texts(data.get("bound_on_instance")),
        forward=_entry(data.get("forward")),
        call=_entry(data.get("call")),
        is_module=_flag(data.get("is_module")),
        call_is_torchs=_flag(data.get("call_is_torchs")),
        hooks=_texts(data.get("hooks")),
        threads=_natural(data.get("threads")),
    )


def _counts(items: list[Any]) -> dict[str, int]:
    return {
        _text(_object(item).get("name")): _natural(_object(item).get("count")) for item in items
    }

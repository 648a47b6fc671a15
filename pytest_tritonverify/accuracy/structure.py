"""Walk two output trees side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_DEPTH = 64
"""Deeper nesting is refused: it is a container that holds itself, or as good as one."""

_LONGEST = 80
_MOST_LISTED = 10

NodeKind = Literal["value", "sequence", "mapping", "record", "none", "str", "unsupported"]


# Buffer is younger than the oldest torch supported.
_PLAIN_TENSORS = frozenset(
    {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)}
)

_KINDS_BY_TYPE: tuple[tuple[tuple[type, ...], NodeKind], ...] = (
    ((torch.Tensor, bool, int, float, complex), "value"),
    ((type(None),), "none"),
    ((str,), "str"),
    ((list, tuple), "sequence"),
    ((Mapping,), "mapping"),
)


@dataclass(frozen=True)
class ValuePair:
    """Two tensors or numbers that stand in the same place, still to be judged."""

    path: str
    golden: object
    actual: object


@dataclass(frozen=True)
class Agreement:
    """A place without numbers where both sides agree: None, equal text, empty containers."""

    path: str
    what: str
    compared: bool = False


@dataclass(frozen=True)
class Disagreement:
    """A place where the structures differ."""

    path: str
    problem: str


def pair_outputs(golden: object, actual: object) -> Iterator[ValuePair | Agreement | Disagreement]:
    """Yield the places of two output trees, in the golden's order.

    Lists, tuples and named tuples are one kind; dicts need the same keys in any order; dataclass
    instances need the same field names, whatever their class. At the top a lone tensor or number
    equals a list of one. After a disagreement about a container's members, those that both sides
    have are still yielded.

    Args:
        golden: The reference's output.
        actual: The implementation's output.
    """
    if node_kind(actual) == "value" and _holds_one_value(golden):
        actual = [actual]
    elif node_kind(golden) == "value" and _holds_one_value(actual):
        actual = _members(actual)[0][1]
    yield from _walk("output", golden, actual, 0)


def _holds_one_value(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 1 and node_kind(value[0]) == "value"


def node_kind(value: object) -> NodeKind:
    """Return what a node of an output tree is."""
    for types, kind in _KINDS_BY_TYPE:
        if isinstance(value, types):
            return kind
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "record"
    return "unsupported"


def is_plain_tensor(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is no subclass, whose answers to any question may be its own."""
    return type(tensor) in _PLAIN_TENSORS


def describe(value: object) -> str:
    """Return a short text for a node, for messages."""
    if isinstance(value, torch.Tensor) and is_plain_tensor(value):
        return f"a tensor of shape {list(value.shape)} and dtype {value.dtype}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with keys {shorten(str(list(value)))}"
    kind = node_kind(value)
    if kind == "record":
        fields = shorten(str(list(_fields(value))))
        return f"a dataclass {type(value).__name__} with fields {fields}"
    if kind == "unsupported" or isinstance(value, torch.Tensor):
        return f"an object of type {type(value).__module__}.{type(value).__qualname__}"
    return "None" if value is None else f"{type(value).__name__} {shorten(repr(value))}"


def shorten(text: str) -> str:
    """Return a text of bounded length."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _walk(
    path: str, golden: object, actual: object, depth: int
) -> Iterator[ValuePair | Agreement | Disagreement]:
    if depth > MAX_DEPTH:
        yield Disagreement(shorten(path), f"nested more than {MAX_DEPTH} levels deep")
        return
    kind = node_kind(golden)
    for side, value in (("golden", golden), ("implementation's output", actual)):
        if node_kind(value) == "unsupported":
            yield Disagreement(
                path,
                f"the {side} is {describe(value)}, which can't be judged; supported are tensors, "
                f"numbers, str, None, and lists, tuples, dicts and dataclasses of them",
            )
            return
    if kind != node_kind(actual):
        yield Disagreement(path, f"expected {describe(golden)}, got {describe(actual)}")
    elif kind == "value":
        yield ValuePair(path, golden, actual)
    elif kind == "none":
        yield Agreement(path, "None")
    elif kind == "str":
        if golden == actual:
            yield Agreement(path, "equal text", compared=True)
        else:
            yield Disagreement(path, f"expected {describe(golden)}, got {describe(actual)}")
    else:
        yield from _walk_members(path, golden, actual, depth)


def _walk_members(
    path: str, golden: object, actual: object, depth: int
) -> Iterator[ValuePair | Agreement | Disagreement]:
    expected, found = _members(golden), _members(actual)
    missing = [key for key in expected if key not in found]
    unexpected = [key for key in found if key not in expected]
    if missing or unexpected:
        problem = f"expected {describe(golden)}, got {describe(actual)}"
        if missing:
            problem += f"; missing: {_listing(path + expected[key][0] for key in missing)}"
        if unexpected:
            problem += f"; unexpected: {_listing(path + found[key][0] for key in unexpected)}"
        yield Disagreement(path, problem)
    elif not expected:
        yield Agreement(path, "an empty container")
    for key, (suffix, value) in expected.items():
        if key in found:
            yield from _walk(path + suffix, value, found[key][1], depth + 1)


def _listing(paths: Iterable[str]) -> str:
    listed = list(paths)
    more = len(listed) - _MOST_LISTED
    return ", ".join(listed[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _members(value: object) -> dict[object, tuple[str, object]]:
    """Return a container's members by key, each with its piece of path."""
    if isinstance(value, (list, tuple)):
        return {index: (f"[{index}]", member) for index, member in enumerate(value)}
    if isinstance(value, Mapping):
        return {key: (f"[{key!r}]", member) for key, member in value.items()}
    return {name: (f".{name}", member) for name, member in _fields(value).items()}


def _fields(value: Any) -> dict[str, object]:
    return {
        field.name: getattr(value, field.name)
        for field in dataclasses.fields(value)
        if hasattr(value, field.name)
    }

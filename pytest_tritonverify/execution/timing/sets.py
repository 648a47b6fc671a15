"""How the packed inputs of a benchmark's case are described to the processes that use them.

Sets of inputs take turns. Where there are fewer than forwards, each comes round again with its rows
moved on: tensor by tensor, the first rows of a set become its last ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_tritonverify.execution.wire import Message

Turning = list[int] | None
"""How a storage's rows move on: bytes of one row and their number; None for one that stays."""


def described(spec: Message, turning: Sequence[Turning] = ()) -> dict[str, Any]:
    """Return the description of packed `calls` and `init`.

    Args:
        spec: what `tensors.pack` described.
        turning: of each storage of a call, in the order of its tensors; empty where all stay.

    Returns:
        `sets`, the trees of the calls, `init`, the tree of the constructor arguments, their common
        `segments`, and `turning`.
    """
    calls, init = (node for _, node in spec["tree"]["v"])
    segments = spec["segments"]
    return {"sets": calls["v"], "init": init, "segments": segments, "turning": list(turning)}


def case_of(packed: Message, number: int) -> dict[str, Any]:
    """Return a set and the constructor arguments as `running.pack_case` describes a case.

    Args:
        packed: what `described` returned.
        number: of the forward; any whole number, as sets are taken in turn.
    """
    segments, sets = packed["segments"], packed["sets"]
    round_, which = divmod(number, len(sets))
    call = {"tree": sets[which], "segments": segments}
    if packed["turning"] and round_:
        call["segments"] = _turned(call, packed["turning"], round_)
    return {"call": call, "init": {"tree": packed["init"], "segments": segments}}


def shift_of(turning: Turning, round_: int) -> int:
    """Return how many bytes of a storage's begin have moved to its end.

    Args:
        turning: of the storage.
        round_: how often its set has been used before; 0 moves nothing.
    """
    if turning is None:
        return 0
    size, rows = turning
    return size * (round_ % rows)


def _turned(call: Message, turning: Sequence[Turning], round_: int) -> list[list[int]]:
    segments = list(call["segments"])
    order = dict.fromkeys(number for number in _tensors(call["tree"]) if segments[number][1])
    for number, how in zip(order, turning, strict=True):
        shift = shift_of(how, round_)
        if shift:
            segments[number] = [*segments[number], shift]
    return segments


def _tensors(node: Message) -> Iterator[int]:
    """Yield the segments of a tree's tensors, in the order in which `Rotation` meets them."""
    kind = node["k"]
    if kind == "tensor":
        yield node["s"]
    elif kind == "dict":
        for _, item in node["v"]:
            yield from _tensors(item)
    elif kind in ("list", "tuple", "namedtuple", "dataclass"):
        for item in node["v"]:
            yield from _tensors(item)

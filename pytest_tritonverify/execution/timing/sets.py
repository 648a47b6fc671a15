"""How the packed inputs of a benchmark's case are described to the processes that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message


def described(spec: Message) -> dict[str, Any]:
    """Return the description of packed `calls` and `init`.

    Returns:
        `sets`, the trees of the calls, `init`, the tree of the constructor arguments, and their
        common `segments`.
    """
    calls, init = (node for _, node in spec["tree"]["v"])
    return {"sets": calls["v"], "init": init, "segments": spec["segments"]}


def case_of(packed: Message, number: int) -> dict[str, Any]:
    """Return a set and the constructor arguments as `running.pack_case` describes a case.

    Args:
        packed: what `described` returned.
        number: of the set; any whole number, as sets are taken in turn.
    """
    segments, sets = packed["segments"], packed["sets"]
    trees = {"call": sets[number % len(sets)], "init": packed["init"]}
    return {name: {"tree": tree, "segments": segments} for name, tree in trees.items()}

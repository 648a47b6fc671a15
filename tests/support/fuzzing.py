"""Strategies of damage: what readers get from programs that are broken, or mean harm."""

from __future__ import annotations

import copy
import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# A few seconds in all for the suite; `make fuzz` asks for so many that it takes minutes.
EXAMPLES = int(os.environ.get("TRITONVERIFY_FUZZ", "40"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES < 1000,
    database=None,
    suppress_health_check=list(HealthCheck),
)

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400])
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["", "\x00", "\ud800", "a" * 5000, "../..", "torch.float32", "0x1p4000"])
)
values = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place in a tree of lists and objects, as its container and key."""
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo:
        one = todo.pop()
        keys = (
            list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []
        )
        for key in keys:
            found.append((one, key))
            todo.append(one[key])
    return found


@st.composite
def damaged(draw: st.DrawFn, tree: Any) -> Any:
    """Draw a tree with some of its values replaced, taken out or exchanged."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(tree)
        if not places:
            break
        owner, key = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(["replace", "remove", "exchange"]))
        if kind == "remove":
            del owner[key]
        elif kind == "exchange":
            other, at = draw(st.sampled_from(places))
            owner[key] = copy.deepcopy(other[at]) if at in _keys(other) else None
        else:
            owner[key] = draw(values)
    return tree


def _keys(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else range(len(owner))


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes, words: tuple[bytes, ...] = ()) -> bytes:
    """Draw bytes with some parts replaced, doubled, or taken out."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        piece = draw(
            st.binary(max_size=8)
            | st.sampled_from([b"", b"\x00", data[start:end] * 3, *words])
            | st.just(data[end : end + 60])
        )
        data = data[:start] + piece + data[end:]
    return data

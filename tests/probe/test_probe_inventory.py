"""What an untrusted process tells of its tensors is read with care."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.execution.wire import WireError
from pytest_tritonverify.probe.inventory import MOST_TENSORS, Facts, Inventory

GOOD: dict[str, Any] = {"dtype": "float32", "shape": [2, 3], "digest": "0" * 64, "transposed": None}


def _inventory(facts: Any) -> dict[str, Any]:
    return {"tensors": [["w", facts]], "sequences": [["layers", 3], ["bag", None]]}


def test_honest_inventory_is_read() -> None:
    found = Inventory.of(_inventory({**GOOD, "registered": True}))
    assert found.tensors == {"w": Facts("float32", (2, 3), "0" * 64)}
    assert found.sequences == {"layers": 3, "bag": None}
    assert not found.truncated


@pytest.mark.parametrize(
    "change",
    [
        {"shape": "ab"},
        {"shape": [-1]},
        {"shape": [True]},
        {"shape": [1.0]},
        {"shape": [1] * 65},
        {"shape": [1 << 64]},
        {"dtype": None},
        {"dtype": "float32\n"},
        {"dtype": "f" * 99},
        {"digest": 3},
        {"digest": "0" * 63},
        {"digest": "g" * 64},
        {"transposed": "short"},
    ],
    ids=str,
)
def test_forged_facts_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        Inventory.of(_inventory({**GOOD, **change}))


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"tensors": {}, "sequences": []},
        {"tensors": [], "sequences": None},
        {"tensors": ["w"], "sequences": []},
        {"tensors": [["w", None]], "sequences": []},
        {"tensors": [["", GOOD]], "sequences": []},
        {"tensors": [[3, GOOD]], "sequences": []},
        {"tensors": [["n" * 1000, GOOD]], "sequences": []},
        {"tensors": [], "sequences": [[None, 3]]},
        {"tensors": [["w", GOOD]] * (MOST_TENSORS + 1), "sequences": []},
    ],
    ids=lambda data: str(data)[:30],
)
def test_forged_inventories_are_refused(data: Any) -> None:
    with pytest.raises(WireError):
        Inventory.of(data)


def test_names_can_be_shown() -> None:
    found = Inventory.of({"tensors": [["w\ud800", GOOD]], "sequences": []})
    assert list(found.tensors) == ["w\\ud800"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(list(GOOD)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tensors", "sequences", "truncated", *GOOD]) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_nothing_but_a_wire_error_comes_of_nonsense(data: Any) -> None:
    try:
        found = Inventory.of(data)
    except WireError:
        return
    assert all(isinstance(facts, Facts) for facts in found.tensors.values())
    json.dumps(list(found.tensors))

"""What an implementation's process tells of its run is read with care: it may say anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.reported import Launch, RunFacts, Stray, UndefinedLoad

LAUNCH = {"kernel": "k", "file": "/a/b.py", "line": 3, "grid": [2, 1], "constexprs": {"BLOCK": 64}}
LOAD = {"file": "/a/b.py", "line": 9, "lanes": 28}
STRAY: dict[str, Any] = {
    "file": "/a/b.py",
    "line": 9,
    "kind": "store",
    "tensor": "out (torch.float32, shape [5])",
    "side": "after",
    "lanes": 3,
    "reach": 12,
}

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def test_facts_in_their_proper_form_are_read() -> None:
    facts = RunFacts.of({"launches": [LAUNCH], "masked_loads": [LOAD]})

    assert facts.launches == (Launch("k", "/a/b.py", 3, (2, 1), {"BLOCK": 64}),)
    assert facts.undefined_loads == (UndefinedLoad("/a/b.py", 9, 28),)
    assert str(facts.undefined_loads[0]) == "b.py:9"


def test_that_nobody_looked_for_undefined_lanes_differs_from_that_there_are_none() -> None:
    assert RunFacts.of({}).undefined_loads is None
    assert RunFacts.of({"masked_loads": []}).undefined_loads == ()


def test_stray_accesses_are_told_by_place_tensor_and_distance() -> None:
    (stray,) = RunFacts.of({"strays": [STRAY]}).strays
    assert stray == Stray(**STRAY)
    assert str(stray) == (
        "b.py:9: store of 3 lanes, up to 12 bytes beyond the end of out (torch.float32, shape [5])"
    )
    assert stray.writes
    (read,) = RunFacts.of({"strays": [{**STRAY, "kind": "load"}]}).strays
    assert not read.writes


@pytest.mark.parametrize(
    ("key", "value"),
    [("kind", "glance"), ("side", "left"), ("lanes", -1), ("reach", 1.5), ("tensor", None)],
)
def test_a_stray_access_that_cannot_be_is_left_out(key: str, value: object) -> None:
    assert RunFacts.of({"strays": [{**STRAY, key: value}]}).strays == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kernel", ""),
        ("kernel", 7),
        ("file", None),
        ("line", -1),
        ("line", True),
        ("grid", []),
        ("grid", [1, 1, 1, 1]),
        ("grid", [1.5]),
        ("grid", [1 << 80]),
        ("constexprs", [64]),
    ],
)
def test_a_launch_that_cannot_be_is_left_out(key: str, value: object) -> None:
    assert RunFacts.of({"launches": [{**LAUNCH, key: value}]}).launches == ()


def test_of_constants_only_sizes_count() -> None:
    odd = {**LAUNCH, "constexprs": {"A": True, "B": 1.5, "C": 1 << 90, "D": 8}}
    assert RunFacts.of({"launches": [odd]}).launches[0].constexprs == {"D": 8}


def test_a_flood_is_cut() -> None:
    facts = RunFacts.of({"launches": [LAUNCH] * 5000, "masked_loads": [LOAD] * 5000})
    assert len(facts.launches) == 64
    assert facts.undefined_loads is not None
    assert len(facts.undefined_loads) == 64


@given(anything, anything)
def test_nothing_that_comes_breaks_the_judge(launches: Any, loads: Any) -> None:
    facts = RunFacts.of({"launches": launches, "masked_loads": loads})
    assert isinstance(facts.launches, tuple)


@given(st.fixed_dictionaries(dict.fromkeys(LAUNCH, anything)))
def test_no_entry_breaks_the_judge(entry: dict[str, Any]) -> None:
    for launch in RunFacts.of({"launches": [entry], "masked_loads": [entry]}).launches:
        assert launch.kernel
        assert 1 <= len(launch.grid) <= 3

"""What an untrusted process tells is read with care."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.evidence import observations
from pytest_tritonverify.evidence.observations import Observation, ObservationError

ENTRY = {"file": "f", "line": 1, "name": "forward", "digest": "d", "wrappers": []}
FACTS = {
    "own_class": True,
    "bound_on_instance": [],
    "forward": ENTRY,
    "call": None,
    "is_module": True,
    "call_is_torchs": True,
    "hooks": [],
    "threads": 1,
}
TOLD: dict[str, Any] = {
    "launches": [
        {
            "kernel": "k",
            "file": "f",
            "line": 1,
            "site_file": None,
            "site_line": 0,
            "programs": 2,
            "completed": True,
            "wrote": ["o"],
            "tuned": False,
            "own_thread": True,
        }
    ],
    "launch_count": 1,
    "operators": [
        {"name": "aten.mm", "file": "f", "line": 1, "on": ["input"], "reorders": False, "count": 1}
    ],
    "contents": {
        "0:x": {
            "kind": "host",
            "digest": "d",
            "tensor": "float32[1]",
            "kernel": "k",
            "file": "f",
            "line": 1,
        }
    },
    "events": [{"kind": "write", "tensor": "t", "where": "w", "file": None, "line": 0}],
    "outputs": [{"path": "output", "marks": ["launch"], "odd": None}],
    "before": FACTS,
    "after": FACTS,
    "changed": {"import": [], "build": [], "forward": []},
    "launcher_intact": True,
    "seconds": 0.5,
}


def test_a_proper_one_is_read() -> None:
    found = Observation.of(TOLD)
    assert found.launches[0].programs == 2
    assert found.operators[0].on == {"input"}
    assert found.before.forward is not None


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every part of a tree."""
    found = [path] if path else []
    keys = range(len(value)) if isinstance(value, list) else value
    if isinstance(value, (list, dict)):
        for key in keys:
            found += places(value[key], (*path, key))
    return found


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
)


@given(st.sampled_from(places(TOLD)), JUNK)
def test_anything_else_is_refused_or_read_as_data(path: tuple[Any, ...], junk: Any) -> None:
    told = copy.deepcopy(TOLD)
    part = told
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = junk
    try:
        Observation.of(told)
    except ObservationError:
        return


@pytest.mark.parametrize(
    "told",
    # JSON has numbers that no float holds.
    [None, [], "x", 3, {}, {"launches": {}}, {**TOLD, "seconds": 10**400}],
)
def test_no_observation_at_all(told: object) -> None:
    with pytest.raises(ObservationError):
        Observation.of(told)


def test_sizes_are_bounded() -> None:
    long = {**TOLD, "operators": TOLD["operators"] * 100_000}
    with pytest.raises(ObservationError, match="endless"):
        Observation.of(long)
    named = copy.deepcopy(TOLD)
    named["operators"][0]["name"] = "x" * 100_000 + "\ud800"
    assert len(Observation.of(named).operators[0].name) <= 400
    with pytest.raises(ObservationError):
        observations.Replay.of({**TOLD, "native": [], "device_kernels": [{"name": "k"}]})

"""What an untrusted process tells is read with care."""

from __future__ import annotations

import copy

import pytest

from pytest_tritonverify.evidence import observations
from pytest_tritonverify.evidence.observations import Observation, ObservationError
from tests.support.observed import OBSERVED


def test_a_proper_one_is_read() -> None:
    found = Observation.of(OBSERVED)
    assert found.launches[0].programs == 2
    assert found.operators[0].on == {"input"}
    assert found.before.forward is not None


@pytest.mark.parametrize(
    "told",
    # JSON has numbers that no float holds.
    [None, [], "x", 3, {}, {"launches": {}}, {**OBSERVED, "seconds": 10**400}],
)
def test_no_observation_at_all(told: object) -> None:
    with pytest.raises(ObservationError):
        Observation.of(told)


def test_sizes_are_bounded() -> None:
    long = {**OBSERVED, "operators": OBSERVED["operators"] * 100_000}
    with pytest.raises(ObservationError, match="endless"):
        Observation.of(long)
    named = copy.deepcopy(OBSERVED)
    named["operators"][0]["name"] = "x" * 100_000 + "\ud800"
    assert len(Observation.of(named).operators[0].name) <= 400
    with pytest.raises(ObservationError):
        observations.Replay.of({**OBSERVED, "native": [], "device_kernels": [{"name": "k"}]})

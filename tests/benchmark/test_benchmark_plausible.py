"""Which times can be true by the judge's own clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.benchmark import answers, plausible
from pytest_tritonverify.benchmark.measurement import MeasurementError
from pytest_tritonverify.benchmark.plausible import Loop

TRUSTED = Loop(judged_ms=110.0, told_ms=108.0, forwards_ms=98.0)


def test_an_honest_loop_is_believed() -> None:
    assert plausible.objection(Loop(62.0, 60.0, 50.0), TRUSTED) is None
    # Much faster than the reference: preparing the inputs takes as long.
    assert plausible.objection(Loop(13.0, 12.0, 1.0), TRUSTED) is None


def test_a_slow_clock_is_found_out() -> None:
    objection = plausible.objection(Loop(2000.0, 20.0, 15.0), TRUSTED)
    assert objection is not None
    assert "2000 ms by the judge's clock and 20 ms by its own" in objection


def test_time_that_is_moved_out_of_the_forwards_is_found_out() -> None:
    objection = plausible.objection(Loop(2000.0, 1995.0, 0.05), TRUSTED)
    assert objection is not None
    assert "its forwards took 0.1 ms" in objection
    # Without a trusted loop nobody knows what preparing takes.
    assert plausible.objection(Loop(2000.0, 1995.0, 0.05), None) is None


def test_silence_about_the_loop_is_found_out() -> None:
    objection = plausible.objection(Loop(None, 12.0, 2.0), TRUSTED)
    assert objection is not None
    assert "did not report" in objection


@given(
    forwards=st.floats(0, 1e6),
    preparation=st.floats(0, 1e4),
    factor=st.floats(0.2, 3.0),
    late=st.floats(0, plausible.SLACK_MS),
)
def test_no_honest_loop_is_ever_refused(
    forwards: float, preparation: float, factor: float, late: float
) -> None:
    trusted = Loop(preparation + 1, preparation + 1, 1.0)
    told = forwards + factor * preparation
    assert plausible.objection(Loop(told + late, told, forwards), trusted) is None


@given(forwards=st.floats(1e3, 1e6), preparation=st.floats(0, 100), told=st.floats(0, 0.25))
def test_claiming_a_quarter_of_a_long_loop_never_works(
    forwards: float, preparation: float, told: float
) -> None:
    trusted = Loop(preparation + 1, preparation + 1, 1.0)
    claimed = Loop(forwards + preparation, forwards + preparation, told * forwards)
    assert plausible.objection(claimed, trusted) is not None


TIMING = {
    "method": "cpu_wall_clock",
    "samples_ms": [1.0, 3.0],
    "latency_ms": 2.0,
    "reason": None,
    "operators": {},
    "launches_per_forward": None,
    "cross_check_ms": None,
    "loop_ms": 5.0,
    "forwards_ms": 4.0,
    "notes": [],
}


def test_an_answer_is_read() -> None:
    found = answers.read({"timing": TIMING, "peak_memory_mb": 1.5}, 2, 0.006)
    assert found.side.samples_ms == (1.0, 3.0)
    assert found.side.peak_memory_mb == 1.5
    assert found.loop.judged_ms == pytest.approx(6.0)
    assert (found.loop.told_ms, found.loop.forwards_ms) == (5.0, 4.0)


@pytest.mark.parametrize(
    "change",
    [
        {"samples_ms": [1.0]},
        {"samples_ms": [1.0, 3.0, 2.0]},
        {"latency_ms": 0.5},
        {"latency_ms": None},
        {"loop_ms": -1.0},
        {"loop_ms": float("nan")},
        {"loop_ms": 10**400},
        {"samples_ms": [float("inf"), float("-inf")]},
        {"samples_ms": [1.7e308, 1.7e308]},
        {"forwards_ms": "0"},
        {"method": "stopwatch"},
        {"more": 1},
    ],
)
def test_nonsense_is_no_answer(change: dict[str, object]) -> None:
    with pytest.raises(MeasurementError):
        answers.read({"timing": {**TIMING, **change}, "peak_memory_mb": None}, 2, 0.006)


def test_an_answer_without_a_timing_is_none() -> None:
    with pytest.raises(MeasurementError, match="no timing"):
        answers.read({}, 2, 0.006)

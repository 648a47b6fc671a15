"""Which forward a device's activities belong to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.execution.timing.windows import Activity, attribute


def ours(name: str) -> bool:
    return name.startswith("Memcpy ")


def test_all_streams_count_and_preparation_between_forwards_does_not() -> None:
    windows = [(1_000, 2_000), (5_000, 6_000)]
    activities = [
        Activity("Memcpy DtoD", 500, 100),
        Activity("kernel", 1_100, 300),
        # On another stream, at the same time.
        Activity("kernel", 1_150, 300),
        Activity("Memcpy DtoD", 1_800, 50),
        Activity("Memcpy DtoD", 4_000, 100),
        Activity("kernel", 5_100, 200),
    ]
    found = attribute(activities, windows, ours)
    assert found.samples_ms == pytest.approx([650e-6, 200e-6])
    assert found.operators == pytest.approx({"kernel": 400e-6, "Memcpy DtoD": 25e-6})
    assert found.launches_per_forward == 2
    assert not found.strays


def test_kernels_that_run_between_forwards_are_part_of_them() -> None:
    windows = [(1_000, 2_000), (5_000, 6_000)]
    activities = [Activity("kernel", 1_100, 10), Activity("late_kernel", 3_000, 400)]
    found = attribute(activities, windows, ours)
    assert found.samples_ms == pytest.approx([210e-6, 200e-6])
    assert found.operators == pytest.approx({"late_kernel": 200e-6, "kernel": 5e-6})
    assert found.strays == {"late_kernel": 1}


def test_what_runs_while_outputs_are_kept_is_left_out() -> None:
    activities = [Activity("kernel", 1_100, 10), Activity("copy_kernel", 3_000, 400)]
    found = attribute(activities, [(1_000, 2_000)], ours, [(2_500, 3_500)])
    assert found.samples_ms == pytest.approx([10e-6])
    assert not found.strays


def test_forwards_without_kernels_take_no_time() -> None:
    found = attribute([Activity("Memcpy DtoD", 10, 5)], [(100, 200)], ours)
    assert found.samples_ms == (0.0,)
    assert found.operators == {}


def test_no_forward_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="no forward was seen"):
        attribute([Activity("kernel", 10, 5)], [], ours)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 999), st.integers(0, 50))))
def test_nothing_gets_lost(told: list[tuple[str, int, int]]) -> None:
    windows = [(100, 200), (300, 400), (700, 900)]
    activities = [Activity(name, start, lasted) for name, start, lasted in told]
    found = attribute(activities, windows, ours)
    total = sum(lasted for _, _, lasted in told) / 1e6
    assert sum(found.samples_ms) == pytest.approx(total)
    assert sum(found.operators.values()) * len(windows) == pytest.approx(total)
    for number, (begin, end) in enumerate(windows):
        inside = sum(n for _, start, n in told if begin <= start <= end) / 1e6
        assert found.samples_ms[number] >= inside - 1e-12

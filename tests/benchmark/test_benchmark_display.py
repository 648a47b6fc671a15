"""What a terminal shows of benchmarks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.benchmark import display, perf_file
from pytest_tritonverify.benchmark.measurement import PerfSettings
from tests.support.measurements import case, side

if TYPE_CHECKING:
    from pytest_tritonverify.benchmark.measurement import CaseMeasurement


def content(*cases: CaseMeasurement) -> dict[str, object]:
    return perf_file.document("op", cases, PerfSettings(), environment={}, sources={})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "not measured"),
        (0.0, "0 us"),
        (0.0012345, "1.23 us"),
        (0.5, "500 us"),
        (1.0, "1 ms"),
        (12.345, "12.3 ms"),
        (1234.5, "1.23 s"),
        (math.inf, "inf ms"),
        (-1.0, "-1.0 ms"),
    ],
)
def test_latencies_have_a_fitting_unit(value: float | None, shown: str) -> None:
    assert display.milliseconds(value) == shown


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_bars_fit_and_longer_ones_are_faster(one: float, other: float) -> None:
    largest = max(one, other)
    bars = [display.bar(value, largest, plain=True) for value in sorted((one, other))]
    assert 1 <= len(bars[0]) <= len(bars[1]) == display.BAR_WIDTH
    assert all(len(display.bar(v, largest, plain=False)) <= display.BAR_WIDTH for v in (one, other))


def test_every_case_has_a_row_that_says_what_came_of_it() -> None:
    noisy = side(1.0, samples_ms=(0.2, 1.8) * 25)
    lines = display.table(
        content(
            case(1),
            case(2, status="fail", error_type="AccuracyError", error_msg="AccuracyError: wrong"),
            case(3, implementation=noisy),
            case(4, implementation=None),
        ),
        plain=True,
    )
    text = "\n".join(lines)
    assert text.isascii()
    assert "2x" in lines[1]
    assert "#" * display.BAR_WIDTH in lines[1]
    assert "failed: AccuracyError" in lines[2]
    assert lines[3].endswith("noisy")
    assert "not measured" in lines[4]
    assert "none" in lines[4]
    assert "npu_profiler: device time of all kernels" in text


def test_long_tables_are_cut() -> None:
    lines = display.table(content(*(case(number) for number in range(1, 60))), plain=True)
    assert "... and 19 more cases in the report" in lines


def test_progress_says_which_case_of_how_many() -> None:
    line = display.progress("op (triton_x)", case(3), 3, 7, 12.3, 2.0)
    assert line == "benchmark op (triton_x): case 3 of 7: 2 ms -> 1 ms, 2x (12.3 s elapsed)"
    failed = case(3, status="fail", error_type="WorkerCrash", error_msg="WorkerCrash: gone")
    assert "failed: WorkerCrash" in display.progress("op", failed, 1, 1, 0.0, None)

"""kernel_details.csv in the layout in which torch_npu's profiler writes it."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.execution.timing import kernel_details
from pytest_tritonverify.execution.timing.kernel_details import TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = [
    "Device_id",
    "Model ID",
    "Task ID",
    "Stream ID",
    "Name",
    "Type",
    "OP State",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Dim",
    "Mix Block Dim",
    "HF32 Eligible",
    "Input Shapes",
    "Input Data Types",
    "Input Formats",
    "Output Shapes",
    "Output Data Types",
    "Output Formats",
    "Context ID",
    "aicore_time(us)",
    "aic_total_cycles",
]

Kernel = tuple[str, float]


def table(steps: Sequence[Sequence[Kernel]], *, first: int | None = 1) -> str:
    """Write a table with one step for each list of kernels; `first` None leaves steps out."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(HEADER if first is None else ["Step Id", *HEADER])
    at = 1_700_000_000_000_000.5
    for number, kernels in enumerate(steps):
        for name, duration in kernels:
            at += 50.0
            cells = [
                *("0", "4294967295", "17", "2", name, name.split("_")[0], "dynamic"),
                # The tool ends these cells with a tab.
                *("AI_VECTOR_CORE", f"{at:.3f}\t", repr(duration), "0.02", "20", "0", "NO"),
                *('"128,256;1"', "FLOAT16;INT64", "ND;ND", '"128,256"', "FLOAT16", "ND", "N/A"),
                *("11.2", "207360"),
            ]
            writer.writerow(cells if first is None else [str(number + first), *cells])
    return stream.getvalue()


def times(text: str, repeats: int, rehearsals: int = 0) -> kernel_details.KernelTimes:
    return kernel_details.sum_up(kernel_details.read(text), repeats, rehearsals)


def test_several_kernels_and_several_launches_of_one_are_summed() -> None:
    forward = [("norm_kernel", 10.0), ("norm_kernel", 20.0), ("scale_kernel", 5.0)]
    found = times(table([forward] * 4), 4)
    assert found.samples_ms == pytest.approx([0.035] * 4)
    assert found.latency_ms == pytest.approx(0.035)
    assert found.operators == pytest.approx({"norm_kernel": 0.03, "scale_kernel": 0.005})
    assert found.launches_per_forward == 3
    assert not found.notes


@pytest.mark.parametrize(
    ("durations", "mean_us"),
    [
        ([10, 10, 10, 10, 1000], 208.0),
        ([10] * 9 + [1000], 109.0),
        ([1, 1, 100] * 5, 34.0),
    ],
)
def test_no_row_is_too_long_to_count(durations: list[float], mean_us: float) -> None:
    steps = [[("kernel", float(duration))] for duration in durations]
    assert times(table(steps), len(steps)).latency_ms == pytest.approx(mean_us / 1000)
    without = times(table(steps, first=None), len(steps))
    assert without.latency_ms == pytest.approx(mean_us / 1000)


def test_names_with_commas_and_quotes_are_one_kernel() -> None:
    name = 'void at::native<4, Add<float, "f">, 2>'
    found = times(table([[(name, 3.0)], [(name, 5.0)]]), 2)
    assert found.operators == pytest.approx({name: 0.004})


def test_a_forward_without_a_kernel_takes_no_time() -> None:
    found = times(table([[("kernel", 8.0)], [], [("kernel", 4.0)]]), 3)
    assert found.samples_ms == pytest.approx([0.008, 0.0, 0.004])
    assert found.latency_ms == pytest.approx(0.004)


def test_a_launch_that_is_missing_in_one_forward_is_noted() -> None:
    both = [("first", 1.0), ("second", 2.0)]
    found = times(table([both, both, both[:1], both]), 4)
    assert found.samples_ms == pytest.approx([0.003, 0.003, 0.001, 0.003])
    assert [note for note in found.notes if "second ran 1 times" in note and "forward 3" in note]
    without = times(table([both, both, both[:1], both], first=None), 4)
    assert without.latency_ms == pytest.approx(0.0025)
    assert not without.samples_ms
    assert [note for note in without.notes if "second ran 3 times in 4 forwards" in note]


@pytest.mark.parametrize("first", [0, 1, 7])
def test_steps_may_be_counted_from_any_number(first: int) -> None:
    found = times(table([[("kernel", 2.0)], [("kernel", 4.0)]], first=first), 2)
    assert found.samples_ms == pytest.approx([0.002, 0.004])


def test_what_prepares_inputs_is_no_part_of_a_forward() -> None:
    copies = [("TensorMove", 7.0), ("TensorMove", 7.0)]
    # The forward launches a kernel of the same name, and that one counts.
    forward = [*copies, ("TensorMove", 1.0), ("kernel", 3.0)]
    found = times(table([copies, copies, forward, forward, copies]), 3, rehearsals=2)
    assert found.samples_ms == pytest.approx([0.004, 0.004, 0.0])
    assert found.operators == pytest.approx({"kernel": 0.002, "TensorMove": 2 / 3000})


def test_steps_that_kept_outputs_are_left_out() -> None:
    move, run = [("TensorMove", 7.0)], [("TensorMove", 7.0), ("kernel", 3.0)]
    text = table([move, run, [("clone", 90.0)], run])
    found = kernel_details.sum_up(kernel_details.read(text), 2, 1, 1, {2})
    assert found.samples_ms == pytest.approx([0.003, 0.003])
    assert "clone" not in found.operators


def test_a_preparation_that_can_not_be_recognised_is_no_measurement() -> None:
    copies = [("TensorMove", 7.0)]
    with pytest.raises(TableError, match="forward 1 does not begin"):
        times(table([copies, [("kernel", 3.0)]]), 1, rehearsals=1)
    with pytest.raises(TableError, match="no column Step Id"):
        times(table([copies, copies], first=None), 1, rehearsals=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (table([]), "a header and no row"),
        ("Step Id,Name\n1,kernel\n", r"no column Duration\(us\)"),
        ("Name,Duration(us)\nkernel,N/A\n", "line 2: .* is 'N/A'"),
        ("Name,Duration(us)\nkernel,nan\n", "which is no time"),
        ("Name,Duration(us)\nkernel,-1\n", "which is no time"),
        ("Name,Duration(us)\nkernel\n", "which is no time"),
        (table([[("kernel", 1.0)]] * 4), "steps from 1 to 4; 1 to 3 ran"),
    ],
)
def test_a_table_that_yields_no_time_says_why(text: str, why: str) -> None:
    with pytest.raises(TableError, match=why):
        times(text, 3)


def test_a_mark_at_the_start_blank_lines_and_other_columns_do_not_matter() -> None:
    text = "\ufeffType,Duration(us),Name\r\nA,2.5,kernel\r\n\r\nA,1.5,kernel\r\n"
    assert times(text, 2).samples_ms == pytest.approx([0.0025, 0.0015])


def test_rows_without_a_step_count_for_the_step_before_them() -> None:
    text = "Step Id,Name,Start Time(us),Duration(us)\n1,a,10,1\n,b,12,2\n2,a,20,1\n,b,30,4\n"
    found = times(text, 2)
    assert found.samples_ms == pytest.approx([0.003, 0.005])
    assert "2 kernels of kernel_details.csv belong to no step" in found.notes[0]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1e6, width=32)), max_size=5),
        min_size=1,
        max_size=8,
    )
)
def test_sums_are_those_of_a_plain_loop(steps: list[list[Kernel]]) -> None:
    # One kernel that is always there keeps a table from being empty.
    steps = [[("always", 1.0), *step] for step in steps]
    expected = [sum(us for _, us in step) / 1000 for step in steps]
    found = times(table(steps), len(steps))
    assert found.samples_ms == pytest.approx(expected)
    assert found.latency_ms == pytest.approx(math.fsum(expected) / len(expected))
    assert sum(found.operators.values()) == pytest.approx(found.latency_ms)
    without = times(table(steps, first=None), len(steps))
    assert without.latency_ms == pytest.approx(found.latency_ms)

"""Pieces of bounded size, large and strided tensors, and the memory that a judgement needs."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.chunks import CHUNK, chunk_pairs
from pytest_tritonverify.accuracy.limits import FLOAT_FORMATS
from pytest_tritonverify.accuracy.offenders import Offender, WorstElements, element_index
from pytest_tritonverify.accuracy.ulp import ulp

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])


def judge(golden: object, actual: object, **rules: bool) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules(**rules))


@settings(max_examples=200, deadline=None)
@given(
    shape=st.lists(st.integers(0, 6), max_size=4),
    size=st.integers(1, 20).map(lambda half: 2 * half),
    data=st.data(),
)
def test_pieces_cover_strided_tensors_once_and_in_order(
    shape: list[int], size: int, data: st.DataObject
) -> None:
    values = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    back = [order.index(axis) for axis in range(len(shape))]
    strided = values.permute(order).contiguous().permute(back)
    seen = 0
    for start, golden, actual in chunk_pairs(values, strided, size):
        assert start == seen
        assert golden.dim() == actual.dim() == 1
        assert 0 < golden.numel() <= size
        assert torch.equal(golden, actual)
        assert golden.tolist() == list(range(start, start + golden.numel()))
        seen += golden.numel()
    assert seen == values.numel()


@settings(max_examples=100, deadline=None)
@given(shape=st.lists(st.integers(1, 4), max_size=3), size=st.sampled_from([2, 4, 6, 40]))
def test_complex_tensors_are_walked_as_their_parts(shape: list[int], size: int) -> None:
    values = torch.randn([*shape, 2]).double()
    golden = torch.view_as_complex(values)
    pieces = list(chunk_pairs(golden.conj(), golden, size))
    flat = torch.cat([piece.golden for piece in pieces]).view(-1, 2)
    assert torch.equal(flat, values.view(-1, 2) * torch.tensor([1.0, -1.0]))
    assert torch.equal(torch.cat([piece.actual for piece in pieces]), values.view(-1))
    assert all(piece.start % 2 == 0 for piece in pieces)


SIZE = 2 * CHUNK + 17


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize("at", [0, CHUNK - 1, CHUNK, SIZE - 1])
@pytest.mark.parametrize("non_compute", [False, True])
def test_one_wrong_element_is_found_in_every_piece(
    dtype: torch.dtype, at: int, *, non_compute: bool
) -> None:
    golden = torch.zeros(SIZE, dtype=dtype)
    actual = golden.clone()
    assert judge(golden, actual, non_compute=non_compute).passed
    actual[at] = True if dtype == torch.bool else 7
    verdict = judge(golden, actual, non_compute=non_compute)
    assert verdict.error_type == "AccuracyError"
    assert f"[{at}]: got" in verdict.message


def test_counts_add_up_over_pieces() -> None:
    golden = torch.ones(SIZE)
    golden[::7] = math.nan
    golden[1] = -math.inf
    actual = golden.clone()
    actual[2::7] += 0.5
    verdict = judge(golden, actual)
    metrics = verdict.metrics or {}
    wrong = len(range(2, SIZE, 7))
    finite = SIZE - len(range(0, SIZE, 7)) - 1
    assert (metrics["total_finite"], metrics["over_count"]) == (finite, wrong)
    assert metrics["matched_count"] == finite - wrong
    assert metrics["max_abs_diff"] == 0.5
    actual[3] = math.nan
    assert "differ at 1 of" in judge(golden, actual).message


def test_both_sides_non_finite_counts_include_equal_pieces() -> None:
    golden = torch.zeros(SIZE)
    golden[:3] = math.nan
    golden[3:5] = math.inf
    actual = golden.clone()
    actual[-1] = math.nan
    message = judge(golden, actual).message
    assert "golden has 3 NaN, implementation 4; first at" in message
    actual[-1] = -math.inf
    message = judge(golden, actual).message
    assert "golden has 2 +Inf and 0 -Inf, implementation 2 +Inf and 1 -Inf" in message


def test_non_finite_positions_are_those_of_the_whole_tensor() -> None:
    golden = torch.zeros(3, SIZE)
    actual = golden.clone()
    actual[2, SIZE - 1] = math.nan
    assert f"first at [2, {SIZE - 1}]" in judge(golden, actual).message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.int32])
def test_layout_does_not_change_the_verdict(dtype: torch.dtype) -> None:
    golden = torch.randn(700, 900).mul(10).to(dtype)
    actual = golden.clone()
    actual[5, 600:] += 3
    plain = judge(golden, actual)
    for left, right in (
        (golden, actual.t().contiguous().t()),
        (golden.t().contiguous().t(), actual),
        (torch.stack((golden, golden), -1)[..., 1], actual),
    ):
        assert judge(left, right) == plain
    assert not plain.passed
    assert "    [5, " in plain.message
    expanded = torch.ones(1, 900).expand(700, 900)
    assert judge(expanded, torch.ones(700, 900)).passed


@pytest.mark.parametrize("name", [name for name in FLOAT_FORMATS if name != "float32"])
def test_ulps_of_all_small_formats(name: str) -> None:
    form = FLOAT_FORMATS[name]
    dtype = getattr(torch, name, None)
    if dtype is None:
        # hifloat32 has no dtype: its positive values are multiples of 2**-137.
        values = torch.tensor([0.0, 2**-137, 2**-126, 2**-125, 1.0, 1.5, 2.0, 2.0**127]).double()
        expected = torch.tensor(
            [2**-137] * 3 + [2**-136, 2**-11, 2**-11, 2**-10, 2.0**116]
        ).double()
        assert torch.equal(ulp(values, form), expected)
        return
    size = dtype.itemsize * 8
    raw = torch.arange(2 ** (size - 1), dtype=torch.int64)
    values = raw.to(torch.uint8 if size == 8 else torch.int16).view(dtype).double()
    values = values[values.isfinite()]
    # In a format's own order, neighbours lie exactly one ULP of the lower one apart.
    assert torch.equal(ulp(values[:-1], form), values.diff())


def test_ulps_of_float32_are_gaps_to_the_next_value() -> None:
    bits = torch.cat((torch.arange(0, 2**31 - 2**24, 4099), torch.arange(0, 3 * 2**23, 1 << 14)))
    values = bits.to(torch.int32).view(torch.float32)
    values = values[values < torch.finfo(torch.float32).max]
    gaps = torch.nextafter(values, torch.tensor(math.inf)).double() - values.double()
    assert torch.equal(ulp(values.double(), FLOAT_FORMATS["float32"]), gaps)


@settings(max_examples=200, deadline=None)
@given(
    pieces=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, math.inf, math.nan]), max_size=12), max_size=6
    )
)
def test_the_worst_elements_are_kept_and_ties_go_to_the_first(pieces: list[list[float]]) -> None:
    worst = WorstElements(limit=4)
    start = 0
    for piece in pieces:
        severities = torch.tensor(piece)
        chosen = worst.select(severities)
        assert chosen == sorted(chosen)
        assert len(chosen) <= 4
        for at in chosen:
            worst.add(Offender(severities[at].item(), start + at, None, None))
        start += len(piece)
    everything = [value for piece in pieces for value in piece]
    ranked = [math.inf if math.isnan(value) else value for value in everything]
    expected = sorted(range(len(ranked)), key=lambda at: (-ranked[at], at))[:4]
    assert [kept.position for kept in worst._kept] == expected


@given(shape=st.lists(st.integers(1, 5), max_size=4), data=st.data())
def test_indices_are_those_of_the_shape(shape: list[int], data: st.DataObject) -> None:
    values = torch.arange(math.prod(shape)).reshape(shape)
    position = data.draw(st.integers(0, values.numel() - 1))
    index = (values == position).nonzero()[0].tolist()
    assert element_index(position, tuple(shape)) == str(index)


PEAK = """
import math
import resource
import sys
import torch
from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
torch.set_num_threads(8)
inputs = infer_input_type([torch.zeros(1)])
def judge(golden, actual, **rules):
    return judge_outputs(golden, actual, input_type=inputs, rules=Rules(**rules)).passed
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
rows = 4096
near = torch.full((rows, rows), 1.0001)
cases = {
    "contiguous": lambda: (torch.ones(rows, rows), near, near + 2),
    "transposed": lambda: (torch.ones(rows, rows), near.t(), (near + 2).t()),
    "expanded": lambda: (
        torch.ones(rows, 1).expand(rows, rows),
        near[:, :1].expand(rows, rows),
        near[:, :1].add(2).expand(rows, rows),
    ),
    "overlapping": lambda: (
        torch.ones(2 * rows).as_strided((rows, rows), (1, 1)),
        near.view(-1)[: 2 * rows].as_strided((rows, rows), (1, 1)),
        near.view(-1)[: 2 * rows].add(2).as_strided((rows, rows), (1, 1)),
    ),
    "non-finite": lambda: (
        torch.ones(rows, rows).fill_diagonal_(math.nan),
        near.clone().fill_diagonal_(math.nan),
        (near + 2).fill_diagonal_(math.nan),
    ),
    "cast": lambda: (torch.ones(rows, rows).half(), near, near + 2),
    "float64": lambda: (torch.ones(rows, rows // 2).double(), near[:, ::2].add(-1e-4).double(),
                        near[:, ::2].double().add_(2)),
    "int64": lambda: (torch.ones(rows, rows // 2).long(), torch.full((rows, rows // 2), 2),
                      torch.full((rows, rows // 2), -(2**63))),
}
golden, passing, failing = cases[sys.argv[1]]()
for small in (golden, passing, failing):
    judge(small[:2].clone(), small[:2].clone())
before = peak()
print(judge(golden, passing), judge(golden, failing), peak() - before)
"""


@pytest.mark.parametrize(
    "layout",
    [
        "contiguous",
        "transposed",
        "expanded",
        "overlapping",
        "non-finite",
        "cast",
        "float64",
        "int64",
    ],
)
def test_extra_memory_is_bounded(layout: str) -> None:
    # The tensors have at least 64 MiB each in their shape, so that a copy of one would show.
    done = subprocess.run(
        [sys.executable, "-c", PEAK, layout],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    *verdicts, extra = done.stdout.split()
    assert verdicts == ["True", "False"]
    assert int(extra) < 64

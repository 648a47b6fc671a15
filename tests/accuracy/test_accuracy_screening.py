"""What float32 and threads decide quickly, against plain Python and against one thread."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy import chunks as chunks_module
from pytest_tritonverify.accuracy.chunks import CHUNK, Chunk, chunk_pairs, over_chunks
from pytest_tritonverify.accuracy.distances import integer_distances
from pytest_tritonverify.accuracy.limits import eco_limits
from pytest_tritonverify.accuracy.peaks import Peaks

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
FORMATS = [
    name
    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    if hasattr(torch, name)
]


def judge(golden: object, actual: object, **rules: bool) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules(**rules))


def exactly(values: torch.Tensor) -> list[float]:
    result: list[float] = values.to(torch.float64).tolist()
    return result


def counts(golden: list[float], actual: list[float], name: str) -> tuple[int, float]:
    """Return how many match, and the greatest difference."""
    limits = eco_limits(name)
    assert limits is not None
    differences = [abs(got - expected) for expected, got in zip(golden, actual, strict=True)]
    matched = sum(
        difference <= limits.atol + limits.rtol * abs(expected)
        for expected, difference in zip(golden, differences, strict=True)
    )
    return matched, max(differences)


def check(golden: torch.Tensor, actual: torch.Tensor, name: str) -> None:
    metrics = judge(golden, actual).outputs[0].metrics
    matched, greatest = counts(exactly(golden), exactly(actual), name)
    assert (metrics["matched_count"], metrics["max_abs_diff"]) == (matched, greatest)


MAGNITUDES = st.floats(-20, 20) | st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150, deadline=None)
@given(
    magnitudes=st.lists(MAGNITUDES, min_size=1, max_size=8),
    steps=st.integers(-2, 2),
    sign=st.sampled_from([1, -1]),
)
@example(magnitudes=[0.0], steps=0, sign=1)
@example(magnitudes=[1.0, -2.0, 2.0**-14, 2.0**-126, 2.0**-149], steps=0, sign=1)
@example(magnitudes=[1.0, -2.0, 2.0**-14, 2.0**-126, 2.0**-149], steps=1, sign=1)
def test_elements_at_the_tolerance_are_decided_in_float64(
    name: str, magnitudes: list[float], steps: int, sign: int
) -> None:
    limits = eco_limits(name)
    assert limits is not None
    dtype = getattr(torch, name)
    golden = torch.tensor(magnitudes, dtype=torch.float64).to(dtype)
    golden = golden[golden.double().isfinite()]
    if not golden.numel():
        return
    # The bound itself, and the representable values around it.
    wide = golden.double()
    bound = (wide + sign * (limits.atol + limits.rtol * wide.abs())).to(dtype)
    stepped = bound.view(BITS[bound.element_size()]).add(steps).view(dtype)
    actual = torch.where(stepped.double().isfinite(), stepped.double(), wide).to(dtype)
    check(golden, actual, name)
    # Among many elements that pass, where only some rows are looked at.
    many = torch.ones(4096, dtype=torch.float32).to(dtype)
    near = many.view(BITS[many.element_size()]).add(1).view(dtype)
    bits = BITS[many.element_size()]
    for position in (0, 1000, 4096 - golden.numel()):
        left, right = many.clone(), near.clone()
        place = slice(position, position + golden.numel())
        left.view(bits)[place] = golden.view(bits)
        right.view(bits)[place] = actual.view(bits)
        check(left, right, name)


def test_a_difference_that_float32_rounds_to_the_tolerance_fails() -> None:
    golden, actual = torch.ones(6400), torch.ones(6400)
    golden[9], actual[9] = -(2.0**-50), 2.0**-16
    assert (actual[9] - golden[9]).item() == 2.0**-16
    assert judge(golden, actual).outputs[0].metrics["matched_count"] == 6399
    check(golden[:10], actual[:10], "float32")


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from([63, 64, 4096, 5000]), scale=MAGNITUDES)
def test_the_greatest_difference_is_exact_where_float32_rounds_it(
    name: str, seed: int, count: int, scale: float
) -> None:
    torch.manual_seed(seed)
    golden = torch.full((count,), scale).to(getattr(torch, name))
    if not golden.isfinite().all():
        return
    # Differences that float32 can't tell apart: the lowest bits of small numbers are lost.
    actual = torch.randn(count).mul(2.0**-20).to(golden.dtype)
    check(golden, actual, name)


def test_the_greatest_difference_is_the_greatest_over_all_pieces() -> None:
    golden = torch.zeros(3 * CHUNK)
    actual = torch.full((3 * CHUNK,), 2.0**-17)
    golden[7] = golden[CHUNK + 7] = golden[2 * CHUNK + 7] = -1.0
    # All of them round to 1.0.
    actual[7], actual[CHUNK + 7], actual[2 * CHUNK + 7] = 2.0**-30, 2.0**-26, 2.0**-28
    assert judge(golden, actual).outputs[0].metrics["max_abs_diff"] == 1 + 2.0**-26


def test_a_difference_that_overflows_float32_is_measured() -> None:
    golden = torch.full((CHUNK + 1,), 3e38)
    verdict = judge(golden, -golden)
    assert verdict.outputs[0].metrics["max_abs_diff"] == 2 * golden[0].item()
    assert verdict.outputs[0].metrics["over_count"] == CHUNK + 1


@pytest.mark.parametrize("other", [torch.float64, torch.float32])
def test_what_overflows_in_the_cast_of_one_piece_is_remembered(other: torch.dtype) -> None:
    golden = torch.zeros(2 * CHUNK, dtype=torch.float16)
    actual = torch.zeros(2 * CHUNK, dtype=other)
    actual[3], actual[CHUNK] = 1e30, 0.5
    metrics = judge(golden, actual).outputs[0].metrics
    assert metrics["max_abs_diff"] is None
    assert (metrics["over_count"], metrics["matched_count"]) == (2, 2 * CHUNK - 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.float16])
def test_vectors_with_gaps_and_repeats_are_judged_by_their_elements(dtype: torch.dtype) -> None:
    golden = torch.arange(3 * 6400).to(dtype)[::3]
    actual = golden.clone()
    actual[5::700] += 64
    plain = judge(golden.clone(), actual)
    assert not plain.passed
    assert judge(golden, torch.stack((actual, actual), -1)[:, 1]) == plain
    repeated = golden[7:8].expand(6400)
    assert judge(repeated, (golden[7:8] + 9).expand(6400)) == judge(repeated.clone(), repeated + 9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
@settings(max_examples=60, deadline=None)
@given(
    smalls=st.lists(st.floats(0, 2.0**-13), max_size=30),
    error=st.sampled_from([0.0, 2.0**-31, 2.0**-30, 2.0**-29, 2.0**-13, 2.0**-12]),
    others=st.sampled_from([0.0, 2.0**-14, 2.0**-13, 2.0**-11]),
)
def test_small_values_are_tested_where_all_others_match(
    dtype: torch.dtype, smalls: list[float], error: float, others: float
) -> None:
    real = torch.float32 if dtype.is_complex else torch.float64
    golden = torch.cat((torch.tensor(smalls, dtype=real), torch.full((100,), 3.0, dtype=real)))
    golden = torch.cat((golden, torch.ones(golden.numel() % 2, dtype=real)))
    actual = golden * (1 + others)
    actual[: len(smalls)] = golden[: len(smalls)] + error
    small = matched = beyond = 0
    for expected, difference in zip(golden, (actual - golden).abs(), strict=True):
        is_small = expected.item() < 2.0**-14
        small += is_small
        relative = (difference / (expected.abs() + 1e-7)).item()
        matched += difference.item() <= 2.0**-30 if is_small else relative <= 2.0**-13
        beyond += not difference.item() <= (expected.abs() * 2.0**-13 + 1e-3).item()
    sides = (golden, actual)
    if dtype.is_complex:
        sides = (
            torch.view_as_complex(golden.view(-1, 2)),
            torch.view_as_complex(actual.view(-1, 2)),
        )
    metrics = judge(*sides).outputs[0].metrics
    found = [metrics[name] for name in ("small_count", "matched_count")]
    assert found == [small, matched]
    assert metrics["max_error_cap_violation_count"] == beyond


@settings(max_examples=200, deadline=None)
@given(
    count=st.sampled_from([1, 5, 63, 64, 65, 128, 6400]),
    wanted=st.lists(st.integers(0, 6399), max_size=40),
    everywhere=st.booleans(),
)
def test_peaks_list_what_reaches_a_bound(
    count: int, wanted: list[int], *, everywhere: bool
) -> None:
    values = torch.full((count,), 2.0 if everywhere else 0.5)
    for position in wanted:
        values[position % count] = 1.0
    peaks = Peaks.of(values)
    assert peaks.greatest == max(values.tolist())
    expected = [position for position, value in enumerate(values.tolist()) if value >= 1.0]
    found = peaks.listed_from(1.0)
    if found is None:
        assert len(expected) * 4 > count
    else:
        assert found.tolist() == expected


def test_peaks_keep_nan() -> None:
    values = torch.zeros(128)
    values[70] = math.nan
    assert math.isnan(Peaks.of(values).greatest)
    assert math.isnan(Peaks.of(values[:71].clone()).greatest)


INTEGERS = [
    getattr(torch, name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    if hasattr(torch, name)
]


def integers(dtype: torch.dtype) -> st.SearchStrategy[int]:
    bounds = torch.iinfo(dtype)
    inside = st.integers(bounds.min, bounds.max)
    return inside | st.sampled_from([bounds.min, bounds.max, 0, 1, bounds.max // 2 + 1])


@settings(max_examples=300, deadline=None)
@given(data=st.data(), tolerance=st.sampled_from([0, 1]))
def test_distances_of_integers_are_exact(data: st.DataObject, tolerance: int) -> None:
    left, right = (data.draw(st.sampled_from(INTEGERS)) for _ in range(2))
    pairs = data.draw(st.lists(st.tuples(integers(left), integers(right)), min_size=1, max_size=9))
    golden = torch.tensor([pair[0] for pair in pairs], dtype=left)
    actual = torch.tensor([pair[1] for pair in pairs], dtype=right)
    expected = [abs(a - b) for a, b in pairs]
    runs = list(integer_distances(golden, actual))
    assert [start for start, _ in runs] == [0]
    distances = runs[0][1]
    assert distances.greatest == max(expected)
    beyond = [at for at, distance in enumerate(expected) if distance > tolerance]
    assert distances.beyond(tolerance).tolist() == beyond
    everything = torch.arange(len(pairs))
    ranks = distances.ranks(everything).tolist()
    worst_first = sorted(everything.tolist(), key=lambda at: (-expected[at], at))
    assert sorted(everything.tolist(), key=lambda at: (-ranks[at], at)) == worst_first


def test_distances_beyond_64_bits_are_found_in_long_runs() -> None:
    golden = torch.zeros(CHUNK, dtype=torch.int64)
    actual = torch.full((CHUNK,), 1)
    golden[CHUNK - 3], actual[CHUNK - 3] = -(2**63), 2**63 - 1
    metrics = judge(golden, actual).outputs[0].metrics
    assert (metrics["violation_count"], metrics["max_abs_diff"]) == (1, 2**64 - 1)
    assert f"[{CHUNK - 3}]: got" in judge(golden, actual).message


def test_the_worst_integers_are_told_apart_beyond_the_precision_of_floats() -> None:
    golden = torch.zeros(100, dtype=torch.int64)
    actual = torch.full((100,), 2**62)
    actual[77] += 1
    message = judge(golden, actual).message
    assert message.index("[77]: got") < message.index("[0]: got")
    golden[99], actual[99] = -(2**63), 2**63 - 1
    golden[98], actual[98] = -(2**63), 2**63 - 2
    message = judge(golden, actual).message
    places = [message.index(f"[{position}]: got") for position in (99, 98, 77, 0)]
    assert places == sorted(places)


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(1, 6), max_size=4),
    size=st.integers(1, 20).map(lambda half: 2 * half),
    cuts=st.lists(st.integers(0, 1300), max_size=3).map(sorted),
    transposed=st.booleans(),
)
def test_spans_divide_the_pieces_among_them(
    shape: list[int], size: int, cuts: list[int], *, transposed: bool
) -> None:
    golden = torch.arange(math.prod(shape)).reshape(shape)
    actual = golden.mT.contiguous().mT if transposed and len(shape) > 1 else golden
    bounds = [0, *cuts, 1 << 20]
    whole = list(chunk_pairs(golden, actual, size))
    parts = [
        piece for span in pairwise(bounds) for piece in chunk_pairs(golden, actual, size, span)
    ]
    assert [piece.start for piece in parts] == [piece.start for piece in whole]
    for left, right in zip(parts, whole, strict=True):
        assert torch.equal(left.golden, right.golden)
        assert torch.equal(left.actual, right.actual)


@pytest.fixture
def eager_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every piece be worth a thread, and restore torch's setting."""
    monkeypatch.setattr(chunks_module, "FEWEST_PER_THREAD", CHUNK)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def spoilt(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    golden = torch.randn(5 * CHUNK + 33).mul(40).to(dtype)
    actual = golden.clone()
    actual[::90001] += torch.tensor(99).to(dtype)
    return golden, actual


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float64, torch.complex64, torch.int32, torch.int64],
)
@pytest.mark.parametrize("kind", ["wrong", "same", "nan", "everywhere", "bits"])
def test_the_number_of_threads_changes_nothing(dtype: torch.dtype, kind: str) -> None:
    golden, actual = spoilt(dtype)
    if kind == "same":
        actual = golden.clone()
    elif kind == "everywhere":
        actual = golden + 3
    elif kind == "nan" and not dtype.is_floating_point:
        golden, actual = golden.real > 0, actual.real > 1
    elif kind == "nan":
        actual[CHUNK + 5 :: CHUNK // 2] = math.nan
    verdicts = []
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        verdicts.append(judge(golden, actual, non_compute=kind == "bits"))
        assert torch.get_num_threads() == threads
    assert verdicts[0].passed == (kind == "same")
    assert all(verdict == verdicts[0] for verdict in verdicts)


@pytest.mark.usefixtures("eager_threads")
def test_a_fault_in_a_thread_reaches_the_caller_and_restores_the_setting() -> None:
    def fail(pieces: Iterator[Chunk]) -> None:
        raise RuntimeError(f"no piece but {next(pieces).start}")

    torch.set_num_threads(2)
    values = torch.zeros(3 * CHUNK)
    with pytest.raises(RuntimeError, match="no piece but"):
        over_chunks(values, values, fail)
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("eager_threads")
def test_operators_stay_on_the_thread_that_calls_them() -> None:
    torch.set_num_threads(2)
    values = torch.zeros(3 * CHUNK)
    assert over_chunks(values, values, lambda _: torch.get_num_threads()) == [1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("share", [1, 2, 1000])
def test_non_finite_elements_among_others_are_not_counted(dtype: torch.dtype, share: int) -> None:
    golden = torch.ones(CHUNK + 999, dtype=dtype)
    actual = golden + 2.0**-9
    for value, start in ((math.nan, 0), (-math.inf, share // 2)):
        golden[start::share] = value
        actual[start::share] = value
    metrics = judge(golden, actual).outputs[0].metrics
    finite = int(golden.isfinite().sum())
    assert metrics["total_finite"] == finite
    assert metrics["max_abs_diff"] == ((2.0**-9 if share == 1000 else 0.0) if finite else None)

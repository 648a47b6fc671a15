"""Null candidates: which wrong outputs the standard accepts, and that right ones are none."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.chunks import CHUNK
from pytest_tritonverify.strictness.nulls import (
    NullCandidate,
    accepted_floats,
    accepted_integers,
    candidates,
    surely_accepted,
)
from pytest_tritonverify.strictness.regions import edges, unravel
from pytest_tritonverify.strictness.scrutiny import weaknesses

FLOATS = infer_input_type([torch.zeros(1)])
INTEGERS = infer_input_type([torch.zeros(1, dtype=torch.int64)])
FORMATS = ["float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"]


def numbers(golden: torch.Tensor) -> torch.Tensor:
    values = torch.view_as_real(golden.resolve_conj()) if golden.is_complex() else golden
    return values.float() if values.element_size() == 1 else values


def accepted(golden: torch.Tensor) -> list[str]:
    finite = int(torch.isfinite(numbers(golden)).sum())
    return [null.name for null in accepted_floats(golden, finite)]


def whole(null: NullCandidate, golden: torch.Tensor) -> torch.Tensor:
    """Return a null candidate as a tensor; permuted as a whole, for small ones."""
    plain = golden.resolve_conj().contiguous()
    flat = torch.view_as_real(plain).reshape(-1) if golden.is_complex() else plain.reshape(-1)
    out = null.piece(0, flat)
    if golden.is_complex():
        return torch.view_as_complex(out.reshape(-1, 2)).reshape(golden.shape)
    return out.reshape(golden.shape)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([*FORMATS, "complex64"]),
    st.lists(st.integers(1, 24), min_size=1, max_size=3).map(tuple),
    st.sampled_from([1e-7, 1e-3, 0.05, 1.0, 50.0]),
    st.sampled_from(["", "", "nan", "inf", "zeros at the end", "constant", "strided"]),
    st.integers(0, 2**31),
)
def test_what_is_named_is_accepted_by_the_standard_and_what_is_not_is_refused_or_right(
    name: str, shape: tuple[int, ...], scale: float, kind: str, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, name)
    wide = torch.complex64 if dtype.is_complex else torch.float32
    golden = (torch.randn(shape, generator=generator, dtype=wide) * scale).to(dtype)
    if kind == "zeros at the end":
        golden[-1] = 0
    elif kind == "constant":
        golden = torch.full(shape, scale).to(dtype)
    elif kind == "strided":
        golden = golden.transpose(0, -1).contiguous().transpose(0, -1)
    elif kind and name in ("float32", "float16", "float64"):
        golden.view(-1)[seed % golden.numel()] = float(kind)
    named = accepted(golden)
    for null in candidates(golden):
        actual = whole(null, golden)
        verdict = judge_outputs(golden, actual, input_type=FLOATS, rules=Rules())
        expected, got = numbers(golden).double(), numbers(actual).double()
        differs = torch.nan_to_num(got - expected, 0.0, 0.0, 0.0)
        if null.name in named:
            assert verdict.passed
            assert bool(differs.any())
        else:
            finite = expected[torch.isfinite(expected)]
            size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
            changed = differs[differs != 0]
            error = float(changed.square().mean().sqrt()) if changed.numel() else 0.0
            # Not named: it fails, or differs by less than 2 % of what the output is like.
            assert not verdict.passed or error <= max(0.02, 2 * 2**-3) * size


@pytest.mark.parametrize("name", FORMATS)
def test_a_candidate_that_is_not_judged_is_accepted_indeed(name: str) -> None:
    dtype = getattr(torch, name)
    (null,) = (n for n in candidates(torch.zeros(4, dtype=dtype)) if "0.99" in n.name)
    sure = surely_accepted(null, dtype)
    assert sure is (name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))
    bits = {1: torch.uint8, 2: torch.int16}.get(dtype.itemsize)
    if sure and bits is not None:
        every = torch.arange(0, 1 << (8 * dtype.itemsize)).to(bits).view(dtype)
        values = every[torch.isfinite(every.float())]
        for start in range(0, values.numel(), 97):  # one wrong element of so few is not forgiven
            golden = values[start : start + 97]
            found = judge_outputs(golden, null.alter(golden), input_type=FLOATS, rules=Rules())
            assert found.passed, found.message


def test_known_holes_of_the_standard_are_named() -> None:
    torch.manual_seed(0)
    x = torch.randn(1000, 512)
    wide = torch.softmax(torch.randn(16, 4096), -1).half()
    assert accepted(wide)[:3] == ["zeros", "a permutation", "golden * 0.99"]
    assert accepted(torch.softmax(x, -1).half()) == [
        "golden * 0.99",
        "row 999 blanked",
        "column 511 blanked",
    ]
    assert accepted(x.bfloat16()) == ["golden * 0.99"]
    assert accepted(x.tanh().bfloat16()) == [
        "golden * 0.99",
        "row 999 blanked",
        "column 511 blanked",
    ]
    assert accepted(x) == []
    assert accepted(x.half()) == []
    gradient = (torch.softmax(x, -1) / 1e9).double()
    assert "golden * 0.99" in accepted(gradient)
    # A right output that is rounding noise about one cannot be told from zeros by its size.
    assert "zeros" in accepted(x * 1e-9)


@pytest.mark.parametrize("name", FORMATS)
def test_what_equals_the_golden_is_no_null_candidate(name: str) -> None:
    dtype = getattr(torch, name)
    assert accepted(torch.zeros(64, 64).to(dtype)) == []
    constant = accepted(torch.full((20, 20), 3.0).to(dtype))
    assert "a permutation" not in constant
    assert "zeros" not in constant
    dead = torch.randn(256, 64)
    dead[-40:] = 0
    dead[:, -20:] = 0
    names = accepted((dead.clamp(min=0) * 1e-9).to(dtype).float())
    assert not [n for n in names if n in ("row 255 blanked", "column 63 blanked")]


def test_rounding_noise_is_no_wrong_output() -> None:
    torch.manual_seed(0)
    ones = torch.softmax(torch.randn(300, 2000), -1).sum(-1).reshape(30, 10)
    assert float(ones.std()) > 0
    assert accepted(ones) == []
    noisy = torch.ones(300, 100) + torch.randn(300, 100) * 2**-9
    assert "a permutation" not in accepted(noisy.bfloat16())
    near = torch.ones(64, 64, dtype=torch.float32)
    near.view(-1)[::2] += 2**-22
    assert "a permutation" not in accepted(near)


def test_rows_and_columns_are_the_last_that_hold_something() -> None:
    golden = torch.ones(3, 10, 12)
    assert [region.name for region in edges(golden)] == ["row [2, 9]", "column 11"]
    golden[2, 5:] = 0
    golden[..., 9:] = 0
    assert [region.name for region in edges(golden)] == ["row [2, 4]", "column 8"]
    assert edges(torch.ones(100)) == []
    assert edges(torch.ones(())) == []
    assert edges(torch.ones(0, 9)) == []
    assert [region.name for region in edges(torch.ones(100, 4))] == ["column 3"]
    assert [region.name for region in edges(torch.ones(4, 100))] == ["row 3"]
    for position in range(24):
        index = unravel(position, (2, 3, 4))
        assert torch.arange(24).reshape(2, 3, 4)[index] == position
    assert edges(torch.zeros(200, 200)) == []


def test_large_outputs_are_judged_by_pieces() -> None:
    torch.manual_seed(0)
    golden = torch.randn(2 * CHUNK // 64 + 5, 64) * 5e-4
    row, column = golden.shape[0] - 1, 63
    assert accepted(golden.half()) == [
        "zeros",
        "a permutation",
        "golden * 0.99",
        f"row {row} blanked",
        f"column {column} blanked",
    ]
    # One element in the last piece shows that all of it has been looked at.
    golden[-3, 5] = 0.5
    assert accepted(golden.half()) == [
        "golden * 0.99",
        f"row {row} blanked",
        f"column {column} blanked",
    ]
    strided = golden.half().t().contiguous().t()
    assert accepted(strided) == accepted(golden.half())


def test_a_golden_with_other_than_finite_values_can_tell() -> None:
    golden = torch.full((40, 40), 1e-9)
    golden[3, 4] = math.nan
    assert accepted(golden) == ["golden * 0.99", "row 39 blanked", "column 39 blanked"]
    golden[:] = math.inf
    assert accepted(golden) == []
    assert accepted(torch.zeros(0)) == []


@pytest.mark.parametrize(
    ("golden", "named"),
    [
        ([0, 1, 1, 0, 1], ["zeros", "a permutation"]),
        ([0, 0, 0], []),
        ([5, 5, 5, 5], []),
        ([5, 5, 6, 6], ["a permutation"]),
        ([3, 100, 7], []),
        ([-1, 0, 1], ["zeros"]),
        ([], []),
    ],
)
def test_integers_that_a_step_explains(golden: list[int], named: list[str]) -> None:
    for dtype in (torch.int8, torch.int64, torch.int32):
        assert accepted_integers(torch.tensor(golden, dtype=dtype), 1) == named
        assert accepted_integers(torch.tensor(golden, dtype=dtype), 0) == []


def test_exact_rules_have_no_weakness() -> None:
    labels = torch.tensor([0, 1, 1, 0])
    for golden, inputs, rules, named in (
        (labels, FLOATS, Rules(), ("zeros",)),
        (labels, FLOATS, Rules(exact_int=True), ()),
        (labels, INTEGERS, Rules(), ()),
        (labels.bool(), FLOATS, Rules(), ()),
        (torch.full((4, 4), 1e-9), FLOATS, Rules(non_compute=True), ()),
        (torch.full((4, 4), 1e-9), FLOATS, Rules(), ("zeros", "golden * 0.99")),
        (2**70, FLOATS, Rules(), ()),
        (0.5, FLOATS, Rules(), ()),
    ):
        (verdict,) = judge_outputs(golden, golden, input_type=inputs, rules=rules).outputs
        assert weaknesses(verdict, golden) == named, golden
    (failed,) = judge_outputs(labels, labels + 5, input_type=FLOATS, rules=Rules()).outputs
    assert weaknesses(failed, labels) == ()

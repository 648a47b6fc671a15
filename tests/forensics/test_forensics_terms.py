"""Computations of which a part is missing, and grids that can be read in more than one way."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.forensics import (
    Diagnosis,
    FailedOutput,
    LaunchFacts,
    diagnose,
    heat_map,
    render,
)
from pytest_tritonverify.forensics.failing import failing_by

NAN = math.nan
FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def randn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def explained(
    golden: torch.Tensor,
    actual: torch.Tensor,
    inputs: tuple[torch.Tensor, ...] = (),
    launches: tuple[LaunchFacts, ...] = (),
) -> Diagnosis:
    failing = failing_by(None, golden.dtype)
    return diagnose(FailedOutput(golden, actual, failing, (), inputs, launches))


def launch(kernel: str, line: int, grid: tuple[int, ...], **constexprs: int) -> LaunchFacts:
    return LaunchFacts(kernel, "k.py", line, grid, constexprs)


def product(
    dtype: torch.dtype, columns: int = 40, seed: int = 0
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    a, b = randn(64, 50, seed=seed + 1).to(dtype), randn(50, columns, seed=seed + 2).to(dtype)
    return a.float() @ b.float(), (a, b, randn(columns, seed=seed + 3).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_bias_that_was_never_added_or_added_twice_is_named(dtype: torch.dtype) -> None:
    values, inputs = product(dtype)
    golden = (values + inputs[2]).to(dtype)
    found = explained(golden, values.to(dtype), inputs)
    assert (found.code, found.confidence) == ("missing_term", "clear")
    assert str(found.cause).startswith("Input 2 was never added")
    found = explained(golden, (values + 2 * inputs[2]).to(dtype), inputs)
    assert str(found.cause).startswith("Input 2 was added twice")


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_bias_that_is_no_input_is_a_term_for_each_column(dtype: torch.dtype) -> None:
    values, inputs = product(dtype)
    golden = (values + inputs[2]).to(dtype)
    found = explained(golden, values.to(dtype), inputs[:2])
    assert (found.code, found.confidence) == ("missing_term", "likely")
    assert "for each column" in str(found.cause)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_a_product_leaves_where_its_loop_takes_no_step_is_the_bias_alone(
    dtype: torch.dtype,
) -> None:
    values, inputs = product(dtype)
    golden = (values + inputs[2]).to(dtype)
    only = inputs[2].expand(64, 40).contiguous()
    found = explained(golden, only, inputs)
    assert (found.code, found.confidence) == ("input_alone", "clear")
    assert str(found.cause).startswith("The output is input 2 alone, broadcast")
    # A parameter of the model is not seen, so that a load without an index may be it too.
    found = explained(golden, only, inputs[:2])
    assert (found.code, found.confidence) == ("broadcast", "likely")


def test_one_row_that_stands_for_all_is_clearly_a_broadcast() -> None:
    golden = randn(60, 40)
    found = explained(golden, golden[:1].expand(60, 40).contiguous())
    assert (found.code, found.confidence) == ("broadcast", "clear")


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_over_lanes_that_no_mask_takes_out_is_a_factor_for_each_row(
    dtype: torch.dtype,
) -> None:
    x = randn(40, 37)
    wrong = x.exp() / (x.exp().sum(1, keepdim=True) + 27)
    found = explained(x.softmax(1).to(dtype), wrong.to(dtype), (x,))
    assert (found.code, found.confidence) == ("factor_per_slice", "likely")
    assert "in each row" in str(found.cause)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([0.01, 0.3, 3.0]),
    dtype=st.sampled_from(FLOATS),
    columns=st.integers(2, 40),
)
def test_noise_is_neither_a_term_nor_a_factor(
    seed: int, size: float, dtype: torch.dtype, columns: int
) -> None:
    values, inputs = product(dtype, columns, seed)
    golden = (values + inputs[2]).to(dtype)
    actual = (golden.float() + size * randn(64, columns, seed=seed + 4)).to(dtype)
    found = explained(golden, actual, inputs)
    assert found.code not in {"missing_term", "factor_per_slice", "input_alone"}, found


def tail(rows: int, columns: int, start: int) -> tuple[torch.Tensor, torch.Tensor]:
    golden = randn(rows, columns)
    actual = golden.clone()
    actual[:, start:] = NAN
    return golden, actual


def test_a_grid_is_not_held_against_the_block_of_another_kernel() -> None:
    stats = launch("stats", 9, (3,), BLOCK=256)
    apply = launch("apply", 21, (3, 3), BLOCK=64)
    found = explained(*tail(3, 200, 192), launches=(stats, apply))
    assert (found.code, found.confidence) == ("tail_unwritten", "clear")
    assert "apply ran 3 programs of 64 columns: they cover 192 of 200" in found.evidence
    assert "stats" not in str(found)


def test_a_grid_that_the_rows_explain_is_not_said_to_be_too_small() -> None:
    found = explained(*tail(3, 200, 192), launches=(launch("loop", 9, (3,), BLOCK=64),))
    assert found.code == "tail_unwritten"
    assert "too few programs" not in str(found.cause)
    assert "ran 3 programs" not in str(found)


def test_of_two_kernels_whose_grids_end_there_none_is_clear() -> None:
    both = (launch("one", 9, (5, 3), BLOCK=64), launch("two", 21, (5, 3), BLOCK=64))
    found = explained(*tail(5, 200, 192), launches=both)
    assert (found.code, found.confidence) == ("tail_unwritten", "likely")
    assert [fact.split()[0] for fact in found.evidence[:2]] == ["one", "two"]


def test_a_grid_with_an_axis_that_the_output_lacks_is_not_clear() -> None:
    golden = randn(200)
    actual = golden.clone()
    actual[192:] = NAN
    for grid in ((3,), (3, 1)):
        found = explained(golden, actual, launches=(launch("k", 9, grid, BLOCK=64),))
        assert (found.code, found.confidence) == ("tail_unwritten", "clear")
        assert "k ran 3 programs of 64 elements: they cover 192 of 200" in found.evidence
    found = explained(golden, actual, launches=(launch("k", 9, (3, 4), BLOCK=64),))
    assert "ran 3 programs" not in str(found)


@pytest.mark.parametrize(
    ("shape", "grid", "which"),
    [
        ((8, 64), (7,), "last row"),
        ((4, 77), (2,), "last 2 rows"),
        ((2, 3, 100), (5,), "last position in axes 0 to 1"),
        ((9,), (8,), "last element"),
    ],
)
def test_a_row_without_a_program_is_told_by_the_launch(
    shape: tuple[int, ...], grid: tuple[int, ...], which: str
) -> None:
    golden = randn(*shape)
    actual = golden.clone()
    inner = 1 if len(shape) == 1 else shape[-1]
    actual.view(-1, inner)[grid[0] :] = NAN
    found = explained(golden, actual, launches=(launch("softmax", 9, grid, BLOCK=1024),))
    assert found.code == "tail_unwritten"
    assert which in str(found.cause)
    assert any(fact.startswith(f"softmax ran {grid[0]} programs") for fact in found.evidence)
    # With half of the rows left each program may as well have been meant for two of them.
    assert found.confidence == ("clear" if which != "last 2 rows" else "likely")


def test_a_launch_that_has_a_program_for_every_row_leaves_it_open_which_wrote() -> None:
    golden, launches = randn(8, 64), (launch("a", 9, (7,)), launch("b", 21, (8,)))
    actual = golden.clone()
    actual[7:] = NAN
    assert explained(golden, actual, launches=launches).confidence == "likely"


def test_an_index_over_several_axes_reads_as_a_sentence() -> None:
    golden = randn(2, 3, 100)
    actual = golden.clone()
    actual[1, 2] = NAN
    lines = render(explained(golden, actual))
    assert lines[0].startswith("where: position 5 of 6 in axes 0 to 1 (the last);")
    assert "evidence: it is position 5 of 6 in axes 0 to 1" in lines


@pytest.mark.parametrize(("failing", "drawn"), [(7, False), (8, True), (1583, True), (1584, False)])
def test_a_few_failures_and_nearly_all_are_not_drawn(failing: int, *, drawn: bool) -> None:
    golden = torch.zeros(1600, dtype=torch.int32)
    actual = golden.clone()
    actual[:failing] = 9
    case = FailedOutput(golden.view(40, 40), actual.view(40, 40), failing_by(None, golden.dtype))
    assert bool(heat_map(case)) == drawn

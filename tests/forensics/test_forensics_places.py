"""Where failing elements lie: forms, their words, and what they are called."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.forensics import FailedOutput, LaunchFacts, diagnose
from pytest_tritonverify.forensics.blocks import known_sizes
from pytest_tritonverify.forensics.failing import exact
from pytest_tritonverify.forensics.layout import Layout
from pytest_tritonverify.forensics.locating import locate


def region(shape: tuple[int, ...], mask: torch.Tensor) -> dict[str, Any]:
    positions = torch.nonzero(mask.reshape(-1)).flatten()
    return locate(positions, Layout(shape), count=positions.numel()).to_json()


def where(shape: tuple[int, ...], *index: Any) -> torch.Tensor:
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[index] = True
    return mask


CASES: list[tuple[tuple[int, ...], tuple[Any, ...], str, str]] = [
    ((50, 40), (slice(3, 4),), "interval", "row 3 of 50"),
    ((50, 40), (slice(0, 2),), "interval", "the first 2 of 50 rows (0 to 1)"),
    ((50, 40), (slice(None), slice(37, 40)), "interval", "the last 3 of 40 columns (37 to 39)"),
    ((50, 40), (slice(None), 39), "interval", "column 39 of 40 (the last)"),
    ((50, 40), (slice(10, 20), slice(8, 16)), "box", "10 of 50 rows (10 to 19), 8 of 40 columns"),
    ((50, 40), ([3, 17, 31],), "slices", "3 of 50 rows: 3, 17, 31"),
    ((50, 40), (slice(None), slice(1, 40, 4)), "periodic", "every 4th column, from 1 on"),
    ((6, 50, 40), (4,), "interval", "slice 4 of 6 along axis 0"),
    ((1000,), (slice(2, None, 3),), "periodic", "every 3rd element, from 2 on"),
    ((1000,), (slice(960, None),), "interval", "the last 40 of 1000 elements (960 to 999)"),
    ((1000,), (slice(128, 256),), "interval", "128 of 1000 elements (128 to 255)"),
    ((1000,), (slice(None),), "all", "all 1000 elements"),
    ((1000,), (77,), "one_element", "one element of 1000, at [77]"),
]


@pytest.mark.parametrize(("shape", "index", "kind", "text"), CASES)
def test_forms_are_found_and_told(
    shape: tuple[int, ...], index: tuple[Any, ...], kind: str, text: str
) -> None:
    found = region(shape, where(shape, *index))
    assert found["kind"] == kind
    assert found["text"].startswith(text)


def test_a_run_over_several_rows_is_one_of_the_flat_output() -> None:
    mask = torch.zeros(50 * 40, dtype=torch.bool)
    mask[1000:1256] = True
    found = region((50, 40), mask)
    assert (found["axis"], found["start"], found["stop"]) == (None, 1000, 1256)


def test_the_end_of_every_block() -> None:
    mask = torch.arange(4096) % 64 >= 60
    found = region((4096,), mask)
    assert found["text"].startswith("the last 4 of every 64 elements")


def test_borders() -> None:
    mask = torch.ones(40, 30, dtype=torch.bool)
    mask[1:-1, 1:-1] = False
    found = region((40, 30), mask)
    assert found["kind"] == "borders"
    assert found["text"].startswith("the first row, the last row, the first column, the last")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple),
    share=st.floats(0.01, 0.95),
    seed=st.integers(0, 10**6),
)
def test_random_elements_have_no_form(shape: tuple[int, ...], share: float, seed: int) -> None:
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share
    found = region(shape, mask)
    assert found["kind"] in {"none", "one_element", "all", "scattered"}, found


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    shape=st.lists(st.integers(3, 20), min_size=2, max_size=3).map(tuple),
    seed=st.integers(0, 10**6),
)
def test_boxes_have_exact_bounds(shape: tuple[int, ...], seed: int) -> None:
    draw = random.Random(seed)
    bounds = []
    for extent in shape:
        low = draw.randrange(extent)
        bounds.append((low, draw.randint(low + 1, extent)))
    mask = where(shape, *(slice(low, high) for low, high in bounds))
    found = region(shape, mask)
    if found["kind"] == "box":
        assert [tuple(pair) for pair in found["bounds"]] == bounds
    elif found["kind"] == "interval" and isinstance(found["axis"], int):
        axis = found["axis"]
        assert bounds[axis] == (found["start"], found["stop"])


def launch(grid: tuple[int, ...], **constexprs: int) -> LaunchFacts:
    return LaunchFacts("k", "k.py", 1, grid, constexprs)


def test_block_sizes_are_those_that_names_say() -> None:
    assert known_sizes([launch((1,), BLOCK_M=32, BLOCK_N=64, num_warps=4, K=77)]) == (32, 64, 2048)
    assert known_sizes([launch((1,), N=77, num_stages=3)]) == (77,)
    assert known_sizes([]) == ()


def named(
    shape: tuple[int, ...], mask: torch.Tensor, launches: tuple[LaunchFacts, ...] = ()
) -> str:
    generator = torch.Generator().manual_seed(3)
    golden = torch.randint(-(10**6), 10**6, shape, generator=generator)
    noise = torch.randint(-(10**6), 10**6, shape, generator=generator)
    actual = torch.where(mask.view(shape), noise, golden)
    return diagnose(FailedOutput(golden, actual, exact(), launches=launches)).code


def after(size: int, start: int, stop: int | None = None) -> torch.Tensor:
    return where((size,), slice(start, stop))


@pytest.mark.parametrize(
    ("size", "start", "stop", "launches", "code"),
    [
        (1000, 896, None, (launch((8,), BLOCK=128),), "tail_wrong"),
        (1000, 768, None, (launch((4,), BLOCK=256),), "tail_wrong"),
        (1024, 768, None, (launch((4,), BLOCK=256),), "one_block"),
        (1024, 256, 512, (launch((4,), BLOCK=256),), "one_block"),
        (1024, 256, 512, (), "one_block"),
        (1024, 0, 256, (), "one_block"),
        (1000, 992, None, (), "tail_wrong"),
        # Wrong from some element on, or in an odd place: many causes are possible.
        (1000, 301, None, (), "unclear"),
        (1000, 301, 377, (), "unclear"),
    ],
)
def test_wrong_values_are_named_by_their_place(
    size: int, start: int, stop: int | None, launches: tuple[LaunchFacts, ...], code: str
) -> None:
    assert named((size,), after(size, start, stop), launches) == code


def test_tails_of_two_axes_are_tails() -> None:
    shape = (50, 70)
    mask = where(shape, slice(32, None)) | where(shape, slice(None), slice(64, None))
    tile = launch((2, 3), BLOCK_M=32, BLOCK_N=32)
    assert named(shape, mask, (tile,)) == "tail_wrong"


def test_padding_that_is_not_handled_shows_at_the_borders() -> None:
    mask = torch.ones(40, 30, dtype=torch.bool)
    mask[1:-1, 1:-1] = False
    assert named((40, 30), mask) == "borders"


def test_one_tile_of_a_grid() -> None:
    shape = (96, 128)
    mask = where(shape, slice(32, 64), slice(64, 96))
    assert named(shape, mask, (launch((3, 4), BLOCK_M=32, BLOCK_N=32),)) == "one_block"
    assert named(shape, mask) == "one_block"
    odd = where(shape, slice(13, 40), slice(50, 71))
    assert named(shape, odd) == "unclear"


def test_every_second_program() -> None:
    mask = torch.arange(4096) // 128 % 2 == 1
    assert named((4096,), mask, (launch((32,), BLOCK=128),)) == "every_kth"

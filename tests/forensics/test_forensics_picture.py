"""The picture of where an output fails."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.forensics import FailedOutput, heat_map
from pytest_tritonverify.forensics.failing import exact


def picture(mask: torch.Tensor, width: int = 64, height: int = 16) -> list[str]:
    golden = torch.zeros(mask.shape, dtype=torch.int32)
    return heat_map(FailedOutput(golden, mask.to(torch.int32), exact()), width, height).splitlines()


def test_a_block_is_drawn_where_it_lies() -> None:
    mask = torch.zeros(8, 8, dtype=torch.bool)
    mask[2:4, 4:] = True
    assert picture(mask, width=4, height=4)[:6] == [
        "+----+",
        "|    |",
        "|  @@|",
        "|    |",
        "|    |",
        "+----+",
    ]


def test_a_vector_is_drawn_in_reading_order() -> None:
    mask = torch.zeros(4096, dtype=torch.bool)
    mask[4000:] = True
    lines = picture(mask)
    assert len(lines) == 16 + 3
    assert {len(line) for line in lines[:-1]} == {64 + 2}
    assert lines[16] == f"|{' ' * 40}{'@' * 24}|"
    assert "4096 elements in reading order; a cell is up to 4 elements" in lines[-1]


def test_leading_axes_are_folded() -> None:
    mask = torch.zeros(4, 6, 8, dtype=torch.bool)
    mask[1, 3] = True
    lines = picture(mask)
    assert lines[4] == f"|{lines[4][1] * 8}|"
    assert lines[4][1] not in " @"
    assert "1 more axis folded onto them" in lines[-1]


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(9, 9, dtype=torch.bool),
        torch.zeros(9, 9, dtype=torch.bool),
        torch.eye(81, dtype=torch.bool)[0].view(9, 9),
        torch.tensor([True, True, False]),
        torch.ones(0, 3, dtype=torch.bool),
    ],
)
def test_nothing_is_drawn_where_a_picture_says_nothing(mask: torch.Tensor) -> None:
    assert picture(mask) == []


@settings(max_examples=100, deadline=None)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.02, 0.5, 0.97]),
    width=st.integers(2, 12),
    height=st.integers(1, 12),
)
def test_cells_are_blank_or_full_only_where_no_or_every_element_fails(
    *, rows: int, columns: int, seed: int, share: float, width: int, height: int
) -> None:
    mask = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < share
    lines = picture(mask, width=width, height=height)
    if not lines:
        return
    down, across = min(rows, height), min(columns, width)
    assert len(lines) == down + 3
    for i in range(down):
        for j in range(across):
            cell = [
                bool(mask[r, c])
                for r in range(rows)
                for c in range(columns)
                if r * down // rows == i and c * across // columns == j
            ]
            drawn = lines[1 + i][1 + j]
            assert (drawn == " ") == (not any(cell))
            assert (drawn == "@") == all(cell)


def test_a_sample_draws_large_outputs() -> None:
    mask = torch.zeros(1024, 1024, dtype=torch.bool)
    mask[:, 256:] = True
    lines = picture(mask)
    assert lines[1:17] == [f"|{' ' * 16}{'@' * 48}|"] * 16

"""Other inputs of the same kind."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.observing import variation

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
SMALL = [getattr(torch, n) for n in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, n)]


@given(
    st.sampled_from(FLOATS + SMALL),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(0, 1 << 30),
)
def test_values_stay_in_their_range_and_differ(dtype: Any, shape: list[int], seed: int) -> None:
    wide = torch.complex64 if dtype.is_complex else torch.float32
    tensor = (torch.rand(shape, dtype=wide, generator=torch.manual_seed(seed)) + 1).to(dtype)
    exact = torch.complex128 if dtype.is_complex else torch.float64
    before = tensor.clone().to(exact)
    assert variation.alter([tensor], seed)
    after = tensor.to(before.dtype)
    assert not torch.equal(before, after)
    assert after.abs().max() <= before.abs().max()


@pytest.mark.parametrize("shape", [(2, 4), (1, 2, 3), (40, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_many_sets_differ_from_each_other(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    given = torch.linspace(1, 5, math.prod(shape)).flip(0).reshape(shape).to(dtype)
    found = [given.clone() for _ in range(24)]
    for seed, tensor in enumerate(found[1:], 1):
        assert variation.alter([tensor], seed, one_of_many=True)
        assert tensor.max() <= given.max()
    for one, other in itertools.combinations(found, 2):
        assert not torch.allclose(one, other, rtol=0.04)


def test_whole_numbers_are_left_alone_beside_others() -> None:
    index, values = torch.arange(9).reshape(3, 3), torch.randn(3, 3)
    assert variation.alter([values, [index]], 1)
    assert torch.equal(index, torch.arange(9).reshape(3, 3))
    assert variation.kinds([values, [index]]) == {"tensors": 2, "floating": True}


def test_whole_numbers_alone_change_places() -> None:
    index = torch.arange(12).reshape(4, 3)
    assert variation.alter([index], 1)
    assert sorted(index.flatten().tolist()) == list(range(12))
    assert not torch.equal(index, torch.arange(12).reshape(4, 3))


@pytest.mark.parametrize("tensor", [torch.arange(5), torch.ones(3, dtype=torch.bool)])
def test_the_order_of_whole_numbers_may_matter(tensor: torch.Tensor) -> None:
    before = tensor.clone()
    assert not variation.alter([tensor], 1)
    assert torch.equal(tensor, before)


def test_order_and_symmetry_are_kept() -> None:
    ordered = torch.arange(5.0)
    half = torch.randn(4, 4)
    symmetric = half @ half.T
    assert variation.alter([ordered, symmetric], 1)
    assert torch.equal(ordered, torch.arange(5.0) * 0.75)
    assert torch.equal(symmetric, symmetric.T)


def test_shared_memory_is_changed_once() -> None:
    base = torch.ones(4)
    views = [base, base[1:], base.expand(3, 4)]
    assert variation.alter(views, 1)
    assert base.tolist() == [0.75] * 4
    single = torch.ones(1).expand(5)
    assert variation.alter([single], 1)
    assert single.tolist() == [0.75] * 5


@pytest.mark.parametrize("values", [[], [3, "x", None], [torch.empty(0)], [torch.zeros(3)]])
def test_nothing_to_change(values: list[Any]) -> None:
    assert not variation.alter(values, 1)

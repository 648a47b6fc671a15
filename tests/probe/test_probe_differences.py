"""What is said of two tensors of one name that differ."""

from __future__ import annotations

import math

import pytest
import torch

from pytest_tritonverify.probe.differences import describe
from tests.support.trees import COMPUTED


def _normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _uniform(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) - 0.5


def test_first_and_worst_element_are_named_with_their_values() -> None:
    ours = torch.arange(6.0).reshape(2, 3)
    theirs = ours.clone()
    theirs[0, 2], theirs[1, 0] = 2.5, -7
    found = describe(ours, theirs)
    assert found.lines == (
        "2 of 6 elements differ",
        "first: [0, 2] expected 2, got 2.5",
        "worst: [1, 0] expected 3, got -7",
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (_normal(20), torch.zeros(20), "filled with 0"),
        (_normal(20), 0.25 * _normal(20), "times 0.25"),
        (_normal(4, 5), _normal(4, 5).t(), "transposed or permuted"),
        (_normal(4, 5), _normal(4, 5).flip(0), "another order"),
        (_normal(4, 5), _normal(5, 4).reshape(4, 5).reshape(2, 10), "in another shape"),
        (_normal(100), _uniform(100), "another initialiser"),
        (_uniform(100), _uniform(100, seed=1), "another seed, another order"),
        (torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]), "0.0 and -0.0"),
        (torch.arange(5), torch.arange(5, dtype=torch.int32), "only the dtype"),
    ],
    ids=[
        *("zeros", "factor", "transposed", "flipped", "reshaped"),
        *("initialiser", "seed", "sign_of_zero", "dtype"),
    ],
)
def test_likely_cause(ours: torch.Tensor, theirs: torch.Tensor, words: str) -> None:
    assert words in (describe(ours, theirs).cause or "")


def test_shapes_of_distributions_are_told() -> None:
    cause = describe(_uniform(400), _normal(400)).cause or ""
    assert "reference: uniform-like" in cause
    assert "implementation: normal-like" in cause


def test_nothing_is_made_up_for_single_numbers() -> None:
    assert describe(torch.tensor(1.0), torch.tensor(2.0)).cause is None
    assert describe(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])).cause is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_non_finite_values_are_shown(value: float) -> None:
    found = describe(torch.tensor([0.0, 1.0]), torch.tensor([0.0, value]))
    assert found.lines[0] == "1 of 2 elements differ"
    assert f"[1] expected 1, got {value}" in found.lines[1]


def test_equal_values_are_no_difference() -> None:
    found = describe(torch.tensor([math.nan, 1.0]), torch.tensor([math.nan, 1.0]))
    assert "not reproducible" in found.lines[0]


@pytest.mark.parametrize("dtype", [d for d in COMPUTED if "bits" not in str(d)], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3, 2)], ids=str)
def test_every_dtype_can_be_described(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    if "_x2" in str(dtype):
        pytest.skip("two numbers in a byte: torch can't make any")
    ours = torch.zeros(shape).to(dtype)
    theirs = torch.ones(shape).to(dtype)
    found = describe(ours, theirs)
    assert found.lines[0].endswith("elements differ")
    assert "expected" in found.lines[1]

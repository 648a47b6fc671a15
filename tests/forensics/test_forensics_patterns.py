"""Faults planted into random outputs are named; what has no pattern is unclear."""

from __future__ import annotations

import json
import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.forensics import (
    Diagnosis,
    FailedOutput,
    LaunchFacts,
    diagnose,
    render,
)
from pytest_tritonverify.forensics.failing import failing_by
from tests.support.planting import FAULTS, FLOATS, INTEGERS, SHAPES, values

SMALL = (torch.int8, torch.uint8, torch.bool)


def examined(golden: torch.Tensor, actual: torch.Tensor) -> Diagnosis | None:
    """Return the diagnosis, or None where nothing fails."""
    failing = failing_by(None, golden.dtype)
    if not bool(failing(golden.reshape(-1), actual.reshape(-1)).any()):
        return None
    return diagnose(FailedOutput(golden, actual, failing))


@pytest.mark.parametrize("name", FAULTS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**9), shape=st.sampled_from(SHAPES), data=st.data())
def test_a_planted_fault_is_named(
    name: str, seed: int, shape: tuple[int, ...], data: st.DataObject
) -> None:
    fault = FAULTS[name]
    golden = values(shape, data.draw(st.sampled_from(fault.dtypes)), seed)
    actual = fault.plant(golden, random.Random(seed))
    found = None if actual is None else examined(golden, actual)
    if found is not None:
        assert found.code in fault.codes, found
        assert json.loads(json.dumps(found.to_json())) == found.to_json()
        assert all(line.split(":")[0] for line in render(found))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**9),
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from((*FLOATS, *INTEGERS)),
    names=st.lists(st.sampled_from(sorted(FAULTS)), min_size=2, max_size=2, unique=True),
)
def test_of_two_faults_no_third_is_named(
    seed: int, shape: tuple[int, ...], dtype: torch.dtype, names: list[str]
) -> None:
    golden = values(shape, dtype, seed)
    draw = random.Random(seed)
    allowed = {"unclear"}
    actual: torch.Tensor | None = golden
    for name in names:
        fault = FAULTS[name]
        if dtype not in fault.dtypes or actual is None:
            return
        if bool(actual.isnan().any()):
            # Arithmetic on NaN leaves other bits than those of fresh memory.
            allowed.add("masked_lanes")
        actual = fault.plant(actual, draw)
        allowed |= fault.codes | fault.contents
    found = None if actual is None else examined(golden, actual)
    assert found is None or found.code in allowed, found


def scattered(draw: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an output of which a random set of elements holds noise of some kind."""
    shape = draw.choice([*SHAPES, (5,), (16,), (3, 4), (8, 8), (2, 2, 2), (300,), (1, 50)])
    dtype = draw.choice([*FLOATS, *INTEGERS, *SMALL])
    seed = draw.randrange(10**9)
    golden = values(shape, dtype, seed)
    total = golden.numel()
    # A boolean has one wrong value only: all of them wrong is a pattern of its own.
    most = total - 1 if dtype == torch.bool else total
    count = min(most, max(1, round(math.exp(draw.uniform(0, math.log(total) + 0.3)))))
    generator = torch.Generator().manual_seed(seed + 1)
    chosen = torch.randperm(total, generator=generator)[:count]
    actual = golden.clone()
    flat = actual.view(-1)
    kind = draw.randrange(3)
    if dtype == torch.bool:
        flat[chosen] = ~flat[chosen]
    elif kind == 0 or dtype in SMALL:
        flat[chosen] = values((count,), dtype, seed + 2)
    elif kind == 1:
        noise = torch.randn(count, generator=generator, dtype=torch.float64)
        flat[chosen] = (flat[chosen].double() + 5 * noise).to(dtype)
    else:
        flat[chosen] = flat[chosen[torch.randperm(count, generator=generator)]]
    return golden, actual


def test_noise_in_random_elements_is_unclear() -> None:
    draw = random.Random(20240229)
    asked, named = 0, []
    for _ in range(200):
        golden, actual = scattered(draw)
        failing = failing_by(None, golden.dtype)
        if not bool(failing(golden.view(-1), actual.view(-1)).any()):
            continue
        launches = [LaunchFacts("k", None, None, (max(1, golden.numel() // 64),), {"BLOCK": 64})]
        others = [values(tuple(golden.shape), golden.dtype, draw.randrange(10**9))]
        inputs = [values(tuple(golden.shape), torch.float32, draw.randrange(10**9))]
        found = diagnose(FailedOutput(golden, actual, failing, others, inputs, launches))
        asked += 1
        if found.code != "unclear":
            named.append(found)
        else:
            assert found.cause is None
            assert found.confidence is None
    assert asked > 175
    assert len(named) <= 0.01 * asked, named


def test_noise_everywhere_is_unclear() -> None:
    for seed, shape in enumerate(SHAPES):
        for dtype in (*FLOATS, *INTEGERS):
            golden, actual = values(shape, dtype, seed), values(shape, dtype, seed + 100)
            found = examined(golden, actual)
            assert found is not None
            assert found.code == "unclear", found

"""How large errors are beside their limit, against a slow count of single elements."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.forensics.failing import failing_by
from pytest_tritonverify.forensics.spectrum import LEVELS, MEASURED, bounds_of, spectrum

VALUES = st.floats(-1e4, 1e4, width=16) | st.sampled_from((0.0, math.inf, -math.inf, math.nan))


def of(golden: torch.Tensor, actual: torch.Tensor, category: Any = "eco_open_source") -> Any:
    """The spectrum of an output, with the positions that its rule fails."""
    failing = failing_by(category, golden.dtype)(golden.flatten(), actual.flatten())
    places = torch.nonzero(failing).flatten()
    bounds = bounds_of(category, golden.dtype, {})
    return spectrum(golden, actual, bounds, places if places.numel() else None)


def level(ratio: float) -> int:
    return next((n for n, end in enumerate(LEVELS) if ratio <= end), len(LEVELS))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=40))
def test_counts_are_those_of_single_elements(values: list[tuple[float, float]]) -> None:
    golden = torch.tensor([g for g, _ in values], dtype=torch.float16)
    actual = torch.tensor([a for _, a in values], dtype=torch.float16)
    found = of(golden, actual)
    equal = apart = 0
    bars: dict[int, int] = {}
    over: dict[int, int] = {}
    levels = []
    for g, a in zip(golden.double().tolist(), actual.double().tolist(), strict=True):
        if g == a or (math.isnan(g) and math.isnan(a)):
            equal += 1
            levels.append(0)
        elif not (math.isfinite(g) and math.isfinite(a)):
            apart += 1
            levels.append(9)
        else:
            allowed = 2**-9 + 2**-9 * abs(g)
            exponent = -24 if g == 0 else max(math.floor(math.log2(abs(g))) - 10, -24)
            hard = max(0.1, 32 * 2.0**exponent, allowed)
            ratio = abs(a - g) / allowed
            bar = min(max(math.ceil(math.log10(ratio) * 4) - 1, -24), 23)
            bars[bar] = bars.get(bar, 0) + 1
            over[bar] = over.get(bar, 0) + (abs(a - g) > hard)
            levels.append(level(ratio))
    assert (found["elements"], found["measured"]) == (len(values), len(values))
    assert (found["equal"], found["non_finite"]) == (equal, apart)
    if not bars:
        assert found["histogram"] is None
    else:
        first = round(found["histogram"]["lowest"] * 4)
        counts, above = found["histogram"]["counts"], found["histogram"]["over"]
        assert {first + n: c for n, c in enumerate(counts) if c} == bars
        assert {first + n: c for n, c in enumerate(above) if c} == {
            b: c for b, c in over.items() if c
        }
        assert counts[0] > 0
        assert counts[-1] > 0
    if found["heat_map"] is not None:
        assert found["heat_map"]["cells"] == ["".join(map(str, levels))]
    assert (found["heat_map"] is None) == all(n < 6 for n in levels)


def test_the_limit_itself_is_within_it() -> None:
    golden = torch.zeros(4)
    actual = torch.tensor([2**-16, 2**-16 * (1 + 2**-23), 0.0, 0.01])
    found = of(golden, actual)
    assert found["histogram"]["lowest"] == -0.25
    assert found["histogram"]["counts"][:2] == [1, 1]
    assert sum(found["histogram"]["over"]) == 0
    assert found["heat_map"]["cells"] == ["5609"]


@pytest.mark.parametrize("total", [MEASURED * 64, 3_000_001])
def test_single_wrong_elements_among_millions_are_seen(total: int) -> None:
    golden = torch.ones(total)
    actual = golden.clone()
    actual[[5, total - 1]] = 7.0
    found = of(golden, actual)
    assert found["measured"] < 1 << 17
    assert sum(found["histogram"]["counts"]) == sum(found["histogram"]["over"]) == 2
    cells = "".join(found["heat_map"]["cells"])
    assert cells[0] == "9"
    assert cells.count("9") == 2


def test_a_part_of_a_matrix_is_drawn_where_it_lies() -> None:
    golden = torch.zeros(2, 64, 128)
    actual = golden.clone()
    actual[1, 32:, 126:] = math.nan
    found = of(golden, actual, None)
    assert found["non_finite"] == 64
    assert found["histogram"] is None
    assert found["heat_map"] == {
        "rows": 64,
        "columns": 128,
        "cells": ["0" * 64] * 16 + ["0" * 63 + "9"] * 16,
    }


@pytest.mark.parametrize(
    ("golden", "actual", "category", "cells"),
    [
        (torch.tensor([0, 5, 9]), torch.tensor([0, 6, 209]), "integer_compute", "069"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "bool_output", "06"),
        (torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0]), "non_compute", "60"),
    ],
)
def test_rules_without_a_tolerance_have_a_map_only(
    golden: torch.Tensor, actual: torch.Tensor, category: str, cells: str
) -> None:
    found = of(golden, actual, category)
    assert found["histogram"] is None
    assert found["heat_map"]["cells"] == [cells]


DTYPES = [
    getattr(torch, name)
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "complex64")
    if hasattr(torch, name)
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("wrong", [0, 100])
def test_what_is_beyond_the_limit_is_what_the_rule_counts(dtype: torch.dtype, wrong: int) -> None:
    generator = torch.Generator().manual_seed(1)
    real = torch.float32 if dtype.is_floating_point else dtype
    golden = torch.randn(40, 50, generator=generator, dtype=real)
    actual = golden + 1e-5 * torch.randn(40, 50, generator=generator, dtype=real)
    actual.view(-1)[:wrong] *= 3
    golden, actual = golden.to(dtype), actual.to(dtype)
    input_type = infer_input_type([golden])
    verdict = judge_outputs(golden, actual, input_type=input_type, rules=Rules()).outputs[0]
    bounds = bounds_of(verdict.category, golden.dtype, verdict.metrics)
    found = spectrum(golden, actual, bounds)
    histogram = found["histogram"] or {"lowest": 0.0, "counts": [], "over": []}
    first = round(histogram["lowest"] * 4)
    beyond = sum(histogram["counts"][max(-first, 0) :])
    metrics: dict[str, Any] = verdict.metrics
    assert beyond == metrics["total_finite"] - metrics["matched_count"]
    hard = metrics.get("over_count", metrics.get("max_error_cap_violation_count"))
    assert sum(histogram["over"]) == hard

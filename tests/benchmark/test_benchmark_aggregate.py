"""Speed-ups are classed and drawn together by the documented rules."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.benchmark import aggregate
from pytest_tritonverify.benchmark.measurement import CaseMeasurement, SideMeasurement

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "benchmark" / "benchmark_vectors.json").read_text(
        "utf-8"
    )
)["vectors"]
assert len(VECTORS) == 14


def number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def side(latency: float | None, **facts: Any) -> SideMeasurement:
    if latency is None:
        return SideMeasurement.missing("the profiler gave no table")
    return SideMeasurement(latency_ms=latency, method="cuda_profiler", **facts)


def case(
    case_idx: int, framework: float | None, implementation: float | None, status: Any = "pass"
) -> CaseMeasurement:
    return CaseMeasurement(
        case_idx=case_idx,
        framework=side(framework),
        implementation=side(implementation),
        status=status,
    )


def cases(vector: dict[str, Any]) -> list[CaseMeasurement]:
    count = len(vector["framework"])
    pairs = zip(vector["framework"], vector["implementation"], strict=True)
    statuses = vector.get("status", ["pass"] * count)
    return [
        case(k, number(over), number(under), status)
        for k, ((over, under), status) in enumerate(zip(pairs, statuses, strict=True), 1)
    ]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector: dict[str, Any]) -> None:
    totals = aggregate.total(cases(vector))
    failed = vector["class"].count("fail")
    assert totals.total_cases == len(vector["class"])
    assert totals.failed_cases == failed
    assert totals.passed_cases == totals.total_cases - failed
    for k, (s, kind) in enumerate(zip(vector["s"], vector["class"], strict=True), 1):
        if kind == "fail":
            assert k not in totals.speedups
            continue
        found = totals.speedups[k]
        assert found.kind == kind
        assert found.value == pytest.approx(number(s), nan_ok=True)
        assert found.valid == (found.value if kind == "valid" else None)
    for kind in aggregate.ABNORMAL:
        expected = [k for k, name in enumerate(vector["class"], 1) if name == kind]
        assert totals.indices(kind) == expected
    if vector["geomean"] is None:
        assert totals.speedup is None
    else:
        assert totals.speedup == pytest.approx(vector["geomean"], rel=1e-12)


@pytest.mark.parametrize(
    ("over", "under", "value"),
    [
        (1.0, -0.0, -math.inf),
        (-1.0, 0.0, -math.inf),
        (-1.0, -0.0, math.inf),
        (math.nan, 0.0, math.nan),
        (0.0, -0.0, math.nan),
        (math.inf, 0.0, math.inf),
        (1.0, math.inf, 0.0),
        (5e-324, 1e300, 0.0),
    ],
)
def test_division_is_that_of_ieee_754(over: float, under: float, value: float) -> None:
    assert aggregate.quotient(over, under) == pytest.approx(value, nan_ok=True)


@given(st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=8))
def test_the_mean_is_the_root_of_the_product(speedups: list[float]) -> None:
    expected = math.prod(speedups) ** (1 / len(speedups))
    assert aggregate.geometric_mean(speedups) == pytest.approx(expected)


@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(), st.none() | st.floats(), st.sampled_from(["pass", "fail"])
        ),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_every_case_that_passed_is_in_one_class_whatever_the_order(
    rows: list[tuple[float | None, float | None, str]], shuffle: Any
) -> None:
    found = [case(k, over, under, status) for k, (over, under, status) in enumerate(rows, 1)]
    totals = aggregate.total(found)
    listed = [k for kind in (*aggregate.ABNORMAL, "valid") for k in totals.indices(kind)]
    assert sorted(listed) == [k for k, row in enumerate(rows, 1) if row[2] == "pass"]
    assert (totals.speedup is None) == (not totals.indices("valid"))
    shuffle.shuffle(found)
    again = aggregate.total(found)
    # In words, since nan is not equal to itself.
    assert repr(sorted(again.speedups.items())) == repr(sorted(totals.speedups.items()))
    assert (again.speedup, again.framework) == (totals.speedup, totals.framework)


def test_latencies_are_averaged_arithmetically_over_what_was_measured() -> None:
    totals = aggregate.total(
        [
            case(1, 1.0, 4.0),
            case(2, 100.0, 1.0),
            case(3, 1.0, 0.0),
            case(4, None, math.inf),
            case(5, -7.0, math.nan),
            case(6, 1000.0, 1000.0, "fail"),
        ]
    )
    assert totals.framework.latency_ms == pytest.approx(34.0)
    assert totals.implementation.latency_ms == pytest.approx(5 / 3)


def test_nothing_measured_has_no_averages() -> None:
    totals = aggregate.total([CaseMeasurement(case_idx=1)])
    assert totals.framework == aggregate.SideTotals(
        latency_ms=None, peak_memory_mb=None, operators={}
    )
    assert totals.speedups[1].kind == "none"


def test_kernels_are_averaged_by_name_and_peaks_are_peaks() -> None:
    def one(k: int, **facts: Any) -> CaseMeasurement:
        return CaseMeasurement(case_idx=k, implementation=side(1.0, **facts))

    totals = aggregate.total(
        [
            one(1, operators={"softmax": 3.0, "copy": 1.0}, peak_memory_mb=64.0),
            one(2, operators={"softmax": 6.0}, peak_memory_mb=256.0),
            one(3),
            CaseMeasurement(case_idx=4, implementation=side(None, operators={"odd": 9.0})),
        ]
    )
    assert totals.implementation.operators == pytest.approx({"softmax": 3.0, "copy": 1 / 3})
    assert totals.implementation.peak_memory_mb == 256.0

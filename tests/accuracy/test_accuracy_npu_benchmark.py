"""The three-way test against a slow oracle: rounded step by step in plain Python."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.floats import scan_floats
from pytest_tritonverify.accuracy.limits import cap_limits, npu_limits
from pytest_tritonverify.accuracy.npu_benchmark import NpuBenchmarkTally
from pytest_tritonverify.accuracy.offenders import Addressing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.accuracy.verdict import Finding

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])
COMPLEX_HALF = "ignore:ComplexHalf support is experimental"


@dataclass(frozen=True)
class Row:
    """The standard's rows, typed anew from the document."""

    small_value_threshold: float
    small_value_error: float
    rel_threshold: float
    atol: float
    rtol: float


OTHER = Row(2**-14, 2**-30, 2**-13, 1e-3, 2**-13)
ROWS = {
    "float16": Row(2**-11, 2**-16, 2**-10, 9e-2, 2**-10),
    "bfloat16": Row(2**-8, 2**-16, 2**-7, 1e-1, 2**-7),
    "float32": Row(2**-14, 2**-30, 2**-13, 1e-3, 2**-13),
    "hifloat32": Row(2**-12, 2**-28, 2**-11, 1e-3, 2**-13),
    "float8_e4m3fn": Row(2**-4, 2**-6, 2**-3, 1e-3, 2**-13),
    "float8_e4m3fnuz": Row(2**-4, 2**-6, 2**-3, 1e-3, 2**-13),
    "float8_e5m2": Row(2**-3, 2**-5, 2**-2, 1e-3, 2**-13),
    "float8_e5m2fnuz": Row(2**-3, 2**-5, 2**-2, 1e-3, 2**-13),
    "float8_e8m0fnu": OTHER,
    "float64": OTHER,
    "complex32": Row(2**-11, 2**-16, 2**-10, 9e-2, 2**-10),
    "complex64": Row(2**-14, 2**-30, 2**-13, 1e-3, 2**-13),
    "complex128": OTHER,
}


def float32(value: float) -> float:
    """Round to the nearest float32."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def float64(value: float) -> float:
    return value


def oracle(golden: list[float], actual: list[float], name: str) -> dict[str, Any]:
    """Judge finite vectors; every operation is rounded on its own."""
    row = ROWS[name]
    rounded: Callable[[float], float] = float64 if name in {"float64", "complex128"} else float32
    matched = small = violations = 0
    relatives: list[float] = []
    differences: list[float] = []
    for expected, got in zip(golden, actual, strict=True):
        difference = abs(rounded(got - expected))
        magnitude = abs(expected)
        denominator = rounded(magnitude + rounded(1e-7))
        relative = rounded(difference / denominator) if math.isfinite(difference) else math.inf
        cap = rounded(rounded(row.atol) + rounded(row.rtol * magnitude))
        violations += not difference <= cap
        if magnitude < row.small_value_threshold:
            small += 1
            matched += difference <= row.small_value_error
        else:
            matched += relative <= row.rel_threshold
        relatives.append(relative)
        differences.append(difference)
    total = len(golden)
    mere = math.fsum(relatives) / total if total else None
    return {
        "matched_count": matched,
        "total_finite": total,
        "small_count": small,
        "normal_count": total - small,
        "max_error_cap_violation_count": violations,
        "max_abs_diff": max(differences, default=None),
        "MERE": mere,
        "checks": {
            "max_error_cap": violations == 0,
            "required_matched_ratio": matched * 10 >= 9 * total,
            "MERE": mere is None or mere < row.rel_threshold,
        },
    }


def judge(golden: torch.Tensor, actual: torch.Tensor) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules())


def find(golden: torch.Tensor, actual: torch.Tensor, name: str) -> Finding:
    """Judge by the three-way test, whatever rule the dtype would be routed to."""
    tally = NpuBenchmarkTally(npu_limits(name), cap_limits(name))
    scan_floats(golden, actual, tally)
    return tally.finding(Addressing(tuple(golden.shape), complex_parts=golden.is_complex()))


def check(metrics: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if key == "MERE" and value is not None and math.isfinite(value):
            assert metrics[key] == pytest.approx(value, rel=1e-12, abs=1e-40)
        elif isinstance(value, float) and not math.isfinite(value):
            assert metrics[key] is None
        else:
            assert metrics[key] == value, key


# Distances from the golden: none, and around every bound that decides something.
MODES = ("same", "relative", "cap", "small", "tiny", "far")


def moved(expected: float, mode: str, factor: float, row: Row) -> float:
    distance = {
        "same": 0.0,
        "relative": row.rel_threshold * (abs(expected) + 1e-7),
        "cap": row.atol + row.rtol * abs(expected),
        "small": row.small_value_error,
        "tiny": row.rel_threshold * 1e-7,
        "far": abs(expected) + 1.0,
    }[mode]
    return expected + distance * factor


ELEMENT = st.tuples(
    st.sampled_from([0.0, 2**-31, 2**-14, 2**-12, 2**-11, 2**-8, 2**-4, 2**-3, 1.0, 1024.0, 3e4]),
    st.sampled_from([1.0, -1.0, 1.3, 0.999]),
    st.sampled_from(["same"] * 8 + list(MODES)),
    st.sampled_from([1.0, -1.0, 0.999, 1.001, 1 + 2**-23, 1 - 2**-23]),
)


def vectors(elements: list[tuple[float, float, str, float]], row: Row) -> list[list[float]]:
    golden = [base * scale for base, scale, _, _ in elements]
    actual = [
        moved(expected, mode, factor, row)
        for expected, (_, _, mode, factor) in zip(golden, elements, strict=True)
    ]
    return [golden, actual]


REAL = [name for name in ROWS if hasattr(torch, name) and not name.startswith("complex")]


@pytest.mark.parametrize("name", REAL)
@settings(max_examples=100, deadline=None)
@given(elements=st.lists(ELEMENT, min_size=1, max_size=50))
def test_every_real_format_agrees_with_the_oracle_at_the_thresholds(
    name: str, elements: list[tuple[float, float, str, float]]
) -> None:
    dtype = getattr(torch, name)
    both = torch.tensor(vectors(elements, ROWS[name]), dtype=torch.float64).to(dtype)
    golden, actual = both.unbind(0)
    finite = golden.double().isfinite() & actual.double().isfinite()
    expected = oracle(golden.double()[finite].tolist(), actual.double()[finite].tolist(), name)
    finding = find(golden[finite], actual[finite], name)
    check(finding.metrics, expected)
    assert finding.passed is all(expected["checks"].values())


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@settings(max_examples=100, deadline=None)
@given(elements=st.lists(ELEMENT, min_size=2, max_size=50))
def test_complex_outputs_are_judged_as_their_parts(
    name: str, elements: list[tuple[float, float, str, float]]
) -> None:
    elements = elements[: len(elements) // 2 * 2]
    part = torch.float32 if name == "complex64" else torch.float64
    golden, actual = torch.tensor(vectors(elements, ROWS[name]), dtype=torch.float64).to(part)
    expected = oracle(golden.double().tolist(), actual.double().tolist(), name)
    verdict = judge(
        torch.view_as_complex(golden.view(-1, 2)), torch.view_as_complex(actual.view(-1, 2))
    )
    output = verdict.outputs[0]
    assert output.category == "float_compute"
    assert output.dtype == f"torch.{name}"
    check(output.metrics, expected)
    assert verdict.passed is all(expected["checks"].values())


@pytest.mark.filterwarnings(COMPLEX_HALF)
def test_complex32_is_judged_by_the_rows_of_float16() -> None:
    golden = torch.view_as_complex(torch.ones(4, 2, dtype=torch.float16))
    near = torch.view_as_complex(torch.full((4, 2), 1 + 2**-10, dtype=torch.float16))
    far = torch.view_as_complex(torch.full((4, 2), 1 + 2**-9, dtype=torch.float16))
    assert judge(golden, near).passed
    assert not judge(golden, far).passed
    assert judge(golden, far).outputs[0].metrics["rel_threshold"] == 2**-10


def test_the_imaginary_part_counts() -> None:
    verdict = judge(torch.tensor([1 + 1j]), torch.tensor([1 + 5j]))
    assert not verdict.passed
    assert "[0].imag: got 5.0, expected 1.0" in verdict.message


def test_conjugate_views_are_resolved() -> None:
    values = torch.tensor([[1 + 2j, 3 - 4j], [5j, 6.0]])
    assert judge(values.conj().t(), values.t().conj().clone()).passed
    assert judge(values.conj().imag, -values.imag).passed
    assert not judge(values.conj(), values).passed


def test_large_float64_values_agree_with_themselves() -> None:
    values = torch.tensor([1e300, -1e308, 5e-324], dtype=torch.float64)
    verdict = judge(values, values.clone())
    assert verdict.passed
    assert verdict.outputs[0].metrics["max_abs_diff"] == 0.0


def test_a_difference_beyond_float64_is_a_violation_and_null() -> None:
    golden = torch.tensor([1e308, 1.0], dtype=torch.float64)
    actual = torch.tensor([-1e308, 1.0], dtype=torch.float64)
    metrics = judge(golden, actual).metrics
    assert metrics is not None
    assert metrics["max_abs_diff"] is None
    assert metrics["MERE"] is None
    assert metrics["checks"] == {
        "max_error_cap": False,
        "required_matched_ratio": False,
        "MERE": False,
    }


def test_float64_differences_below_float32_are_seen() -> None:
    golden = torch.tensor([1e-4], dtype=torch.float64)
    assert judge(golden, golden * (1 + 2**-14)).passed
    assert not judge(golden, golden * (1 + 2**-12)).passed


def test_a_negative_value_has_no_counterpart_in_an_unsigned_format() -> None:
    golden = torch.tensor([2.0, 4.0]).to(torch.float8_e8m0fnu)
    assert judge(golden, torch.tensor([2.0, 4.0])).passed
    assert not judge(golden, torch.tensor([-2.0, 4.0])).passed


@pytest.mark.parametrize(("bad", "passed"), [(10, True), (11, False)])
def test_the_ratio_is_compared_in_integers(bad: int, *, passed: bool) -> None:
    golden = torch.ones(100, dtype=torch.float64)
    actual = golden.clone()
    actual[:bad] += 2e-4
    checks = judge(golden, actual).outputs[0].metrics["checks"]
    assert isinstance(checks, dict)
    assert checks["required_matched_ratio"] is passed


def test_without_finite_elements_all_three_hold() -> None:
    golden = torch.full((3,), math.inf, dtype=torch.float64)
    verdict = judge(golden, golden.clone())
    assert verdict.passed
    metrics = verdict.outputs[0].metrics
    assert (metrics["matched_ratio"], metrics["MERE"], metrics["max_abs_diff"]) == (None,) * 3
    assert [caution.code for caution in verdict.cautions] == ["nothing_finite"]


def test_a_failure_of_the_mean_alone_names_what_lifts_it() -> None:
    golden = torch.zeros(10, dtype=torch.float64)
    verdict = judge(golden, golden + 2**-30)
    assert not verdict.passed
    assert "broken: MERE" in verdict.message
    assert "[0]: got" in verdict.message


def test_metrics_have_exactly_the_documented_keys_in_order() -> None:
    metrics = judge(torch.ones(3, dtype=torch.float64), torch.ones(3).double()).outputs[0].metrics
    assert list(metrics) == [
        "matched_ratio",
        "max_abs_diff",
        "MERE",
        "rel_threshold",
        "small_value_threshold",
        "small_value_error",
        "atol",
        "rtol",
        "max_error_cap_violation_count",
        "required_matched_ratio",
        "total_finite",
        "matched_count",
        "small_count",
        "normal_count",
        "checks",
    ]
    assert metrics["required_matched_ratio"] == 0.9
    assert metrics["checks"] == {
        "max_error_cap": True,
        "required_matched_ratio": True,
        "MERE": True,
    }

"""Measurements as tests want them, and all that there can be."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
from pytest_tritonverify.benchmark.measurement import CaseMeasurement, Method, SideMeasurement

# To the letter, from the source document.
TOP_LEVEL = [
    "op_name",
    "warmup",
    "repeats",
    "total_cases",
    "passed_cases",
    "failed_cases",
    "nan_indices",
    "inf_indices",
    "zero_indices",
    "negative_indices",
    "none_indices",
    "framework",
    "implementation",
    "speedup_vs_torch",
    "per_shape_results",
]

SOURCES = {"task": "0" * 64, "data": None, "implementation": "f" * 64}
ENVIRONMENT: dict[str, Any] = {
    "timestamp": "2026-01-02T03:04:05+00:00",
    "triton": {"version": "3.2.0", "path": "/lib/triton", "key_sha256": "a" * 64},
    "cann": {"info_sha256": "c" * 64, "version": "8.0"},
    "torch": {"version": "2.6.0", "torch_npu_version": None},
    "device": {"npu_name": "Ascend910B4", "current_device": 0},
    "cmdline": {"triton_impl_name": "triton_ascend_impl", "non_compute": False},
}


def steady(latency: float, count: int = 50) -> tuple[float, ...]:
    """Return samples whose mean is the latency, a percent around it."""
    steps = [latency * (1 + 0.01 * (k / (count - 1) - 0.5)) for k in range(count)]
    return tuple(steps[(7 * k) % count] for k in range(count))


def side(latency: float | None, **facts: Any) -> SideMeasurement:
    """Return a side with steady samples, or one that was not measured."""
    if latency is None:
        return SideMeasurement.missing("the profiler gave no table")
    return SideMeasurement(
        **{
            "latency_ms": latency,
            "method": "npu_profiler",
            "samples_ms": steady(latency) if latency > 0 else (),
            "operators": {"kernel": latency},
            "launches_per_forward": 1.0,
            "peak_memory_mb": 64.0,
            **facts,
        }
    )


def case(
    case_idx: int,
    framework: SideMeasurement | float | None = 2.0,
    implementation: SideMeasurement | float | None = 1.0,
    **facts: Any,
) -> CaseMeasurement:
    """Return a case; numbers become steady sides."""
    return CaseMeasurement(
        **{
            "case_idx": case_idx,
            "input_desc": [
                {"type": "tensor", "shape": [128, 2**case_idx], "dtype": "torch.float16"}
            ],
            "framework": framework if isinstance(framework, SideMeasurement) else side(framework),
            "implementation": (
                implementation
                if isinstance(implementation, SideMeasurement)
                else side(implementation)
            ),
            "name": f"benchmark{case_idx}-float16-128",
            "seconds": 1.5,
            **facts,
        }
    )


def failed(case_idx: int) -> CaseMeasurement:
    """Return a case that failed after it had been timed."""
    return case(
        case_idx, status="fail", error_type="AccuracyError", error_msg="AccuracyError: 3 of 9"
    )


numbers = st.floats()
maybe = st.none() | numbers
texts = st.text(max_size=20)
sides = st.builds(
    SideMeasurement,
    latency_ms=maybe,
    method=st.sampled_from(get_args(Method)),
    reason=st.none() | texts,
    samples_ms=st.lists(numbers, max_size=5).map(tuple)
    | st.lists(st.floats(min_value=0, max_value=1e4), min_size=10, max_size=12).map(tuple),
    operators=st.dictionaries(texts, numbers, max_size=3),
    launches_per_forward=maybe,
    peak_memory_mb=maybe,
    cross_check_ms=maybe,
    notes=st.lists(texts, max_size=2).map(tuple),
)
warnings = st.lists(st.fixed_dictionaries({"code": texts, "message": texts}), max_size=2)
cases = st.builds(
    CaseMeasurement,
    case_idx=st.integers(min_value=1, max_value=10**6),
    input_desc=st.lists(st.fixed_dictionaries({"type": st.just("tensor")}), max_size=2),
    framework=st.none() | sides,
    implementation=st.none() | sides,
    status=st.sampled_from(["pass", "fail"]),
    error_type=st.none() | texts,
    error_msg=st.none() | texts,
    warnings=warnings.map(tuple),
    name=texts,
    seconds=st.floats(min_value=0, max_value=1e6),
)
several = st.lists(cases, max_size=5, unique_by=lambda found: found.case_idx)
NO_CLOCKS = FrequencyReport(backend="cpu", requested=True, messages=("nothing is locked",))

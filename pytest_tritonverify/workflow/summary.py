"""`summary.json`, in the five documented shapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.workflow import performance

if TYPE_CHECKING:
    from pytest_tritonverify.workflow.outcome import Outcome
    from pytest_tritonverify.workflow.verification import Verification

SCHEMA_PATH = Path(__file__).parent / "schemas" / "summary.schema.json"

SKILL_PATH = ".claude/skills/triton-op-verifier"
PROFILER = "profiler"


def document(outcome: Outcome, skill_path: str = SKILL_PATH) -> dict[str, Any]:
    """Compose the summary.

    Counts and statuses are those of Phase 3's verification. Latencies, speed-ups and lists of
    abnormal cases are those of the final code's measurement.

    Args:
        outcome: what the work directory has come to.
        skill_path: what stands under that key.
    """
    failure = outcome.failure
    gen_iterations = len(outcome.work.iterations)
    if failure is not None:
        return {
            "success": False,
            "gen_iterations": gen_iterations,
            "failure_phase": failure.phase,
            "failure_reason": failure.reason,
            "last_error": failure.last_error,
        }
    content: dict[str, Any] = {
        "success": True,
        "gen_iterations": gen_iterations,
        "opt_iterations": len(outcome.work.opt_iterations),
        "optimized": outcome.best is not None,
        "perf_method": _method(outcome),
        "skill_path": skill_path,
    }
    if outcome.gpu is not None:
        content["gpu_mode"] = True
    content["perf_data"] = _perf_data(outcome)
    return content


def _method(outcome: Outcome) -> str | None:
    """Return how the times were measured: `profiler`, unless the report says something else."""
    if outcome.performance is None:
        return None
    methods = {shape.method for shape in outcome.performance.shapes.values()} - {None, "none"}
    if not methods or all(str(method).endswith(f"_{PROFILER}") for method in methods):
        return PROFILER
    return "+".join(sorted(map(str, methods)))


def _perf_data(outcome: Outcome) -> dict[str, Any]:
    final, result = outcome.performance, outcome.result
    assert result is not None  # noqa: S101 - without one there is no success
    latency = final.latency_ms if final else None
    data: dict[str, Any] = {
        "avg_latency_ms": figures.rounded(latency),
        "speedup_vs_torch": figures.rounded(final.speedup if final else None),
        "speedup_vs_baseline": figures.rounded(outcome.speedup_vs_baseline),
    }
    if outcome.gpu is not None:
        data |= _gpu(outcome, latency)
    data |= {
        "total_cases": result.total,
        "passed_cases": result.passed,
        "failed_cases": result.total - result.passed,
    }
    data |= {name: final.indices(name) if final else [] for name in performance.INDICES}
    data["per_shape_results"] = [
        _shape(outcome, result, case_idx) for case_idx in range(1, result.total + 1)
    ]
    return data


def _gpu(outcome: Outcome, latency: float | None) -> dict[str, Any]:
    assert outcome.gpu is not None  # noqa: S101 - asked by the caller
    return {
        "gpu_reference_ms": figures.rounded(outcome.gpu.reference_ms),
        "ascend_vs_gpu_ratio": figures.rounded(outcome.gpu.ratio(latency)),
    }


def _shape(outcome: Outcome, result: Verification, case_idx: int) -> dict[str, Any]:
    status = result.status(case_idx)
    shapes = outcome.performance.shapes if outcome.performance else {}
    measured = shapes.get(case_idx) if status == "pass" else None
    input_desc = result.input_desc(case_idx)
    if input_desc is None and case_idx in shapes:
        input_desc = shapes[case_idx].input_desc
    entry: dict[str, Any] = {
        "case_idx": case_idx,
        "status": status,
        "shape_desc": figures.inputs_text(input_desc),
        "speedup_vs_torch": figures.rounded(measured.speedup if measured else None),
    }
    if outcome.gpu is not None:
        entry["shape"] = figures.first_shape(input_desc)
        entry |= _gpu(outcome, measured.implementation_ms if measured else None)
    return entry

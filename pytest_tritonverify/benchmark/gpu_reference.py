"""Benchmarks of tasks that a GPU kernel's stored outputs stand for: the GPU's time is given.

Such a task's `Model` returns what was stored. Its time would mean nothing, and for other inputs
than the stored ones its golden would be wrong.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures, gpu_task

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.benchmark.measurement import PerfSettings


def settings_of(task: Path, perf: PerfSettings) -> PerfSettings:
    """Return how a task is measured: a stored reference is not run.

    Args:
        task: the task file.
        perf: what the user has asked for; a latency that they name goes before the task's own.
    """
    if not gpu_task.returns_stored_output(task):
        return perf
    given = figures.positive(perf.framework_latency_ms)
    return dataclasses.replace(
        perf,
        skip_framework=True,
        framework_latency_ms=given if given is not None else gpu_task.reference_of(task),
    )


def compared(task: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return a report with the documented comparison with the GPU, where the task is such a one.

    `gpu_reference_ms` is the GPU's time, `ascend_vs_gpu_ratio` the implementation's over it, of
    the whole and of each case.
    """
    if not gpu_task.returns_stored_output(task):
        return content
    settings = content["settings"]
    reference = figures.positive(settings["framework_latency_ms"])

    def extended(entry: dict[str, Any]) -> dict[str, Any]:
        latency = figures.number((entry["implementation"] or {}).get("avg_latency_ms"))
        ratio = None
        if latency is not None and reference is not None:
            ratio = figures.number(latency / reference)
        return {**entry, "gpu_reference_ms": reference, "ascend_vs_gpu_ratio": ratio}

    cases = [extended(case) for case in content["per_shape_results"]]
    return {**extended(content), "per_shape_results": cases}

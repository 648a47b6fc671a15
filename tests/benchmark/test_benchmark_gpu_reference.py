"""A task that a GPU kernel's stored outputs stand for: its time is given, its inputs stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import torch

from pytest_tritonverify import gpu_task
from pytest_tritonverify.benchmark import gpu_reference, perf_file
from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings
from pytest_tritonverify.discovery import Pair
from tests.support.measurements import ENVIRONMENT, SOURCES, side
from tests.support.workdirs import CODE, TASK, sha256

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.measuring import MeasuringBench

FEW = PerfSettings(warmup=2, repeats=8)


def task_in(folder: Path, reference: float | None = 0.002072) -> Path:
    x = torch.randn(2, 4)
    stored = folder / "op.pt"
    torch.save({"input_data": {"x": x}, "gpu_output": x * 2.0}, stored)
    path = folder / "op_torch.py"
    path.write_text(gpu_task.source("op", ["x"], sha256(stored), reference), encoding="utf-8")
    return path


def test_a_stored_reference_is_never_run(tmp_path: Path) -> None:
    task = task_in(tmp_path)
    found = gpu_reference.settings_of(task, FEW)
    assert (found.skip_framework, found.framework_latency_ms) == (True, 0.002072)
    named = PerfSettings(skip_framework=True, framework_latency_ms=3.0)
    assert gpu_reference.settings_of(task, named).framework_latency_ms == 3.0
    unknown = gpu_reference.settings_of(task_in(tmp_path, None), FEW)
    assert (unknown.skip_framework, unknown.framework_latency_ms) == (True, None)
    task.write_text(TASK, encoding="utf-8")
    assert gpu_reference.settings_of(task, FEW) is FEW


@pytest.mark.parametrize("reference", [0.5, None])
def test_a_report_compares_with_the_gpu(tmp_path: Path, reference: float | None) -> None:
    task = task_in(tmp_path, reference)
    cases = [
        CaseMeasurement(
            case_idx=1, input_desc=[], framework=None, implementation=side(2.0), name="benchmark1"
        )
    ]
    perf = gpu_reference.settings_of(task, FEW)
    document: dict[str, Any] = perf_file.document(
        "op", cases, perf, environment=ENVIRONMENT, sources=SOURCES
    )
    content = gpu_reference.compared(task, document)
    schema = json.loads(perf_file.SCHEMA_PATH.read_text("utf-8"))
    jsonschema.validate(content, schema)
    ratio = None if reference is None else 4.0
    for entry in (content, content["per_shape_results"][0]):
        assert (entry["gpu_reference_ms"], entry["ascend_vs_gpu_ratio"]) == (reference, ratio)
    task.write_text(TASK, encoding="utf-8")
    assert gpu_reference.compared(task, document) is document


def test_only_the_stored_inputs_are_measured_with(
    tmp_path: Path, measuring: MeasuringBench
) -> None:
    task = task_in(tmp_path)
    implementation = tmp_path / "op_triton_ascend_impl.py"
    implementation.write_text(CODE.format(mark=""), encoding="utf-8")
    found = measuring.measure(Pair("op", "ascend_impl", task, implementation), FEW)
    assert (found.status, found.error_msg) == ("pass", None)
    assert found.framework is not None
    assert (found.framework.method, found.framework.latency_ms) == ("given", 0.002072)
    assert [warning["code"] for warning in found.warnings] == ["inputs_not_rotated"]

"""A work directory from the documented tree, through every command: files that agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.support.workdirs import Builder, record, write_json
from tests.workflow.conftest import schema

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workflow.conftest import Commands


def keys_of(content: Any, path: str = "") -> set[str]:
    """Return all keys of nested JSON, with where they stand."""
    if isinstance(content, dict):
        deeper = (keys_of(value, f"{path}.{key}") for key, value in content.items())
        return {f"{path}.{key}" for key in content}.union(*deeper)
    if isinstance(content, list):
        return set().union(*(keys_of(item, f"{path}[]") for item in content))
    return set()


def summary_of(work: Builder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((work.folder / "summary.json").read_text("utf-8"))
    jsonschema.validate(found, schema("summary"))
    return found


SUCCESS = {
    "success": True,
    "gen_iterations": 2,
    "opt_iterations": 1,
    "optimized": True,
    "perf_method": "profiler",
    "skill_path": ".claude/skills/triton-op-verifier",
    "perf_data": {
        "avg_latency_ms": 0.5678,
        "speedup_vs_torch": 2.1746,
        "speedup_vs_baseline": 1.35,
        "total_cases": 5,
        "passed_cases": 5,
        "failed_cases": 0,
        "nan_indices": [],
        "inf_indices": [],
        "zero_indices": [],
        "negative_indices": [],
        "none_indices": [],
        "per_shape_results": [
            {"case_idx": 1, "status": "pass", "shape_desc": "...", "speedup_vs_torch": 1.8200}
        ],
    },
}
GPU = {
    "success": True,
    "gen_iterations": 1,
    "opt_iterations": 2,
    "optimized": False,
    "perf_method": "profiler",
    "skill_path": ".claude/skills/triton-op-verifier",
    "gpu_mode": True,
    "perf_data": {
        "avg_latency_ms": 0.4200,
        "speedup_vs_torch": 0.3700,
        "gpu_reference_ms": 0.002072,
        "ascend_vs_gpu_ratio": 202.7,
        "total_cases": 1,
        "per_shape_results": [
            {
                "shape": [128, 16, 128],
                "speedup_vs_torch": 0.3700,
                "gpu_reference_ms": 0.002072,
                "ascend_vs_gpu_ratio": 202.7,
            }
        ],
    },
}
GENERATION = {
    "success": False,
    "gen_iterations": 5,
    "failure_phase": "generation",
    "failure_reason": "达到最大迭代次数",
    "last_error": "...",
}
UNIMPROVED = {
    "success": True,
    "gen_iterations": 2,
    "opt_iterations": 3,
    "optimized": False,
    "perf_data": {"avg_latency_ms": 0.8000, "speedup_vs_torch": 1.5000},
}


def test_everything_about_a_success_agrees(work: Builder, commands: Commands) -> None:
    work.iteration(0, [record(1), record(2, "AccuracyError"), record(3)])
    passed = work.iteration(1)
    optimised = work.optimisation(0, passed)

    code, explained = commands.json("explain", work.folder)
    assert (code, explained["verifier_result"]) == (0, True)
    assert [one["verifier_result"] for one in explained["rounds"]] == [False, True]

    code, gate = commands.json("gate", work.folder, "--no-fingerprint")
    assert (code, gate["phase3_last_iter"], gate["passed_cases"]) == (0, 1, 3)

    code, decided = commands.json(
        "decide",
        optimised / "baseline_perf_result.json",
        optimised / "optimized_perf_result.json",
    )
    assert (code, decided["outcome"], decided["warnings"]) == (0, "improvement", [])
    assert decided["speedup_vs_baseline"] == pytest.approx(2.0 / 1.5)

    code, summary = commands.json("report", work.folder)
    assert code == 0
    assert summary == summary_of(work)
    assert keys_of(SUCCESS) <= keys_of(summary)
    assert (summary["gen_iterations"], summary["opt_iterations"]) == (2, 1)
    assert summary["optimized"] is True
    data = summary["perf_data"]
    assert data["speedup_vs_baseline"] == pytest.approx(decided["speedup_vs_baseline"], abs=1e-4)
    assert (data["passed_cases"], data["failed_cases"], data["total_cases"]) == (3, 0, 3)
    assert data["speedup_vs_torch"] == 2.0
    assert data["avg_latency_ms"] == 0.25
    assert [one["status"] for one in data["per_shape_results"]] == ["pass"] * 3
    assert data["per_shape_results"][1]["shape_desc"] == "float32[2, 8]"
    final = work.folder / "softmax_generated.py"
    assert final.read_bytes() == (optimised / "optimized_code.py").read_bytes()

    code, batch = commands.json("batch", work.folder.parent)
    assert (code, batch["succeeded"], batch["failed"], batch["optimized"]) == (0, 1, 0, 1)
    (row,) = batch["workdirs"]
    assert row["problem"] is None
    assert row["speedup_vs_torch"] == data["speedup_vs_torch"]
    text = (work.folder.parent / "batch_report.md").read_text("utf-8")
    assert "# 批量执行报告" in text
    assert "| softmax | ✅ 成功 | 3/3 | 0.2500 | 2.0000 | 1.3333 | optimized |" in text


def test_the_report_has_the_documented_sections(work: Builder, commands: Commands) -> None:
    work.optimisation(0, work.iteration(0))
    assert commands.run("report", work.folder, "--arch", "ascend910b2").code == 0
    text = (work.folder / "report.md").read_text("utf-8")
    for words in (
        "- arch：ascend910b2",
        f"- 工作目录：{work.folder}",
        "Shape 通过率（以 verify 为准）",
        "passed_cases / total_cases：3 / 3",
        "延时加权加速比：2.0000",
        "总延时：framework 1.5000 ms，implementation 0.7500 ms",
        "平均延迟：framework 0.5000 ms，implementation 0.2500 ms",
        "| 2 | pass | float32[2, 8] | 0.5000 | 0.2500 | 2.0000 |  |",
        "opt_iter_0/optimized_code.py",
        "- softmax_generated.py",
    ):
        assert words in text
    assert "GPU" not in text


def test_without_an_architecture_the_verified_npu_is_named(
    work: Builder, commands: Commands
) -> None:
    work.iteration(0)
    commands.run("report", work.folder)
    assert "- arch：ascend910b4" in (work.folder / "report.md").read_text("utf-8")


def test_phase_4_without_improvement_ends_with_phase_3(work: Builder, commands: Commands) -> None:
    passed = work.iteration(0)
    work.optimisation(0, passed, (1.5, 1.5, 1.5))
    work.optimisation(1, passed, (1.4, 1.5, 1.5))
    work.optimisation(2, passed, None)
    code, summary = commands.json("report", work.folder)
    assert code == 0
    assert keys_of(UNIMPROVED) <= keys_of(summary)
    assert (summary["opt_iterations"], summary["optimized"]) == (3, False)
    assert summary["perf_data"]["speedup_vs_baseline"] is None
    assert summary["perf_data"]["speedup_vs_torch"] == 1.5
    final = work.folder / "softmax_generated.py"
    assert final.read_bytes() == (passed / "generated_code.py").read_bytes()


def test_the_best_of_several_improvements_is_final(work: Builder, commands: Commands) -> None:
    passed = work.iteration(0)
    work.optimisation(0, passed, (1.8, 1.8, 1.8))
    best = work.optimisation(1, passed, (3.0, 3.0, 3.0))
    work.optimisation(2, passed, (2.0, 2.0, 2.0))
    wrong = [record(1, "AccuracyError"), record(2), record(3)]
    work.optimisation(3, passed, (9.0, 9.0, 9.0), wrong)
    _, summary = commands.json("report", work.folder)
    assert summary["perf_data"]["speedup_vs_torch"] == 3.0
    assert summary["perf_data"]["speedup_vs_baseline"] == 2.0
    final = work.folder / "softmax_generated.py"
    assert final.read_bytes() == (best / "optimized_code.py").read_bytes()


def test_five_failing_rounds_are_a_failed_generation(work: Builder, commands: Commands) -> None:
    for number in range(5):
        errors = ["AccuracyError", "CompilationError"][number % 2]
        work.iteration(number, [record(1), record(2, errors), record(3, errors)])
    code, summary = commands.json("report", work.folder)
    assert code == 0
    assert keys_of(GENERATION) == keys_of(summary)
    assert summary == {**GENERATION, "last_error": summary["last_error"]}
    assert "AccuracyError, case 2-3" in summary["last_error"]
    assert not (work.folder / "softmax_generated.py").exists()
    text = (work.folder / "report.md").read_text("utf-8")
    assert "| 2 | fail | float32[2, 8] | AccuracyError |" in text
    _, batch = commands.json("batch", work.folder.parent)
    assert (batch["failed"], batch["workdirs"][0]["problem"]) == (1, None)


def test_the_same_failure_three_times_ends_a_generation_early(
    work: Builder, commands: Commands
) -> None:
    for number in range(3):
        work.iteration(number, [record(1, "AccuracyError"), record(2), record(3)])
    _, summary = commands.json("report", work.folder)
    assert summary["failure_phase"] == "generation"
    assert summary["failure_reason"].startswith("C 类")
    _, explained = commands.json("explain", work.folder)
    assert (explained["class"], explained["terminate"]) == ("C", True)


@pytest.mark.parametrize("writer", ["gate", "report"])
def test_a_violated_gate_is_told_in_the_documented_words(
    work: Builder, commands: Commands, writer: str
) -> None:
    failing = work.iteration(2, [record(1), record(2, "AccuracyError"), record(3)])
    (work.output / "generated_code.py").write_bytes((failing / "generated_code.py").read_bytes())
    arguments = ("--no-fingerprint",) if writer == "gate" else ()
    code, _ = commands.json(writer, work.folder, *arguments)
    assert code == (1 if writer == "gate" else 0)
    assert summary_of(work) == {
        "success": False,
        "gen_iterations": 1,
        "failure_phase": "phase3_gate_violation",
        "failure_reason": (
            "Phase 3 verify_result.json passed_cases(2) < total_cases(3)，但流程已进入 Phase 4"
        ),
        "last_error": summary_of(work)["last_error"],
    }
    assert "AccuracyError, case 2" in summary_of(work)["last_error"]


def test_rounds_of_phase_4_show_that_a_gate_was_skipped(work: Builder, commands: Commands) -> None:
    failing = work.iteration(0, [record(1, "AccuracyError"), record(2), record(3)])
    work.optimisation(0, failing)
    _, summary = commands.json("report", work.folder)
    assert summary["failure_phase"] == "phase3_gate_violation"


def test_counts_never_come_from_the_benchmark(work: Builder, commands: Commands) -> None:
    folder = work.iteration(0)
    report = json.loads((folder / "perf_result.json").read_text("utf-8"))
    report |= {"total_cases": 99, "passed_cases": 7, "failed_cases": 92}
    report["per_shape_results"][0] |= {"status": "fail", "speedup_vs_torch": None}
    write_json(folder / "perf_result.json", report)
    _, summary = commands.json("report", work.folder)
    data = summary["perf_data"]
    assert (data["total_cases"], data["passed_cases"], data["failed_cases"]) == (3, 3, 0)
    assert [one["status"] for one in data["per_shape_results"]] == ["pass"] * 3
    assert data["per_shape_results"][0]["speedup_vs_torch"] is None


def test_lists_of_abnormal_cases_are_handed_on(work: Builder, commands: Commands) -> None:
    work.iteration(0, speedups=(1.5, None, 3.0))
    _, summary = commands.json("report", work.folder)
    assert summary["perf_data"]["none_indices"] == [2]
    text = (work.folder / "report.md").read_text("utf-8")
    assert "- none_indices：[2]" in text


def test_a_success_that_was_never_measured_says_so(work: Builder, commands: Commands) -> None:
    work.iteration(0, speedups=None)
    answer = commands.run("report", work.folder)
    assert answer.code == 0
    assert "perf_result.json" in answer.err
    data = summary_of(work)["perf_data"]
    assert (data["passed_cases"], data["avg_latency_ms"], data["speedup_vs_torch"]) == (
        3,
        None,
        None,
    )


def test_small_latencies_keep_their_digits(work: Builder, commands: Commands) -> None:
    folder = work.iteration(0)
    report = json.loads((folder / "perf_result.json").read_text("utf-8"))
    report["implementation"]["avg_latency_ms"] = 0.0000345678
    write_json(folder / "perf_result.json", report)
    _, summary = commands.json("report", work.folder)
    assert summary["perf_data"]["avg_latency_ms"] == 0.00003457


def test_a_batch_tells_what_its_summaries_leave_out(tmp_path: Path, commands: Commands) -> None:
    good = Builder(tmp_path / "batch" / "relu" / "triton_ascend_output" / "op_relu_1_1", "relu")
    good.iteration(0)
    commands.run("report", good.folder)
    lying = Builder(tmp_path / "batch" / "gelu", "gelu")
    lying.iteration(0)
    commands.run("report", lying.folder)
    path = lying.folder / "summary.json"
    content = json.loads(path.read_text("utf-8"))
    content["perf_data"] |= {"passed_cases": 50, "total_cases": 50}
    write_json(path, content)
    unfinished = Builder(tmp_path / "batch" / "silu", "silu")
    unfinished.iteration(0)
    broken = Builder(tmp_path / "batch" / "tanh", "tanh")
    broken.iteration(0)
    (broken.folder / "summary.json").write_text("{", encoding="utf-8")

    code, batch = commands.json("batch", tmp_path / "batch")

    assert code == 0
    assert (batch["total"], batch["succeeded"], batch["failed"]) == (4, 1, 3)
    problems = {row["op_name"]: row["problem"] for row in batch["workdirs"]}
    assert problems["relu"] is None
    assert "total_cases 50, the results say 3" in problems["gelu"]
    assert "there is no" in problems["silu"]
    assert "is no JSON" in problems["tanh"]
    assert (tmp_path / "batch" / "batch_report.md").read_text("utf-8").count("❌ 失败") == 3


def test_code_that_was_changed_after_its_verification_is_not_final(
    work: Builder, commands: Commands
) -> None:
    passed = work.iteration(0)
    edited = work.optimisation(0, passed, (9.0, 9.0, 9.0))
    good = work.optimisation(1, passed, (2.0, 2.0, 2.0))
    code = edited / "optimized_code.py"
    code.write_text(code.read_text("utf-8") + "\n# changed\n", encoding="utf-8")
    trimmed = work.optimisation(2, passed, (9.0, 9.0, 9.0))
    (trimmed / "verify" / "softmax_torch.py").write_text("cases = 1\n", encoding="utf-8")
    _, summary = commands.json("report", work.folder)
    assert summary["perf_data"]["speedup_vs_torch"] == 2.0
    final = work.folder / "softmax_generated.py"
    assert final.read_bytes() == (good / "optimized_code.py").read_bytes()
    for folder in (edited, trimmed):
        paths = (passed / "perf_result.json", folder / "optimized_perf_result.json")
        status, found = commands.json("decide", *paths)
        assert (status, found["outcome"], found["reason"]) == (1, "failure", "not_verified")


def test_times_of_other_code_do_not_count(work: Builder, commands: Commands) -> None:
    passed = work.iteration(0)
    folder = work.optimisation(0, passed)
    for path in (passed / "perf_result.json", folder / "optimized_perf_result.json"):
        report = json.loads(path.read_text("utf-8"))
        report["sources"] = {"implementation": "0" * 64}
        write_json(path, report)
    answer = commands.run("report", work.folder)
    assert "was measured with other code" in answer.err
    data = summary_of(work)["perf_data"]
    assert (data["avg_latency_ms"], data["speedup_vs_baseline"]) == (None, None)


def test_a_baseline_that_was_made_slower_helps_nobody(work: Builder, commands: Commands) -> None:
    passed = work.iteration(0, speedups=(3.0, 3.0, 3.0))
    folder = work.optimisation(0, passed, (2.0, 2.0, 2.0))
    path = folder / "baseline_perf_result.json"
    report = json.loads(path.read_text("utf-8"))
    report["speedup_vs_torch"] = 1.0
    write_json(path, report)
    _, summary = commands.json("report", work.folder)
    assert summary["optimized"] is False

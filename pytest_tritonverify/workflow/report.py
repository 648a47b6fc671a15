"""`report.md`: an outcome for people, in the documented sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify import figures
from pytest_tritonverify.workflow import gpu_perf, performance

if TYPE_CHECKING:
    from pytest_tritonverify.workflow.outcome import Outcome
    from pytest_tritonverify.workflow.performance import Performance
    from pytest_tritonverify.workflow.verification import Verification

DEFAULT_ARCH = "ascend910b1"

_ADVICE = (
    "GPU Kernel 模式：`Model` 直接返回预存的 `gpu_output`，framework 延迟不具备实际意义，"
    "以 GPU 参考延迟代替"
)


def text(outcome: Outcome, arch: str | None = None) -> str:
    """Write the report.

    Args:
        outcome: what the work directory has come to.
        arch: the architecture; by default that of the verification's NPU, else `ascend910b1`.
    """
    parts = [
        f"# {outcome.work.op_name}",
        _basics(outcome, arch),
        _generation(outcome),
        _pass_rate(outcome),
    ]
    if outcome.failure is not None:
        parts += [_failure(outcome), _failed_cases(outcome)]
    else:
        parts += [_gpu(outcome), _figures(outcome), _details(outcome), _code(outcome)]
    if outcome.warnings:
        parts.append("\n".join(["## 告警", "", *(f"- {w}" for w in outcome.warnings)]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _basics(outcome: Outcome, arch: str | None) -> str:
    device = outcome.result.section("environment").get("device") if outcome.result else None
    known = device if isinstance(device, dict) else {}
    npu = known.get("npu_name")
    chosen = arch or (npu.lower() if isinstance(npu, str) and npu else DEFAULT_ARCH)
    lines = ["## 基本信息", "", f"- arch：{chosen}", f"- 工作目录：{outcome.work.folder}"]
    where = " ".join(str(known[key]) for key in ("backend", "name") if known.get(key))
    if where:
        lines.append(f"- 验证设备：{where}")
    return "\n".join(lines)


def _generation(outcome: Outcome) -> str:
    work = outcome.work
    lines = [
        "## 生成结果",
        "",
        f"- 状态：{'成功' if outcome.success else '失败'}",
        f"- 迭代次数：Phase 3 {len(work.iterations)}，Phase 4 {len(work.opt_iterations)}",
    ]
    code = outcome.final_code
    if code is not None:
        phase = "Phase 4（optimized_code.py）" if outcome.best else "Phase 3（generated_code.py）"
        lines.append(f"- 最终版本来源：{phase}，{code.relative_to(work.folder)}")
    for one, found in outcome.decisions:
        chosen = "（最终版本）" if one is outcome.best else ""
        lines.append(f"- opt_iter_{one.number}：{found.outcome}{chosen}，{_cell(found.message)}")
    return "\n".join(lines)


def _pass_rate(outcome: Outcome) -> str:
    result = outcome.result
    if result is None:
        return ""
    return "\n".join(
        [
            "## Shape 通过率（以 verify 为准）",
            "",
            f"- passed_cases / total_cases：{result.passed} / {result.total}",
        ]
    )


def _failure(outcome: Outcome) -> str:
    failure = outcome.failure
    assert failure is not None  # noqa: S101 - asked by the caller
    fence = "```"
    while fence in failure.last_error:
        fence += "`"
    return "\n".join(
        [
            "## 失败原因",
            "",
            f"- failure_phase：{failure.phase}",
            f"- failure_reason：{failure.reason}",
            "",
            f"{fence}text",
            failure.last_error,
            fence,
        ]
    )


def _failed_cases(outcome: Outcome) -> str:
    result = outcome.result
    if result is None or result.total == 0:
        return ""
    rows = ["| case_idx | status | shape | error_type |", "|---|---|---|---|"]
    for case_idx in range(1, result.total + 1):
        shape = _cell(figures.inputs_text(result.input_desc(case_idx)))
        status, error_type = result.status(case_idx), _error_type(result, case_idx)
        rows.append(f"| {case_idx} | {status} | {shape} | {error_type} |")
    return "\n".join(["## 性能明细", "", *rows])


def _gpu(outcome: Outcome) -> str:
    gpu = outcome.gpu
    if gpu is None:
        return ""
    lines = ["## GPU 参考性能", ""]
    if gpu.reference_ms is None:
        lines.append(f"- {gpu_perf.NOT_FOUND}")
    else:
        latency = outcome.performance.latency_ms if outcome.performance else None
        lines += [
            f"- GPU 参考延迟：{figures.shown(gpu.reference_ms)} ms",
            f"- Ascend Triton 延迟：{figures.shown(latency)} ms",
            f"- Ascend/GPU 倍数：{figures.shown(gpu.ratio(latency))}",
        ]
    if gpu.stored_output:
        lines.append(f"- {_ADVICE}")
    return "\n".join(lines)


def _figures(outcome: Outcome) -> str:
    final = outcome.performance
    lines = ["## 性能数据", ""]
    if final is None:
        return "\n".join([*lines, "- 未找到 perf_result.json，无性能数据"])
    framework, implementation = total_latencies(final)
    weighted = (
        figures.number(framework / implementation)
        if framework is not None and implementation
        else None
    )
    lines += [
        f"- 几何平均加速比（speedup_vs_torch）：{figures.shown(final.speedup)}",
        f"- 延时加权加速比：{figures.shown(weighted)}",
        _both_sides("总延时", framework, implementation),
        _both_sides("平均延迟", final.framework_ms, final.latency_ms),
    ]
    if outcome.speedup_vs_baseline is not None:
        ratio = figures.shown(outcome.speedup_vs_baseline)
        lines.append(f"- speedup_vs_baseline：{ratio}")
    for name in performance.INDICES:
        if final.indices(name):
            lines.append(f"- {name}：{final.indices(name)}")
    return "\n".join(lines)


def _both_sides(name: str, framework: float | None, implementation: float | None) -> str:
    shown = (figures.shown(value) for value in (framework, implementation))
    return "- {}：framework {} ms，implementation {} ms".format(name, *shown)


def total_latencies(final: Performance) -> tuple[float | None, float | None]:
    """Return both sides' latencies, added up over the cases that both were measured in.

    Their quotient is the latency-weighted speed-up: a case counts by the time that it takes.
    """
    pairs = [
        (shape.framework_ms, shape.implementation_ms)
        for shape in final.shapes.values()
        if shape.measured and shape.framework_ms is not None and shape.implementation_ms is not None
    ]
    if not pairs:
        return None, None
    return sum(f for f, _ in pairs), sum(i for _, i in pairs)


def _details(outcome: Outcome) -> str:
    result, final = outcome.result, outcome.performance
    assert result is not None  # noqa: S101 - without one there is no success
    head = ["case_idx", "status", "shape", "framework (ms)", "implementation (ms)"]
    head += ["speedup_vs_torch", *(["ascend_vs_gpu_ratio"] if outcome.gpu else []), "error_type"]
    rows = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for case_idx in range(1, result.total + 1):
        status = result.status(case_idx)
        shape = final.shapes.get(case_idx) if final else None
        inputs = result.input_desc(case_idx)
        if inputs is None and shape is not None:
            inputs = shape.input_desc
        times = shape if shape and status == "pass" else None
        cells = [
            str(case_idx),
            status,
            _cell(figures.inputs_text(inputs)),
            figures.shown(times.framework_ms if times else None),
            figures.shown(times.implementation_ms if times else None),
            figures.shown(times.speedup if times else None),
        ]
        if outcome.gpu:
            ratio = outcome.gpu.ratio(times.implementation_ms if times else None)
            cells.append(figures.shown(ratio))
        rows.append(f"| {' | '.join([*cells, _error_type(result, case_idx)])} |")
    return "\n".join(["## 性能明细", "", *rows])


def _error_type(result: Verification, case_idx: int) -> str:
    found = (f.error_type for f in result.failures if f.case_idx == case_idx)
    return _cell(next(found, ""))


def _code(outcome: Outcome) -> str:
    return f"## 代码路径\n\n- {outcome.work.final_code.name}"


def _cell(text_: str) -> str:
    """Return a text that stays within one cell of a table."""
    return " ".join(text_.split()).replace("|", "\\|")

"""What a work directory has come to: everything that a report says, before it is put in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_tritonverify import figures, gpu_task
from pytest_tritonverify.workflow import (
    assertion,
    decision,
    explaining,
    files,
    gpu_perf,
    layout,
    performance,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_tritonverify.workflow.assertion import Assertion
    from pytest_tritonverify.workflow.decision import Decision
    from pytest_tritonverify.workflow.layout import Round, WorkDir
    from pytest_tritonverify.workflow.performance import Performance
    from pytest_tritonverify.workflow.verification import Verification

GENERATION: Literal["generation"] = "generation"
MAX_REACHED = "达到最大迭代次数"

FailurePhase = Literal["generation", "phase3_gate_violation"]


@dataclass(frozen=True)
class Failure:
    """Why there is no kernel.

    Attributes:
        phase, reason, last_error: as `summary.json` names them.
    """

    phase: FailurePhase
    reason: str
    last_error: str


@dataclass(frozen=True)
class Gpu:
    """What is known of GPU-kernel mode.

    Attributes:
        reference_ms: the GPU's time in milliseconds; None where it is not known.
        stored_output: the reference returns what the GPU returned, and computes nothing.
    """

    reference_ms: float | None
    stored_output: bool

    def ratio(self, latency_ms: float | None) -> float | None:
        """Return the documented `ascend_vs_gpu_ratio` of a latency."""
        if latency_ms is None or self.reference_ms is None:
            return None
        return figures.number(latency_ms / self.reference_ms)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything about a work directory.

    Attributes:
        work: the work directory.
        failure: why there is no kernel; None where there is one.
        round: the round that Phase 3 has ended with.
        result: its verification: all counts and statuses are from here.
        best: the round of Phase 4 whose code is the final one; None where Phase 3's is.
        decisions: one for each round of Phase 4.
        performance: of the final code: all times are from here. None where there is none.
        baseline: of Phase 3's code.
        gpu: GPU-kernel mode; None otherwise.
        warnings: sentences.
    """

    work: WorkDir
    failure: Failure | None
    round: Round | None
    result: Verification | None
    best: Round | None = None
    decisions: tuple[tuple[Round, Decision], ...] = ()
    performance: Performance | None = None
    baseline: Performance | None = None
    gpu: Gpu | None = None
    warnings: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether there is a kernel that has passed."""
        return self.failure is None

    @property
    def final_code(self) -> Path | None:
        """The file with the final code, in the round that has made it."""
        if self.failure is not None or self.round is None:
            return None
        return (self.best or self.round).code

    @property
    def speedup_vs_baseline(self) -> float | None:
        """The final code's geometric mean over Phase 3's, where Phase 4 has improved it."""
        for one, found in self.decisions:
            if one is self.best:
                return found.speedup_vs_baseline
        return None


def of(work: WorkDir, wanted: int | None = None, gpu_perf_csv: Path | None = None) -> Outcome:
    """Find out what a work directory has come to.

    Args:
        work: the work directory.
        wanted: the number of the round that Phase 3 has ended with, where it was recorded.
        gpu_perf_csv: the GPU's times, where the user names them.

    Raises:
        files.FileError: there is no round of that number, or the named times can't be used.
    """
    entrance = assertion.examine(work, wanted)
    failure = _failure(work, entrance)
    one = entrance.round
    if failure is not None or one is None:
        return Outcome(work=work, failure=failure, round=one, result=entrance.result)
    warnings = list(entrance.warnings)
    decisions = [(r, decision.decide_round(work, r, one)) for r in work.opt_iterations]
    if not decisions:
        warnings.append("there is no round of Phase 4, which is not to be left out")
    best = _best(decisions)
    baseline = _performance(one, warnings)
    final = _performance(best, warnings) if best else baseline
    gpu = _gpu(work, one, final, gpu_perf_csv)
    return Outcome(
        work=work,
        failure=None,
        round=one,
        result=entrance.result,
        best=best,
        decisions=tuple(decisions),
        performance=final,
        baseline=baseline,
        gpu=gpu,
        warnings=tuple(warnings),
    )


def _failure(work: WorkDir, entrance: Assertion) -> Failure | None:
    """Say why there is no kernel.

    A workflow copies Phase 3's code only when it takes it for passed, so a copy whose result has
    not passed is a gate that was skipped; without a copy Phase 3 has come to nothing.
    """
    if entrance.passed:
        return None
    if work.claims_phase_3:
        return Failure(
            assertion.VIOLATION, entrance.failure_reason or "", entrance.last_error() or ""
        )
    rounds = _rounds(work.iterations)
    if not rounds:
        return Failure(GENERATION, "没有可用的验证结果", entrance.objections[0].message)
    if rounds[-1].passed:
        # Its counts are those of a pass, and something else speaks against it.
        statement = entrance.objections[0].statement
        return Failure(GENERATION, f"验证结果不可用：{statement}", entrance.last_error() or "")
    explained = explaining.explain(rounds)
    return Failure(GENERATION, _reason(len(work.iterations), explained), rounds[-1].error)


def _rounds(iterations: Sequence[Round]) -> list[explaining.Round]:
    found = []
    for one in iterations:
        try:
            found.append(explaining.of_iteration(one))
        except files.FileError:
            # Nothing was verified in it, and its code is no fake: it says nothing.
            continue
    return found


def _reason(count: int, explained: explaining.Explanation) -> str:
    kind = explained.kind
    if kind is not None and kind.letter == "B":
        return f"B 类：环境/基础设施错误 ({kind.subtype})"
    if kind is not None and kind.letter == "C":
        return f"C 类：重复失败，同一 A 类子类型连续 ≥ 3 次 ({kind.subtype})"
    if count >= layout.MAX_ITERATIONS:
        return MAX_REACHED
    return f"第 {count} 轮未通过验证，未达到最大迭代次数"


def _best(decisions: Sequence[tuple[Round, Decision]]) -> Round | None:
    """Return the round with the greatest geometric mean among those that improve on Phase 3.

    Of equal ones the first: a later one is no improvement on it.
    """
    best, speedup = None, 0.0
    for one, found in decisions:
        if found.improvement and found.optimized is not None and found.optimized > speedup:
            best, speedup = one, found.optimized
    return best


def _performance(one: Round, warnings: list[str]) -> Performance | None:
    try:
        found = performance.read(one.perf_result)
    except files.FileError as error:
        warnings.append(str(error))
        return None
    if found.is_of_other_code(one.implementation):
        warnings.append(f"{one.perf_result} was measured with other code: its times don't count")
        return None
    disagreement = found.disagreement()
    if disagreement:
        warnings.append(disagreement)
    return found


def _gpu(
    work: WorkDir, one: Round, final: Performance | None, gpu_perf_csv: Path | None
) -> Gpu | None:
    """Return what is known of GPU-kernel mode: by the task, its data, or what was named."""
    tasks = [path for path in (work.task, one.task) if path.is_file()]
    stored = any(map(gpu_task.returns_stored_output, tasks))
    if not (stored or work.stored_data.is_file() or gpu_perf_csv):
        return None
    if gpu_perf_csv is not None:
        return Gpu(gpu_perf.read(gpu_perf_csv, work.op_name).milliseconds, stored)
    named = next((ms for ms in map(gpu_task.reference_of, tasks) if ms is not None), None)
    return Gpu(named or (final.given_framework_ms if final else None), stored)

"""Whether an optimisation is an improvement: the documented comparison of two geometric means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.workflow import figures, files, performance, verification

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.workflow.layout import Round
    from pytest_tritonverify.workflow.performance import Performance

Outcome = Literal["improvement", "none", "failure"]

ANALYSE = "4.5"
CONTINUE = "continue"

_NOT_COMPARED = "null_speedup"
_OTHER_CASES = "other_cases"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision, and what it rests on.

    Attributes:
        outcome: `improvement`: the geometric mean is strictly greater. `none`: it is not, or the
            two can't be compared. `failure`: there is nothing to compare, or nothing that may be.
        reason: a code for programs.
        message: the reason for people.
        baseline, optimized: the two geometric means; None wherever no figure may be written.
        warnings: what else is worth knowing, in sentences.
    """

    outcome: Outcome
    reason: str
    message: str
    baseline: float | None = None
    optimized: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def improvement(self) -> bool:
        """Whether the optimised code becomes the best one."""
        return self.outcome == "improvement"

    @property
    def speedup_vs_baseline(self) -> float | None:
        """The optimised geometric mean over the baseline's."""
        if self.baseline is None or self.optimized is None:
            return None
        return figures.number(self.optimized / self.baseline)

    @property
    def next_step(self) -> str:
        """The documented step that follows: `4.5` (analysis) or `continue` (the next round)."""
        analysed = self.outcome == "failure" or self.reason in (_NOT_COMPARED, _OTHER_CASES)
        return ANALYSE if analysed else CONTINUE

    def to_json(self) -> dict[str, Any]:
        """Return the decision as builtins; figures are not rounded."""
        return {
            "outcome": self.outcome,
            "improvement": self.improvement,
            "reason": self.reason,
            "message": self.message,
            "baseline_speedup": self.baseline,
            "optimized_speedup": self.optimized,
            "speedup_vs_baseline": self.speedup_vs_baseline,
            "next": self.next_step,
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        """Return the decision for people."""
        ratio = self.speedup_vs_baseline
        figure = "" if ratio is None else f", speedup_vs_baseline = {figures.shown(ratio)}"
        lines = [f"{self.outcome}: {self.message}{figure}"]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def decide_files(baseline: Path, optimized: Path) -> Decision:
    """Decide by two reports. The verification beside the optimised one must have passed.

    Args:
        baseline: Phase 3's report, under whatever name it was copied.
        optimized: the optimised code's report.
    """
    verify = optimized.parent / "verify" / "verify_result_optimized.json"
    return _decide(baseline, optimized, verify, needed=False)


def decide_round(one: Round, baseline: Path) -> Decision:
    """Decide about a round of Phase 4 in a work directory.

    Args:
        one: the round.
        baseline: Phase 3's report, for a round that keeps no copy of it.
    """
    copied = one.baseline_perf_result
    return _decide(
        copied if copied.exists() else baseline, one.perf_result, one.verify_result, needed=True
    )


def _decide(baseline: Path, optimized: Path, verify: Path, *, needed: bool) -> Decision:
    warnings = []
    if needed or verify.exists():
        problem = _unverified(verify)
        if problem is not None:
            return Decision(outcome="failure", reason="not_verified", message=problem)
    else:
        warnings.append(
            f"there is no {verify}: that the optimised code was verified can't be seen here"
        )
    try:
        before = performance.read(baseline, "copy Phase 3's perf_result.json there")
    except files.FileError as error:
        return Decision(outcome="failure", reason="no_baseline", message=str(error))
    try:
        after = performance.read(optimized)
    except files.FileError as error:
        return Decision(outcome="failure", reason="no_optimized", message=str(error))
    decision = compare(before, after)
    warnings += [text for one in (before, after) if (text := one.disagreement())]
    return Decision(**{**vars(decision), "warnings": tuple(warnings)})


def _unverified(verify: Path) -> str | None:
    try:
        result = verification.read(verify)
    except files.FileError as error:
        return str(error)
    if not result.all_passed:
        return (
            f"{verify}: passed_cases({result.passed}) of total_cases({result.total}): only code "
            "that has passed every case may be measured"
        )
    problem = result.contradiction()
    return None if problem is None else f"{verify} contradicts itself: {problem}"


def compare(baseline: Performance, optimized: Performance) -> Decision:
    """Compare two reports by their geometric means."""
    if (
        baseline.op_name is not None
        and optimized.op_name is not None
        and baseline.op_name != optimized.op_name
    ):
        text = f"one report is of `{baseline.op_name}`, the other of `{optimized.op_name}`"
        return Decision(outcome="none", reason=_OTHER_CASES, message=text)
    for one, name in ((baseline, "baseline"), (optimized, "optimised code")):
        if one.speedup is None:
            text = f"the {name} has no geometric mean: speedup_vs_torch of {one.path} is null"
            return Decision(outcome="none", reason=_NOT_COMPARED, message=text)
    difference = _other_cases(baseline, optimized)
    if difference is not None:
        return Decision(outcome="none", reason=_OTHER_CASES, message=difference)
    assert baseline.speedup is not None  # noqa: S101 - asked above
    assert optimized.speedup is not None  # noqa: S101 - asked above
    before, after = figures.shown(baseline.speedup), figures.shown(optimized.speedup)
    if optimized.speedup > baseline.speedup:
        outcome: Outcome = "improvement"
        reason, text = "greater", f"{after} is greater than the baseline's {before}"
    elif optimized.speedup == baseline.speedup:
        outcome, reason, text = "none", "equal", f"{after} equals the baseline's"
    else:
        outcome, reason = "none", "less"
        text = f"{after} is less than the baseline's {before}"
    return Decision(
        outcome=outcome,
        reason=reason,
        message=text,
        baseline=baseline.speedup,
        optimized=optimized.speedup,
    )


def _other_cases(baseline: Performance, optimized: Performance) -> str | None:
    """Say in what the cases behind the two means differ: such means can't be compared."""
    for kind, before, after in (
        ("measured", set(baseline.shapes), set(optimized.shapes)),
        ("in the geometric mean", set(baseline.in_mean), set(optimized.in_mean)),
    ):
        only = [(before - after, "baseline"), (after - before, "optimised code")]
        for numbers, name in only:
            if numbers:
                listed = figures.numbers_text(numbers)
                return f"the cases differ: case {listed} is {kind} for the {name} only"
    for number, inputs in baseline.in_mean.items():
        other = optimized.in_mean[number]
        if inputs is not None and other is not None and inputs != other:
            return f"the cases differ: case {number} has other inputs in the two reports"
    return None

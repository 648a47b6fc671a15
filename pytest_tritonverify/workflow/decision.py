"""Whether an optimisation is an improvement: the documented comparison of two geometric means."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify import figures, plain_files
from pytest_tritonverify.workflow import files, layout, performance, soundness, verification

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_tritonverify.workflow.layout import Round, WorkDir
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
    """Decide by two reports. Where a verification lies beside the optimised one it must be a pass.

    Args:
        baseline: Phase 3's report, under whatever name it was copied.
        optimized: the optimised code's report.
    """
    one = _round_of(optimized)
    if one is None:
        verify = optimized.parent / "verify" / "verify_result_optimized.json"
        text = f"there is no {verify}: that the optimised code was verified can't be seen here"
        return _decide(baseline, optimized, None, [text])
    return _decide(baseline, optimized, one, [], [(one.code, one.implementation, "implementation")])


def _round_of(optimized: Path) -> Round | None:
    """Return the round of Phase 4 to which a report belongs; None where it lies elsewhere."""
    folder = optimized.parent
    if not (folder / "verify" / "verify_result_optimized.json").exists():
        return None
    suffix = "_triton_optimized"
    names = [path.stem.removesuffix(suffix) for path in folder.glob(f"verify/*{suffix}.py")]
    # Without the code its verification still tells whether it has passed.
    return layout.Round(0, folder, names[0] if len(names) == 1 else "", optimizing=True)


def decide_round(work: WorkDir, one: Round, phase_3: Round) -> Decision:
    """Decide about a round of Phase 4 in a work directory.

    Phase 3's own report is the baseline. The round's copy of it counts where that is gone.

    Args:
        work: the work directory.
        one: the round.
        phase_3: the round that Phase 3 has ended with.
    """
    copied, original = one.baseline_perf_result, phase_3.perf_result
    warnings = []
    digests = [plain_files.digest(path) for path in (copied, original)]
    if None not in digests and digests[0] != digests[1]:
        warnings.append(f"{copied} is no copy of {original}, which is taken for the baseline")
    baseline = original if digests[1] is not None or digests[0] is None else copied
    copies = [(one.code, one.implementation, "implementation"), (work.task, one.task, "task")]
    return _decide(baseline, one.perf_result, one, warnings, copies)


def _decide(
    baseline: Path,
    optimized: Path,
    one: Round | None,
    warnings: list[str],
    copies: Sequence[tuple[Path, Path, str]] = (),
) -> Decision:
    problem = None if one is None else _unverified(one, copies)
    if problem is not None:
        return Decision(outcome="failure", reason="not_verified", message=problem)
    try:
        before = performance.read(baseline, "copy Phase 3's perf_result.json there")
    except files.FileError as error:
        return Decision(outcome="failure", reason="no_baseline", message=str(error))
    try:
        after = performance.read(optimized)
    except files.FileError as error:
        return Decision(outcome="failure", reason="no_optimized", message=str(error))
    if one is not None and after.is_of_other_code(one.implementation):
        text = f"{optimized} was measured with other code than {one.implementation}"
        return Decision(outcome="failure", reason="not_verified", message=text)
    decision = compare(before, after)
    disagreements = [found.disagreement() for found in (before, after)]
    warnings += [found for found in disagreements if found is not None]
    return dataclasses.replace(decision, warnings=tuple(warnings))


def _unverified(one: Round, copies: Sequence[tuple[Path, Path, str]]) -> str | None:
    """Say why a round's code may not be measured, None where it may."""
    if one.op_name:
        objections = soundness.examine(one, copies).objections
        return objections[0].message if objections else None
    try:
        result = verification.read(one.verify_result)
    except files.FileError as error:
        return str(error)
    if not result.all_passed:
        return f"{result.path}: passed_cases({result.passed}) of total_cases({result.total})"
    problem = result.contradiction()
    return None if problem is None else f"{result.path} contradicts itself: {problem}"


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

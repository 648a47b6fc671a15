"""The assertion at the entrance of Phase 4: Phase 3 has passed, with these files, here.

A workflow that gets there without has skipped a gate. It must neither optimise nor go back, since
it would only misjudge the same result again: the task ends.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.workflow import explaining, files, layout, soundness
from pytest_tritonverify.workflow.soundness import Objection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_tritonverify.workflow.layout import Round, WorkDir
    from pytest_tritonverify.workflow.verification import Verification

VIOLATION: Literal["phase3_gate_violation"] = "phase3_gate_violation"

_STATEMENT = "Phase 3 verify_result.json {reason}，但流程已进入 Phase 4"


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """What came of the assertion.

    Attributes:
        work: the work directory.
        round: the round that Phase 3 has ended with; None where there is none.
        result: its result; None where it can't be read.
        objections: why it fails, the documented reason first.
        warnings: what could not be checked, in sentences.
    """

    work: WorkDir
    round: Round | None
    result: Verification | None
    objections: tuple[Objection, ...]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether Phase 4 may begin."""
        return not self.objections

    @property
    def failure_reason(self) -> str | None:
        """The documented sentence; None where the assertion holds."""
        if self.passed:
            return None
        return _STATEMENT.format(reason=self.objections[0].statement)

    def last_error(self) -> str | None:
        """Return a summary of the failures; None where the assertion holds."""
        if self.passed:
            return None
        if self.round is not None and self.result is not None and not self.result.all_passed:
            return explaining.of_iteration(self.round).error
        return "; ".join(objection.message for objection in self.objections)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as builtins."""
        return {
            "passed": self.passed,
            "phase3_last_iter": self.round.number if self.round else None,
            "passed_cases": self.result.passed if self.result else None,
            "total_cases": self.result.total if self.result else None,
            "failure_phase": None if self.passed else VIOLATION,
            "failure_reason": self.failure_reason,
            "last_error": self.last_error(),
            "objections": [{"code": o.code, "message": o.message} for o in self.objections],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        """Return the outcome for people."""
        where = f"iter_{self.round.number}" if self.round else "output"
        if self.result is not None and self.passed:
            lines = [
                f"{where}: passed_cases == total_cases == {self.result.total}: Phase 4 may begin"
            ]
        else:
            lines = [f"{VIOLATION}: {self.failure_reason}"]
            lines += [f"  {objection.message}" for objection in self.objections]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def examine(
    work: WorkDir, wanted: int | None = None, present: Mapping[str, Any] | None = None
) -> Assertion:
    """Make the assertion.

    Args:
        work: the work directory.
        wanted: the number of the round that Phase 3 has ended with, where it was recorded.
        present: the environment's sections as they are now; None where nobody looked.

    Raises:
        files.FileError: there is no round of that number.
    """
    one = work.phase3_last_iter(wanted)
    if one is None:
        place = work.folder / "output" / "iter_<N>"
        text = f"there is no {place}: Phase 3 has left no round"
        objection = Objection("no_round", text, "不存在")
        return Assertion(work=work, round=None, result=None, objections=(objection,))
    copies = [
        (one.code, one.implementation, "implementation"),
        (work.generated, one.implementation, "implementation"),
        (work.task, one.task, "task"),
    ]
    found = soundness.examine(one, copies, present)
    return Assertion(
        work=work,
        round=one,
        result=found.result,
        objections=found.objections,
        warnings=found.warnings,
    )


def with_warning(outcome: Assertion, warning: str) -> Assertion:
    """Return an outcome with one warning more."""
    return dataclasses.replace(outcome, warnings=(*outcome.warnings, warning))


def violation_summary(outcome: Assertion) -> dict[str, Any]:
    """Return the documented `summary.json` of a violated gate."""
    return {
        "success": False,
        "gen_iterations": len(outcome.work.iterations),
        "failure_phase": VIOLATION,
        "failure_reason": outcome.failure_reason,
        "last_error": outcome.last_error(),
    }


def write_violation(outcome: Assertion) -> Path:
    """Write `summary.json` for a violated gate.

    Returns:
        Its path.

    Raises:
        files.FileError: it can't be written.
    """
    path = outcome.work.folder / layout.SUMMARY
    files.write_object(path, violation_summary(outcome))
    return path

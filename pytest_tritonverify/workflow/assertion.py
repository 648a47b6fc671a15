"""The assertion at the entrance of Phase 4: Phase 3 has passed, with these files, here.

A workflow that gets there without has skipped a gate. It must neither optimise nor go back, since
it would only misjudge the same result again: the task ends.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.execution import loading
from pytest_tritonverify.results import result_file
from pytest_tritonverify.workflow import explaining, files, layout, verification

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_tritonverify.workflow.layout import Round, WorkDir
    from pytest_tritonverify.workflow.verification import Verification

VIOLATION: Literal["phase3_gate_violation"] = "phase3_gate_violation"

_STATEMENT = "Phase 3 verify_result.json {reason}，但流程已进入 Phase 4"
_FINGERPRINT = (("triton", "key_sha256"), ("cann", "info_sha256"))


@dataclass(frozen=True)
class Objection:
    """Why Phase 4 may not begin.

    Attributes:
        code: for programs.
        message: for people.
        statement: what `failure_reason` says of it.
    """

    code: str
    message: str
    statement: str


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
        return _refused(work, None, Objection("no_round", text, "不存在"))
    try:
        result = verification.read(one.verify_result)
    except files.FileError as error:
        statement = "不存在" if error.missing else "读取失败"
        return _refused(work, one, Objection("unreadable", str(error), statement))
    counts = _counts(result)
    if counts is not None:
        return Assertion(work=work, round=one, result=result, objections=(counts,))
    objections = _contents(result, work)
    warnings: list[str] = []
    for more in (_sources(result, one), _copies(work, one), _environment(result, present)):
        objections += more[0]
        warnings += more[1]
    return Assertion(
        work=work,
        round=one,
        result=result,
        objections=tuple(objections),
        warnings=tuple(warnings),
    )


def with_warning(outcome: Assertion, warning: str) -> Assertion:
    """Return an outcome with one warning more."""
    return dataclasses.replace(outcome, warnings=(*outcome.warnings, warning))


def _refused(work: WorkDir, one: Round | None, objection: Objection) -> Assertion:
    return Assertion(work=work, round=one, result=None, objections=(objection,))


def _counts(result: Verification) -> Objection | None:
    if result.total == 0:
        return Objection("no_cases", f"{result.path}: total_cases is 0", "total_cases == 0")
    if result.passed < result.total:
        statement = f"passed_cases({result.passed}) < total_cases({result.total})"
        return Objection("not_all_passed", f"{result.path}: {statement}", statement)
    if result.passed > result.total:
        statement = f"passed_cases({result.passed}) > total_cases({result.total})"
        return Objection("contradiction", f"{result.path}: {statement}", statement)
    return None


def _contents(result: Verification, work: WorkDir) -> list[Objection]:
    """Ask whether a result whose counts are right is one that can be relied on."""
    found = []
    problem = result.contradiction()
    if problem is not None:
        text = f"{result.path} contradicts itself: {problem}"
        found.append(Objection("contradiction", text, "文件内容自相矛盾"))
    if result.op_name is not None and result.op_name != work.op_name:
        text = f"{result.path} is the result of `{result.op_name}`, not of `{work.op_name}`"
        found.append(Objection("other_operator", text, "文件内容自相矛盾"))
    if result.content.get("in_process") is True:
        text = f"{result.path} is of a run with --verify-in-process, which isolates nothing"
        found.append(Objection("not_isolated", text, "未隔离运行"))
    checks = result.section("degeneration")
    for name, check in checks.items():
        if isinstance(check, dict) and check.get("status") == "failed":
            text = f"{result.path}: the check `{name}` has failed"
            found.append(Objection("degenerate", text, "退化检查未通过"))
    return found


Found = tuple[list[Objection], list[str]]


def _sources(result: Verification, one: Round) -> Found:
    """Ask whether what was verified is what lies there."""
    recorded = result.content.get("sources")
    if not isinstance(recorded, dict):
        return _degeneration(one, result), [
            f"{result.path} names no sources: whether it is of these files can't be told"
        ]
    places = {
        "task": one.task,
        "data": loading.data_file(one.task, one.op_name),
        "implementation": one.implementation,
    }
    found = []
    for role, path in places.items():
        if recorded.get(role) != result_file.digest(path):
            what = path or f"the data file of {one.task}"
            text = f"{what} is not the {role} that was verified: its SHA-256 has changed"
            found.append(Objection("stale", text, f"与 {role} 不符"))
    return found, []


def _degeneration(one: Round, result: Verification) -> list[Objection]:
    """Make the static check of code whose result doesn't tell of one."""
    if result.section("degeneration") or not one.implementation.is_file():
        return []
    from pytest_tritonverify.degeneration.check import check_source

    non_compute = result.section("environment").get("cmdline")
    given = isinstance(non_compute, dict) and non_compute.get("non_compute") is True
    reference = one.task.read_bytes() if one.task.is_file() else None
    report = check_source(
        one.implementation.read_bytes(),
        filename=one.implementation.name,
        non_compute=given,
        reference=reference,
    )
    if report.passed:
        return []
    text = f"{one.implementation}: {report.to_text(notes=False).partition(chr(10))[0]}"
    return [Objection("degenerate", text, "退化检查未通过")]


def _copies(work: WorkDir, one: Round) -> Found:
    """Ask whether the copies that the workflow makes are what was verified."""
    found, warnings = [], []
    copies = (
        (one.code, one.implementation, "implementation"),
        (work.generated, one.implementation, "implementation"),
        (work.task, one.task, "task"),
    )
    for copy, verified, role in copies:
        there, here = result_file.digest(verified), result_file.digest(copy)
        if here is None:
            warnings.append(f"there is no {copy}: it can't be compared with what was verified")
        elif there is not None and there != here:
            text = f"{copy} is not what was verified as {verified}"
            found.append(Objection("other_file", text, f"与 {role} 不符"))
    return found, warnings


def _environment(result: Verification, present: Mapping[str, Any] | None) -> Found:
    """Ask whether the environment is the one of the verification: otherwise its result is void."""
    if present is None:
        return [], []
    recorded = result.section("environment")
    found, warnings = [], []
    for section, key in _FINGERPRINT:
        then, now = recorded.get(section), present.get(section)
        if not isinstance(then, dict) or not isinstance(now, dict):
            warnings.append(f"`environment.{section}.{key}` is not known on both sides")
        elif then.get(key) != now.get(key):
            text = (
                f"`environment.{section}.{key}` was {then.get(key)!s:.12} and is "
                f"{now.get(key)!s:.12}: a result holds for one installation alone"
            )
            found.append(Objection("other_environment", text, "环境指纹不一致"))
    return found, warnings


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

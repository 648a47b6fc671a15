"""Whether the result of a round can be relied on: what it says, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import plain_files
from pytest_tritonverify.execution import loading
from pytest_tritonverify.results import reliance
from pytest_tritonverify.results.reliance import Refusal
from pytest_tritonverify.workflow import files, verification

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.degeneration.report import Report
    from pytest_tritonverify.workflow.layout import Round
    from pytest_tritonverify.workflow.verification import Verification


@dataclass(frozen=True)
class Objection:
    """Why a result can't be relied on, or is no pass.

    Attributes:
        code: for programs.
        message: for people.
        statement: what `failure_reason` says of it.
    """

    code: str
    message: str
    statement: str


@dataclass(frozen=True)
class Standing:
    """How a round's verification stands.

    Attributes:
        result: what it says; None where it can't be read.
        objections: why it is not a pass of these files, the documented reason first.
        warnings: what could not be checked, in sentences.
    """

    result: Verification | None
    objections: tuple[Objection, ...]
    warnings: tuple[str, ...] = ()


def examine(
    one: Round,
    copies: Sequence[tuple[Path, Path, str]] = (),
    present: Mapping[str, Any] | None = None,
) -> Standing:
    """Ask whether a round has passed, with the files that lie there.

    Args:
        one: the round.
        copies: files that must be copies of verified ones: the copy, the other, and its role.
        present: the environment's sections as they are now; None where nobody looked.
    """
    try:
        result = verification.read(one.verify_result)
    except files.FileError as error:
        statement = "不存在" if error.missing else "读取失败"
        return Standing(None, (Objection("unreadable", str(error), statement),))
    now = _now(one, present)
    for rule in reliance.BASIC:
        finding = rule(result.content, now)
        if isinstance(finding, Refusal):
            return Standing(result, (_objection(result, finding),))
    objections, warnings = [], []
    for rule in reliance.FURTHER:
        if rule is reliance.same_environment and present is None:
            continue
        finding = rule(result.content, now)
        if isinstance(finding, Refusal):
            objections.append(_objection(result, finding))
        else:
            warnings += [f"{result.path}: {text}" for text in finding]
    for found in _copied(copies):
        if isinstance(found, Objection):
            objections.append(found)
        else:
            warnings.append(found)
    return Standing(result, tuple(objections), tuple(warnings))


def _now(one: Round, present: Mapping[str, Any] | None) -> reliance.Now:
    """Return what is there of a round. Whatever policy it was verified under, the default holds."""

    def check(non_compute: bool) -> Report:  # noqa: FBT001 - the form of `Now.check`
        # Not before it is needed: most results have been checked.
        from pytest_tritonverify.degeneration.check import check_source

        return check_source(
            one.implementation.read_bytes(),
            filename=one.implementation.name,
            non_compute=non_compute,
            reference=one.task.read_bytes() if one.task.is_file() else None,
        )

    return reliance.Now(
        op_name=one.op_name,
        sources={
            "task": plain_files.digest(one.task),
            "data": plain_files.digest(loading.data_file(one.task, one.op_name)),
            "implementation": plain_files.digest(one.implementation),
        },
        environment=present,
        check=check,
    )


def _objection(result: Verification, refusal: Refusal) -> Objection:
    statement, told = refusal.situation, refusal.detail
    if result.passed != result.total:
        relation = "<" if result.passed < result.total else ">"
        statement = f"passed_cases({result.passed}) {relation} total_cases({result.total})"
        told = statement
    return Objection(refusal.code, f"{result.path}: {told}", statement)


def _copied(copies: Sequence[tuple[Path, Path, str]]) -> Iterator[Objection | str]:
    """Yield which of the workflow's copies are not what was verified, or can't be compared."""
    for copy, verified, role in copies:
        there, here = plain_files.digest(verified), plain_files.digest(copy)
        if here is None:
            yield f"there is no {copy}: it can't be compared with what was verified"
        elif there is not None and there != here:
            text = f"{copy} is not what was verified as {verified}"
            yield Objection("other_file", text, f"与 {role} 不符")

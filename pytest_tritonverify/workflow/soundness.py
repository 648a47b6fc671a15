"""Whether the result of a round can be relied on: what it says, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import loading
from pytest_tritonverify.results import result_file
from pytest_tritonverify.workflow import files, verification

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.workflow.layout import Round
    from pytest_tritonverify.workflow.verification import Verification

_FINGERPRINT = (("triton", "key_sha256"), ("cann", "info_sha256"))


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
    counts = _counts(result)
    if counts is not None:
        return Standing(result, (counts,))
    objections = _contents(result, one.op_name)
    warnings: list[str] = []
    for more in (
        _sources(result, one),
        _checks(result, one),
        _copied(copies),
        _environment(result, present),
    ):
        objections += more[0]
        warnings += more[1]
    return Standing(result, tuple(objections), tuple(warnings))


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


def _contents(result: Verification, op_name: str) -> list[Objection]:
    """Ask whether a result whose counts are right is one that can be relied on."""
    found = []
    problem = result.contradiction()
    if problem is not None:
        text = f"{result.path} contradicts itself: {problem}"
        found.append(Objection("contradiction", text, "文件内容自相矛盾"))
    if result.op_name is not None and result.op_name != op_name:
        text = f"{result.path} is the result of `{result.op_name}`, not of `{op_name}`"
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
        return [], [f"{result.path} names no sources: whether it is of these files can't be told"]
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


def _checks(result: Verification, one: Round) -> Found:
    """Ask whether kernels do the work: a milder policy than the default settles nothing."""
    found, warnings = [], []
    checks = result.section("degeneration")
    static, dynamic = (
        check if isinstance(check, dict) else {}
        for check in (checks.get("degeneration"), checks.get("execution"))
    )
    settled = static.get("status") == "passed" and static.get("policy") == "strict"
    if not settled and static.get("status") != "failed":
        found += _degeneration(one, result)
    if dynamic.get("status") == "warned":
        first = str(dynamic.get("message") or "").partition("\n")[0]
        text = f"{result.path}: the check at run time has failed: {first:.300}"
        found.append(Objection("degenerate", text, "退化检查未通过"))
    elif dynamic.get("status") not in ("passed", "failed"):
        warnings.append(f"{result.path}: the check at run time was not made")
    return found, warnings


def _degeneration(one: Round, result: Verification) -> list[Objection]:
    """Make the static check of code whose result doesn't tell of one."""
    if not one.implementation.is_file():
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


def _copied(copies: Sequence[tuple[Path, Path, str]]) -> Found:
    """Ask whether the copies that the workflow makes are what was verified."""
    found, warnings = [], []
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

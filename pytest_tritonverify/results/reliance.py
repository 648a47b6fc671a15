"""Whether a verification's result is a pass that holds for what is there now.

Rules, one function each, for the benchmark's gate and for the workflow's. They are asked in order:
those that follow the first three take for granted what these have found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import plain_files
from pytest_tritonverify.results import result_file
from pytest_tritonverify.results.records import fallback_message

if TYPE_CHECKING:
    from typing import TypeGuard

    from pytest_tritonverify.degeneration.report import Report
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.settings import Settings

ROLES = {"task": "the task", "data": "the task's data file", "implementation": "the implementation"}

NO_CASES = "total_cases == 0"
NOT_ALL = "passed_cases < total_cases"
MALFORMED = "文件读取失败"
CONTRADICTORY = "文件内容自相矛盾"
STALE = "验证结果已过期"
NOT_ISOLATED = "verify 未隔离运行"
DEGENERATE = "退化检查未通过"

_AGAIN = "verify the pair again"


@dataclass(frozen=True)
class Refusal:
    """Why a result can't be relied on, or is no pass.

    Attributes:
        code: for programs.
        situation: in a few words, the documented ones where there are some.
        detail: for people; a sentence without its full stop.
    """

    code: str
    situation: str
    detail: str


Finding = Refusal | list[str]
"""A reason not to rely on a result, or warnings."""


def _no_report(non_compute: bool) -> Report:  # noqa: FBT001 - the form of `Now.check`
    del non_compute
    raise OSError("nothing was given to check")


@dataclass(frozen=True, kw_only=True)
class Now:
    """What is there at present, to be compared with what a result says.

    Attributes:
        op_name: the operator.
        sources: sha256 by role: task, data, implementation.
        environment: sections as in a result; None where they can't be had.
        degeneration: policy of the static check.
        execution: policy of the check at run time.
        check: makes the static check of the implementation, told whether its task only moves data.
            It raises OSError where a file can't be read.
    """

    op_name: str
    sources: Mapping[str, str | None]
    environment: Mapping[str, Any] | None = None
    degeneration: str = "strict"
    execution: str = "fail"
    check: Callable[[bool], Report] = field(default=_no_report)


def present(pair: Pair, settings: Settings, environment: Mapping[str, Any] | None) -> Now:
    """Return what is there of a pair.

    Args:
        pair: the pair.
        settings: the session's settings.
        environment: sections as in a result; None where they can't be had.
    """

    def check(non_compute: bool) -> Report:  # noqa: FBT001 - as above
        # Not before it is needed: most results have been checked.
        from pytest_tritonverify.degeneration.check import check_source

        return check_source(
            plain_files.read(pair.implementation),
            filename=pair.implementation.name,
            non_compute=non_compute or settings.non_compute,
            reference=plain_files.read(pair.task),
            policy="partial" if settings.degeneration == "partial" else "strict",
        )

    return Now(
        op_name=pair.op,
        sources=result_file.sources_of(pair),
        environment=environment,
        degeneration=settings.degeneration,
        execution=settings.execution,
        check=check,
    )


def is_count(value: object) -> TypeGuard[int]:
    """Say whether a value is a number of cases: True and 1.0 are not, to JSON."""
    return type(value) is int and value >= 0


def _form(content: Any, now: Now) -> Finding:
    if not isinstance(content, dict):
        return Refusal("malformed", MALFORMED, f"it holds no JSON object; {_AGAIN}")
    for name in ("total_cases", "passed_cases", "failed_cases"):
        # Files of older programs may lack the third one, which follows from the others.
        if name not in content and name == "failed_cases":
            continue
        if not is_count(content.get(name)):
            found = f"{content[name]!r:.100}" if name in content else "not there"
            return Refusal(
                "malformed", MALFORMED, f"`{name}` is {found}, no number of cases; {_AGAIN}"
            )
    if not isinstance(content.get("failures", []), list):
        return Refusal("malformed", MALFORMED, f"`failures` is no list; {_AGAIN}")
    op_name = content.get("op_name", now.op_name)
    if op_name != now.op_name:
        text = f"it is the result of `{op_name!s:.100}`, not of `{now.op_name}`"
        return Refusal("other_operator", CONTRADICTORY, text)
    version = content.get("schema_version", result_file.SCHEMA_VERSION)
    if version != result_file.SCHEMA_VERSION:
        text = f"`schema_version` is {version!r:.100}: another version of the plugin wrote it"
        return Refusal("malformed", MALFORMED, f"{text}; {_AGAIN}")
    return []


def _counts(content: Any, now: Now) -> Finding:
    del now
    total, passed = content["total_cases"], content["passed_cases"]
    if total == 0:
        return Refusal("no_cases", NO_CASES, "the verification has run no case")
    if passed < total:
        return Refusal(
            "not_all_passed", NOT_ALL, "not every case has passed: correct the implementation first"
        )
    return []


def _sums(content: Any, now: Now) -> Finding:
    del now
    total, passed = content["total_cases"], content["passed_cases"]
    failures, cases = content.get("failures", []), content.get("cases")
    problem = None
    if passed > total:
        problem = f"{passed} of {total} cases are said to have passed"
    elif content.get("failed_cases", 0) != 0:
        problem = f"all cases are said to have passed, and {content['failed_cases']} to have failed"
    elif failures:
        problem = f"all cases are said to have passed, and `failures` has {len(failures)}"
    elif "cases" in content:
        problem = _cases_problem(cases, total)
    return Refusal("contradiction", CONTRADICTORY, f"{problem}; {_AGAIN}") if problem else []


def _cases_problem(cases: Any, total: int) -> str | None:
    if not isinstance(cases, list) or len(cases) != total:
        return f"`cases` does not list the {total} cases that are said to have passed"
    for case in cases:
        if not isinstance(case, dict) or case.get("status") != "passed" or case.get("flaky"):
            return "all cases are said to have passed, and one in `cases` has not"
    return None


def _isolated(content: Any, now: Now) -> Finding:
    del now
    if content.get("in_process", False) is not False:
        text = "a run with --verify-in-process isolates nothing, so it opens no gate"
        return Refusal("not_isolated", NOT_ISOLATED, f"{text}; {_AGAIN} without it")
    return []


def _same_sources(content: Any, now: Now) -> Finding:
    if "sources" not in content:
        return ["the result names no sources: whether it is of these files can't be told"]
    recorded = content["sources"]
    if not isinstance(recorded, dict):
        return Refusal("malformed", MALFORMED, f"`sources` is no object; {_AGAIN}")
    changed = [what for role, what in ROLES.items() if recorded.get(role) != now.sources.get(role)]
    if changed:
        text = f"changed since it was verified: {', '.join(changed)}"
        return Refusal("stale", STALE, f"{text}; {_AGAIN}")
    return []


def same_environment(content: Any, now: Now) -> Finding:
    """Ask whether the environment is that of the verification: otherwise its result is void."""
    recorded, present_ = content.get("environment"), now.environment
    if not isinstance(recorded, dict) or present_ is None:
        which = "present" if isinstance(recorded, dict) else "result's"
        return [f"the {which} environment is not known, so the two can't be compared"]
    warnings = []
    for section, key in (("triton", "key_sha256"), ("cann", "info_sha256")):
        then, at_present = recorded.get(section), present_.get(section)
        if not isinstance(then, dict) or not isinstance(at_present, Mapping):
            warnings.append(f"`{section}.{key}` is not known on both sides")
        elif then.get(key) != at_present.get(key):
            text = f"`{section}.{key}` was {then.get(key)!s:.12} and is {at_present.get(key)!s:.12}"
            return Refusal(
                "other_environment",
                STALE,
                f"{text}: a result holds for one installation alone; {_AGAIN}",
            )
    then, at_present = recorded.get("device"), present_.get("device")
    if isinstance(then, dict) and isinstance(at_present, Mapping):
        for key in ("backend", "name", "npu_name"):
            if then.get(key) != at_present.get(key):
                text = (
                    f"verified on another device: {key} {then.get(key)}, now {at_present.get(key)}"
                )
                warnings.append(text)
                break
    return warnings


def _static_check(content: Any, now: Now) -> Finding:
    record = _check_record(content, "degeneration")
    if record.get("status") == "failed":
        text = "all cases are said to have passed, and the static check to have failed"
        return Refusal("degenerate", CONTRADICTORY, f"{text}; {_AGAIN}")
    # What is passed strictly passes every policy.
    policy = record.get("policy")
    if record.get("status") == "passed" and policy in ("strict", now.degeneration):
        return []
    if now.degeneration == "off":
        return ["the static check was not made, and --verify-degeneration=off asks for none"]
    return _checked_now(content, now)


def _checked_now(content: Mapping[str, Any], now: Now) -> Finding:
    found: Any = content.get("environment")
    for name in ("cmdline", "non_compute"):
        found = found.get(name) if isinstance(found, dict) else None
    try:
        # What the task is, the verification was told; a benchmark is not asked again.
        report = now.check(found is True)
    except OSError as error:
        return Refusal(
            "degenerate", DEGENERATE, f"the implementation can't be read: {error.strerror or error}"
        )
    if report.passed:
        return []
    text = fallback_message(
        None if report.error else report.regression_type,
        report.error or report.to_text(notes=False).partition("\n")[0],
    )
    if now.degeneration == "warn":
        return [f"the static check fails: {text}"]
    return Refusal("degenerate", DEGENERATE, text)


def _execution_check(content: Any, now: Now) -> Finding:
    record = _check_record(content, "execution")
    status = record.get("status")
    if status == "failed":
        text = "all cases are said to have passed, and the check at run time to have failed"
        return Refusal("degenerate", CONTRADICTORY, f"{text}; {_AGAIN}")
    if status == "warned":
        first = str(record.get("message") or "").partition("\n")[0]
        text = f"the check at run time has failed: {first:.300}"
        if now.execution == "fail":
            return Refusal("degenerate", DEGENERATE, text)
        return [text]
    return [] if status == "passed" else ["the check at run time was not made"]


def _check_record(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = content.get("degeneration")
    record = section.get(name) if isinstance(section, dict) else None
    return record if isinstance(record, dict) else {}


Rule = Callable[[Any, Now], Finding]

BASIC: tuple[Rule, ...] = (_form, _counts, _sums)
"""What a file must be and say to be a pass at all."""

FURTHER: tuple[Rule, ...] = (
    _isolated,
    _same_sources,
    same_environment,
    _static_check,
    _execution_check,
)
"""What keeps a pass from being one of what is there now."""

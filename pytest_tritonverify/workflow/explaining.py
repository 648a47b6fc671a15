"""What a round of verification came to: `verifier_result`, `verifier_error`, and its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.report import TITLES
from pytest_tritonverify.execution import errors
from pytest_tritonverify.results.records import fallback_message
from pytest_tritonverify.workflow import classes, files, grouping, layout, verification

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.workflow.classes import Class

_ADVICE = (
    "give a verify_result.json, what `validate --json` has printed, or a work directory; for a "
    "verification that was ended from outside --timeout SECONDS"
)
_SHOWN_VIOLATIONS = 8


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round.

    Attributes:
        source: what it was read from.
        error: `verifier_error`; empty where it has passed.
        kind: its class; None where it has passed.
        failed_cases, total_cases: numbers of cases; None where no case was run.
        groups: failures that are alike.
        notes: what else has failed and does not count as a failed verification.
    """

    source: str
    error: str
    kind: Class | None
    failed_cases: int | None = None
    total_cases: int | None = None
    groups: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """`verifier_result`."""
        return self.kind is None


@dataclass(frozen=True)
class Explanation:
    """The newest round, seen before those that were there before.

    Attributes:
        rounds: all, the oldest first.
        kind: the class of the newest; None where it has passed.
    """

    rounds: tuple[Round, ...]
    kind: Class | None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as builtins."""
        newest = self.rounds[-1]
        return {
            "verifier_result": newest.passed,
            "verifier_error": newest.error,
            "class": self.kind.letter if self.kind else None,
            "subtype": self.kind.subtype if self.kind else None,
            "terminate": self.kind.ends_the_task if self.kind else False,
            "evidence": list(self.kind.evidence) if self.kind else [],
            "failed_cases": newest.failed_cases,
            "total_cases": newest.total_cases,
            "groups": [dict(group) for group in newest.groups],
            "notes": list(newest.notes),
            "rounds": [
                {
                    "source": one.source,
                    "verifier_result": one.passed,
                    "class": one.kind.letter if one.kind else None,
                    "subtype": one.kind.subtype if one.kind else None,
                }
                for one in self.rounds
            ],
        }

    def to_text(self) -> str:
        """Return the explanation for people."""
        newest = self.rounds[-1]
        if self.kind is None:
            return "\n".join([f"{newest.source}: verifier_result = true", *newest.notes])
        word = "终止" if self.kind.ends_the_task else "可修复"
        lines = [
            f"{newest.source}: verifier_result = false",
            f"类型：{self.kind.letter}（{self.kind.subtype}），{word}",
            *(f"  {sentence}" for sentence in self.kind.evidence),
            newest.error,
            *newest.notes,
        ]
        return "\n".join(lines)


def explain(rounds: Sequence[Round]) -> Explanation:
    """Explain the newest round.

    Args:
        rounds: all rounds, the oldest first.
    """
    kinds = [one.kind for one in rounds]
    return Explanation(tuple(rounds), classes.repeated(kinds) or kinds[-1])


def of_timeout(seconds: str) -> Round:
    """Return the round of a verification that was ended from outside."""
    return Round(
        source=f"--timeout {seconds}",
        error=grouping.timeout_text(seconds),
        kind=classes.of_timeout(seconds),
    )


def of_path(path: Path, limit: int = grouping.LIMIT) -> list[Round]:
    """Read the round that a file tells of, or the rounds of Phase 3 in a work directory.

    Raises:
        files.FileError: it can't be read, or it is nothing that tells of a round.
    """
    if path.is_dir():
        work = layout.open_workdir(path)
        rounds = [of_iteration(one, limit) for one in work.iterations]
        if not rounds:
            raise files.FileError(f"there is no round in {path / 'output'}: {_ADVICE}")
        return rounds
    return [_of_file(path, limit)]


def of_iteration(one: layout.Round, limit: int = grouping.LIMIT) -> Round:
    """Return a round of a work directory: its result, or what the static check says of its code.

    Raises:
        files.FileError: there is neither a result nor code.
    """
    if one.verify_result.exists():
        return _of_file(one.verify_result, limit)
    from pytest_tritonverify.degeneration.check import check_source

    # The static check comes before the verification and leaves no file.
    source = files.read_bytes(
        one.code, f"verify the round, there is no {one.verify_result.name} either"
    )
    report = check_source(source, filename=one.code.name)
    if report.passed:
        raise files.FileError(
            f"there is no {one.verify_result}, and {one.code.name} is no degenerate code: "
            f"{verification.ADVICE}",
            missing=True,
        )
    return _of_degeneration(report.to_json(), str(one.code), limit)


def _of_file(path: Path, limit: int) -> Round:
    content = files.read_object(path, _ADVICE)
    if isinstance(content.get("valid"), bool):
        return _of_degeneration(content, str(path), limit)
    if "total_cases" not in content:
        raise files.FileError(f"{path} tells of no verification: {_ADVICE}")
    return _of_result(verification.of(content, path), limit)


def _of_result(result: verification.Verification, limit: int) -> Round:
    failed = result.total - result.passed
    problem = result.contradiction()
    if result.all_passed and problem is None:
        return Round(
            source=str(result.path),
            error="",
            kind=None,
            failed_cases=failed,
            total_cases=result.total,
            notes=_notes(result, limit),
        )
    if result.all_passed or failed < 0:
        text = f"the result contradicts itself: {problem}; verify the pair again"
        kind = classes.Class("B", "B-Contradiction", (text,))
    else:
        kind = classes.of_verification(result)
        text = grouping.text(result.failures, result.total, limit, failed)
        if result.total == 0:
            text = "total_cases == 0: no case was run"
    groups = [
        {
            "error_type": group.error_type,
            "count": len(group.members),
            "cases": group.cases,
            "message": errors.clip(group.headline, grouping.LIMIT),
        }
        for group in grouping.group(result.failures)
    ]
    return Round(
        source=str(result.path),
        error=text,
        kind=kind,
        failed_cases=max(failed, 0),
        total_cases=result.total,
        groups=tuple(groups),
        notes=_notes(result, limit),
    )


def _notes(result: verification.Verification, limit: int) -> tuple[str, ...]:
    """Return what the item `compile` says, where it has failed: it makes no case fail."""
    section = result.section("compile")
    message = section.get("message")
    if section.get("status") != "failed" or not isinstance(message, str):
        return ()
    return (errors.clip(f"note: kernels for other devices: {message}", limit),)


def _of_degeneration(report: Mapping[str, Any], source: str, limit: int) -> Round:
    if report["valid"]:
        return Round(source=source, error="", kind=None)
    number = report.get("regression_type")
    kind = classes.of_degeneration(report)
    known = number if kind.letter == "A" else None
    text = fallback_message(known, _degeneration_text(report, known))
    return Round(source=source, error=errors.clip(text, limit), kind=kind)


def _degeneration_text(report: Mapping[str, Any], number: int | None) -> str:
    """Return what the static check found, in the order in which it helps most."""
    if report.get("error"):
        return str(report["error"])
    lines = [TITLES.get(number, "") if number else "the file could not be checked"]
    checks = report.get("checks")
    for check in checks.values() if isinstance(checks, dict) else ():
        if not isinstance(check, dict) or check.get("passed") is not False:
            continue
        if check.get("error"):
            lines.append(f"- {check['error']}")
        violations = check.get("violations")
        found = [v for v in violations if isinstance(v, dict)] if violations else []
        lines += [
            f"- line {v.get('line')}: {v.get('call')}: {v.get('reason')}"
            for v in found[:_SHOWN_VIOLATIONS]
        ]
        if len(found) > _SHOWN_VIOLATIONS:
            rest = sorted({str(v.get("line")) for v in found[_SHOWN_VIOLATIONS:]}, key=_numeric)
            lines.append(f"- and {len(found) - _SHOWN_VIOLATIONS} more, in line {', '.join(rest)}")
    if report.get("suggestion"):
        lines.append(str(report["suggestion"]))
    return "\n".join(line for line in lines if line)


def _numeric(text: str) -> int:
    return int(text) if text.isdigit() else 0

"""Findings on an implementation at work, and the report that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_tritonverify.evidence.observations import Place

# It shows that something else than a kernel of the implementation does the work.
VIOLATION = "violation"
# The examination failed: that is no evidence of anything.
ERROR = "error"
# Worth knowing; fails nothing.
NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        code: its name, see docs/execution.md.
        severity: `VIOLATION`, `ERROR` or `NOTE`.
        message: what was found and what to do about it, for people.
        case_idx: the first case that it was found on.
        file, line: the user's code, where a line is known.
        cases: all cases that it was found on.
    """

    code: str
    severity: str
    message: str
    case_idx: int
    file: str | None = None
    line: int | None = None
    cases: tuple[int, ...] = ()

    @classmethod
    def at(cls, code: str, severity: str, message: str, case_idx: int, place: Place) -> Finding:
        """Make a finding at a line of user code."""
        known = place.file is not None
        return cls(
            code,
            severity,
            message,
            case_idx,
            place.file,
            place.line if known else None,
            (case_idx,),
        )

    def line_of_text(self) -> str:
        """Return the finding as one line."""
        where = f"{Path(self.file).name}:{self.line}: " if self.file else ""
        cases = ", ".join(map(str, self.cases or (self.case_idx,)))
        word = "case" if len(self.cases) <= 1 else "cases"
        return f"{where}{self.code}: {self.message} ({word} {cases})"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as builtins."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "case_idx": self.case_idx,
            "cases": list(self.cases or (self.case_idx,)),
            "file": Path(self.file).name if self.file else None,
            "line": self.line,
        }


@dataclass(frozen=True)
class CaseSummary:
    """What a case's forward did, for people and for the result file.

    Attributes:
        case_idx: number of the case.
        launches: of each kernel, by its name and its file's: launches and programs.
        operators: torch's operators that move or compute, with their counts.
        examined: whether the case could be observed.
        not_asked: questions that its inputs can't answer, and why.
    """

    case_idx: int
    launches: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    examined: bool = True
    not_asked: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the summary as builtins."""
        return {
            "case_idx": self.case_idx,
            "examined": self.examined,
            "launches": [
                {"kernel": kernel, "file": file, "launches": launches, "programs": programs}
                for (kernel, file), (launches, programs) in self.launches.items()
            ],
            "operators": dict(self.operators),
            "not_asked": list(self.not_asked),
        }


@dataclass(frozen=True)
class ExecutionReport:
    """What the examination of all cases found.

    Attributes:
        findings: each once, however many cases show it.
        cases: a summary of each case.
        seconds: what it took.
    """

    findings: tuple[Finding, ...] = ()
    cases: tuple[CaseSummary, ...] = ()
    seconds: float = 0.0

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that show a cheat."""
        return tuple(f for f in self.findings if f.severity == VIOLATION)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What kept cases from being examined."""
        return tuple(f for f in self.findings if f.severity == ERROR)

    @property
    def passed(self) -> bool:
        """Whether every case was examined, and none is violated."""
        return not self.violations and not self.errors

    def message(self, limit: int = 12) -> str:
        """Return what failed as text, the gravest first."""
        graves = [*self.violations, *self.errors]
        lines = [finding.line_of_text() for finding in graves[:limit]]
        if len(graves) > limit:
            lines.append(f"... and {len(graves) - limit} more")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as builtins."""
        return {
            "passed": self.passed,
            "findings": [finding.to_json() for finding in self.findings],
            "cases": [case.to_json() for case in self.cases],
            "seconds": self.seconds,
        }


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with those that differ in the case alone put together."""
    found: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.severity, finding.message, finding.file, finding.line)
        first = found.get(key)
        if first is None:
            found[key] = replace(finding, cases=finding.cases or (finding.case_idx,))
        elif finding.case_idx not in first.cases:
            found[key] = replace(first, cases=(*first.cases, finding.case_idx))
    order = {VIOLATION: 0, ERROR: 1, NOTE: 2}
    return tuple(sorted(found.values(), key=lambda finding: order[finding.severity]))

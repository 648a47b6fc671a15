"""The check of a task file, static and at run time, as one report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.workflow import files, task_source
from pytest_tritonverify.workflow.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.workflow.task_run import Ran
    from pytest_tritonverify.workflow.task_source import Source

_STATIC_ADVICE = (
    "define `class Model(torch.nn.Module)` with `forward`, `get_init_inputs()`, and "
    "`get_input_groups()` or `get_inputs()`, and nothing that runs or tests them"
)
_RUNTIME_ADVICE = "correct the task so that the reference runs on every case, and check it again"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is known about a task file.

    Attributes:
        path: the file, as it was named.
        source: its static half.
        ran: its run-time half; None where it was not run.
        findings: everything that was found.
    """

    path: Path
    source: Source
    ran: Ran | None
    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        """Whether the file is a task, as far as it was asked."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def suggestion(self) -> str:
        """What to do."""
        if self.valid:
            return ""
        return _RUNTIME_ADVICE if self.source.passed and self.ran else _STATIC_ADVICE

    def to_json(self) -> dict[str, Any]:
        """Return the report as builtins."""
        return {
            "valid": self.valid,
            "static_check": {
                "passed": self.source.passed,
                "found": list(self.source.found),
                "missing": list(self.source.missing),
                "error": self.source.error,
            },
            "runtime_check": None
            if self.ran is None
            else {
                "passed": self.ran.error is None,
                "error": self.ran.error,
                "cases_tested": self.ran.tested,
                "cases_passed": self.ran.passed,
            },
            "suggestion": self.suggestion,
            "cases_tested": self.ran.tested if self.ran else 0,
            "cases_passed": self.ran.passed if self.ran else 0,
            "filepath": str(self.path),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def to_text(self) -> str:
        """Return the report for people."""
        lines = [finding.to_text() for finding in self.findings]
        how = "静态" if self.ran is None else "静态+运行时"
        if self.valid:
            lines.append(f"[VALID] {self.path}（{how}）")
            if self.ran is not None:
                lines.append(f"cases: {self.ran.passed}/{self.ran.tested}")
        else:
            lines += [f"[INVALID] {self.path}", f"suggestion: {self.suggestion}"]
        return "\n".join(lines)


def check(
    path: Path,
    *,
    source: Path | None = None,
    static_only: bool = False,
    timeout: float = 900,
    device: str = "auto",
) -> Report:
    """Check a task file.

    Args:
        path: the file.
        source: what it must be a copy of, byte for byte, its data file included.
        static_only: run nothing.
        timeout: seconds that the run may take.
        device: where a reference runs that can't run on the CPU.

    Raises:
        files.FileError: a file can't be read.
    """
    content = files.read_bytes(path, "give a task file (.py)")
    static = task_source.check(path, content)
    findings = list(static.findings)
    if source is not None:
        findings += _differences(path, content, source)
    ran = None
    if static.passed and not static_only:
        from pytest_tritonverify.workflow import task_run

        ran = task_run.run(path, timeout, device)
        findings += ran.findings
        findings += _lost_cases(path, ran)
    return Report(path=path, source=static, ran=ran, findings=tuple(findings))


def _differences(path: Path, content: bytes, source: Path) -> list[Finding]:
    """Compare a task, and its data file, with what they are copies of."""
    findings = []
    original = files.read_bytes(source, "--source names the file that the task is a copy of")
    if original != content:
        line = _first_difference(original, content)
        text = f"it is no copy of {source}: they differ from line {line} on"
        findings.append(Finding("not_identical", text, path.name, line))
    data, copy = source.with_suffix(".json"), path.with_suffix(".json")
    if data.is_file() and not copy.is_file():
        text = f"{data.name} lies beside the source and was not copied: there is no {copy.name}"
        findings.append(Finding("no_data_file", text, path.name))
    elif data.is_file():
        before = files.read_bytes(data, "it is the source's data file")
        after = files.read_bytes(copy, "it is the task's data file")
        if before != after:
            line = _first_difference(before, after)
            text = f"it is no copy of {data}: they differ from line {line} on"
            findings.append(Finding("not_identical", text, copy.name, line))
    elif copy.is_file():
        text = f"{copy.name} lies beside the task, and no {data.name} beside its source"
        findings.append(Finding("not_identical", text, path.name))
    return findings


def _first_difference(one: bytes, other: bytes) -> int:
    """Return the line, from 1, of the first byte in which two contents differ."""
    at = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[:at].count(b"\n") + 1


def _lost_cases(path: Path, ran: Ran) -> list[Finding]:
    """Compare the number of cases with that of the data file's lines."""
    count = task_source.case_count(path)
    found = task_source.data_file(path)
    if not ran.tested or found is None or count is None or ran.tested >= count:
        return []
    data = found.name
    text = f"{data} holds {count} cases, and the task makes {ran.tested}: were some left out?"
    return [Finding("cases_lost", text, path.name, severity="warning")]

"""A `verify_result.json` as a workflow reads it: ours, and those with the documented keys alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.results import reliance
from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADVICE = "run `python -m pytest_tritonverify verify` for the pair first"
_AGAIN = "verify the pair again"

Status = Literal["pass", "fail"]


@dataclass(frozen=True, kw_only=True)
class FailedCase:
    """An entry of `failures`, with what `cases` knows of it.

    Attributes:
        case_idx: number of the case, from 1; None where the entry names none.
        input_desc: its inputs.
        error_type: the name of the failure.
        error_msg: the failure for people.
        metrics: figures of an accuracy failure.
        side: whose failure it is, where that is known.
        phase: what the failing process was doing.
        place: `file:line` in the user's code, or nothing.
    """

    case_idx: int | None
    input_desc: Any
    error_type: str
    error_msg: str
    metrics: Mapping[str, Any] | None = None
    side: str | None = None
    phase: str | None = None
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a result says.

    Attributes:
        path: the file.
        op_name: the operator; None where the file doesn't say.
        total, passed: numbers of cases.
        failures: the failed cases.
        content: all of it.
    """

    path: Path
    op_name: str | None
    total: int
    passed: int
    failures: tuple[FailedCase, ...]
    content: Mapping[str, Any]

    @property
    def all_passed(self) -> bool:
        """Whether every case has passed, and there is one. Nothing else is a pass."""
        return self.passed == self.total > 0

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a section, empty where the file has none."""
        found = self.content.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def cases(self) -> dict[int, Mapping[str, Any]]:
        """The entries of `cases` by number; none in a file with the documented keys alone."""
        return _cases(self.content)

    def status(self, case_idx: int) -> Status:
        """Return the status of a case, by its number from 1."""
        failed = any(case_idx == failure.case_idx for failure in self.failures)
        case = self.cases.get(case_idx, {})
        if failed or case.get("status", "passed") != "passed" or case.get("flaky"):
            return "fail"
        return "pass"

    def input_desc(self, case_idx: int) -> Any:
        """Return the inputs of a case, as far as the file describes them."""
        if case_idx in self.cases:
            return self.cases[case_idx].get("input_desc")
        found = (f.input_desc for f in self.failures if f.case_idx == case_idx)
        return next(found, None)

    def contradiction(self) -> str | None:
        """Say in what the file contradicts itself, None where it doesn't."""
        if self.passed > self.total:
            return f"passed_cases({self.passed}) > total_cases({self.total})"
        failed = self.content.get("failed_cases", self.total - self.passed)
        if failed != self.total - self.passed:
            return (
                f"failed_cases({failed}) != total_cases({self.total}) - passed_cases({self.passed})"
            )
        if len(self.failures) != self.total - self.passed:
            return f"failed_cases({failed}), and `failures` has {len(self.failures)} entries"
        cases = self.content.get("cases")
        if self.all_passed and cases is not None:
            good = sum(self.status(case_idx) == "pass" for case_idx in self.cases)
            listed = len(cases) if isinstance(cases, list) else -1
            if not listed == good == self.total:
                return f"passed_cases({self.passed}), and in `cases` {good} of them have passed"
        return None


def read(path: Path, advice: str = ADVICE) -> Verification:
    """Read a result.

    Raises:
        files.FileError: it can't be read, or it is no result.
    """
    return of(files.read_object(path, advice), path)


def of(content: Mapping[str, Any], path: Path) -> Verification:
    """Return the view of a result that was read already.

    Raises:
        files.FileError: it is no result.
    """
    for name in ("total_cases", "passed_cases"):
        value = content.get(name)
        if not reliance.is_count(value):
            found = f"{value!r:.60}" if name in content else "not there"
            raise files.FileError(
                f"{path} is no verify_result.json: `{name}` is {found}, no number of cases; "
                f"{_AGAIN}"
            )
    failures = content.get("failures", [])
    if not isinstance(failures, list) or not all(isinstance(entry, dict) for entry in failures):
        raise files.FileError(f"{path}: `failures` is no list of objects; {_AGAIN}")
    op_name = content.get("op_name")
    cases = _cases(content)
    return Verification(
        path=path,
        op_name=op_name if isinstance(op_name, str) else None,
        total=content["total_cases"],
        passed=content["passed_cases"],
        failures=tuple(_failure(entry, cases) for entry in failures),
        content=content,
    )


def _cases(content: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    cases = content.get("cases")
    entries = [c for c in cases if isinstance(c, dict)] if isinstance(cases, list) else []
    return {c["case_idx"]: c for c in entries if type(c.get("case_idx")) is int}


def _failure(entry: Mapping[str, Any], cases: Mapping[int, Mapping[str, Any]]) -> FailedCase:
    number, metrics = entry.get("case_idx"), entry.get("metrics")
    case_idx = number if type(number) is int else None
    error_type = str(entry.get("error_type") or "Error")
    case = cases.get(case_idx, {}) if case_idx is not None else {}
    # Where a check of the code has failed, `cases` still holds what the comparators said.
    known = case if case.get("error_type") == error_type else {}
    file, line = known.get("file"), known.get("line")
    return FailedCase(
        case_idx=case_idx,
        input_desc=entry.get("input_desc"),
        error_type=error_type,
        error_msg=str(entry.get("error_msg") or ""),
        metrics=metrics if isinstance(metrics, dict) else None,
        side=_text(known.get("side")),
        phase=_text(known.get("phase")),
        place=f"{file}:{line}" if isinstance(file, str) and type(line) is int else "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

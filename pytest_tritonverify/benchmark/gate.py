"""The gate before a benchmark: a kernel is measured only where its verification has passed.

It reads a verification's result and never makes one. Counts alone open it only for a file that
holds nothing else: what a file says about sources, environment and checks must hold now, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import errors
from pytest_tritonverify.results import reliance
from pytest_tritonverify.results.reliance import Finding, Now, Refusal

if TYPE_CHECKING:
    from pathlib import Path

SHOWN_FAILURES = 5
_WIDTH = 200

_LIFTS = "--verify-not-required, or --verify_not_required of the command, lifts this gate"

MISSING = "文件不存在"
UNREADABLE = "文件读取失败"


@dataclass(frozen=True, kw_only=True)
class Passage:
    """What the gate says.

    Attributes:
        opened: the benchmark may run.
        required: it was asked for at all.
        verify_json: the verification's result; None where it was made by the same run.
        passed_cases, total_cases: its counts; None where there are none.
        failures: its entries of that name, for people.
        situation: why the gate is closed, in the documented words where there are some.
        detail: the same for people, and what to do.
        warnings: what could not be checked, in sentences.
    """

    opened: bool
    required: bool = True
    verify_json: Path | None = None
    passed_cases: int | None = None
    total_cases: int | None = None
    failures: tuple[str, ...] = ()
    situation: str = ""
    detail: str = ""
    warnings: tuple[str, ...] = ()

    def words(self) -> str:
        """Return the documented text for stderr; empty where the gate is open.

        The path of the result, its counts, and its first failures: callers read them.
        """
        if self.opened:
            return ""
        counts = f"{_shown(self.passed_cases)}/{_shown(self.total_cases)}"
        lines = [
            f"[L1 闸门] 拒绝执行 benchmark：{self.situation}",
            f"  verify_json: {self.verify_json or 'of this run'}",
            f"  passed/total: {counts}",
            f"  failures: {len(self.failures)}",
            *(f"    {failure}" for failure in self.failures[:SHOWN_FAILURES]),
        ]
        if len(self.failures) > SHOWN_FAILURES:
            lines.append(f"    ... and {len(self.failures) - SHOWN_FAILURES} more")
        return errors.printable("\n".join([*lines, f"  {self.detail}"]))

    def to_json(self) -> dict[str, Any]:
        """Return what a report keeps: the file's name, since its folder may mean nothing later."""
        return {
            "required": self.required,
            "verify_json": self.verify_json.name if self.verify_json else None,
            "passed_cases": self.passed_cases,
            "total_cases": self.total_cases,
            "warnings": list(self.warnings),
        }


def lifted() -> Passage:
    """Return the gate as it stands where nobody asks for a verification."""
    text = "no verification was asked for: the outputs may be wrong"
    return Passage(opened=True, required=False, warnings=(text,))


def examine(path: Path, now: Now) -> Passage:
    """Say whether the result in a file lets a benchmark run.

    Args:
        path: the verification's result.
        now: what is there at present.
    """
    if path.exists() and not path.is_file():
        # A pipe would never end.
        return _closed(path, Refusal("unreadable", UNREADABLE, "it is no regular file"))
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        detail = "verify the pair first: there is no result of a verification"
        return _closed(path, Refusal("missing", MISSING, detail))
    except OSError as error:
        text = f"it can't be read: {error.strerror or error}"
        return _closed(path, Refusal("unreadable", UNREADABLE, text))
    try:
        content = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        text = f"it is no JSON, verify the pair again: {error}"
        return _closed(path, Refusal("unreadable", UNREADABLE, _first_line(text)))
    return judge(content, now, path)


def judge(content: Any, now: Now, path: Path | None = None) -> Passage:
    """Say whether a result lets a benchmark run.

    Args:
        content: the verification's result, as read from JSON. It may be anything.
        now: what is there at present.
        path: the file that it is from; None for a result of this run.
    """
    warnings: list[str] = []
    for rule in (*reliance.BASIC, *reliance.FURTHER):
        finding: Finding = rule(content, now)
        if isinstance(finding, Refusal):
            return _closed(path, finding, content, tuple(warnings))
        warnings += finding
    return Passage(
        opened=True,
        verify_json=path,
        passed_cases=content["passed_cases"],
        total_cases=content["total_cases"],
        warnings=tuple(warnings),
    )


def _closed(
    path: Path | None, refusal: Refusal, content: Any = None, warnings: tuple[str, ...] = ()
) -> Passage:
    there: dict[str, Any] = content if isinstance(content, dict) else {}
    failures = there.get("failures")
    return Passage(
        opened=False,
        verify_json=path,
        passed_cases=_count(there.get("passed_cases")),
        total_cases=_count(there.get("total_cases")),
        failures=tuple(map(_failure, failures)) if isinstance(failures, list) else (),
        situation=refusal.situation,
        detail=f"{refusal.detail}. {_LIFTS}",
        warnings=warnings,
    )


def _count(value: Any) -> int | None:
    return value if reliance.is_count(value) else None


def _shown(count: int | None) -> str:
    return "?" if count is None else str(count)


def _failure(entry: Any) -> str:
    if not isinstance(entry, dict):
        return _first_line(f"an entry that is no object: {entry!r}")
    kind, message = entry.get("error_type"), str(entry.get("error_msg") or "")
    text = message if message.startswith(f"{kind}: ") else f"{kind}: {message}"
    return _first_line(f"case_idx={entry.get('case_idx')} {text}")


def _first_line(text: str) -> str:
    return errors.clip(errors.printable(text.partition("\n")[0]), _WIDTH)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Which one of two counts, readers don't agree on.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found

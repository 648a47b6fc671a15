"""What a page is about: each pair's result and benchmark report, from a session or from files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.discovery import DEFAULT_VARIANT
from pytest_tritonverify.workflow import files, performance, verification

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.benchmark.perf_ledger import PerfAccount
    from pytest_tritonverify.results.ledger import PairAccount
    from pytest_tritonverify.session import VerifySession
    from pytest_tritonverify.workflow.performance import Performance
    from pytest_tritonverify.workflow.verification import Verification

ADVICE = "give a verify_result.json, a perf_result.json, or a folder that holds such files"
_NAME = re.compile(r"(?:.+_)?(?:verify|perf)_result(?:_(?P<variant>.+))?")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A pair as the page shows it.

    Attributes:
        op, impl: names of the operator and the implementation.
        place: where its files lie; empty where that goes without saying.
        verification: its result; None where there is none.
        performance: its benchmark report; None where there is none.
        failed: it failed by something that its result does not count.
        notes: what else is to be known, in sentences.
    """

    op: str
    impl: str
    place: str = ""
    verification: Verification | None = None
    performance: Performance | None = None
    failed: bool = False
    notes: tuple[str, ...] = ()


def of_session(session: VerifySession) -> list[Subject]:
    """Return the pairs of a run, at its end, as its ledgers know them.

    Args:
        session: the session; its results are written.
    """
    ledger, benchmarks = session.ledger, session.benchmarks
    accounts = {} if ledger is None else ledger.accounts
    perf_accounts: dict[Path, PerfAccount] = (
        {} if benchmarks is None else {a.pair.implementation: a for a in benchmarks.accounts}
    )
    pairs = {path: account.pair for path, account in perf_accounts.items()}
    pairs |= {path: account.pair for path, account in accounts.items()}
    found = []
    for implementation, pair in sorted(pairs.items(), key=lambda item: item[1]):
        notes: list[str] = []
        result = report = None
        account, perf = accounts.get(implementation), perf_accounts.get(implementation)
        if account is not None and ledger is not None:
            result = verification.of(ledger.content(account), account.path)
            notes += _notes(account)
        if perf is not None and benchmarks is not None:
            if perf.refusal is not None:
                notes.append(f"not measured, since it is not verified:\n{perf.refusal}")
            elif perf.cases:
                report = performance.of(benchmarks.content(perf), perf.path)
            notes += [perf.problem] if perf.problem else []
        found.append(
            Subject(
                op=pair.op,
                impl=pair.impl_name,
                place=_short(pair.implementation.parent, session.activation.cwd),
                verification=result,
                performance=report,
                failed=account is not None and not account.green,
                notes=tuple(notes),
            )
        )
    return found


def _notes(account: PairAccount) -> list[str]:
    notes = [account.problem] if account.problem else []
    if not account.full:
        notes.append(
            f"only {len(account.selected)} of {account.total} cases were selected, so "
            f"{account.path.name} was left as it was"
        )
    missing = len(account.selected) - len(account.records)
    if missing > 0 and account.load_failure is None:
        notes.append(f"{missing} of the selected cases did not run")
    return notes


def _short(path: Path, folder: Path) -> str:
    found = str(path.relative_to(folder) if path.is_relative_to(folder) else path)
    return "" if found == "." else found


@dataclass(frozen=True)
class _File:
    path: Path
    content: Mapping[str, Any]

    @property
    def op(self) -> str:
        found = self.content.get("op_name")
        return found if isinstance(found, str) else self.path.parent.name

    @property
    def is_report(self) -> bool:
        return "per_shape_results" in self.content

    @property
    def code(self) -> str | None:
        """The SHA-256 of the implementation that the file is about."""
        sources = self.content.get("sources")
        found = sources.get("implementation") if isinstance(sources, dict) else None
        return found if isinstance(found, str) else None

    @property
    def impl(self) -> str:
        """The implementation: by the file's name, for workflows copy files under other names."""
        match = _NAME.fullmatch(self.path.stem)
        if match and match["variant"]:
            return f"triton_{match['variant']}"
        found: Any = self.content.get("environment")
        for name in ("cmdline", "triton_impl_name"):
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, str) else f"triton_{DEFAULT_VARIANT}"

    def excludes(self, other: _File) -> bool:
        """Say whether both name the code that they are about, and it is not the same."""
        return None not in (self.code, other.code) and self.code != other.code


def of_files(paths: Sequence[Path]) -> list[Subject]:
    """Return the pairs that files are about.

    A report belongs to the result of the same code, else to the one beside it or the only one of
    its operator. Copies of one result are shown once.

    Args:
        paths: results, reports, and folders that are searched for both.

    Raises:
        files.FileError: a file that was named can't be used, or nothing was found.
    """
    found: list[_File] = []
    broken: list[Subject] = []
    for path in paths:
        if not path.is_dir():
            found.append(_File(path, files.read_object(path, ADVICE)))
            continue
        for inner in _below(path):
            try:
                found.append(_File(inner, files.read_object(inner, ADVICE)))
            except files.FileError as error:
                broken.append(_unusable(inner, error))
    if not found and not broken:
        raise files.FileError(f"there is no result in {', '.join(map(str, paths))}: {ADVICE}")
    results = _once(file for file in found if not file.is_report)
    reports = _once(file for file in found if file.is_report)
    named = {path for path in paths if not path.is_dir()}
    joined = _joined(results, reports)
    subjects = []
    for result, report in joined:
        try:
            subjects.append(_subject(result, report))
        except files.FileError as error:
            if not named.isdisjoint({file.path for file in (result, report) if file}):
                raise
            broken.append(_unusable((result or report or found[0]).path, error))
    return sorted([*subjects, *broken], key=_order)


def _order(one: Subject) -> tuple[str, str, bool, str]:
    return one.op, one.impl, one.verification is None, one.place


def _below(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*.json") if _NAME.fullmatch(path.stem) and path.is_file()
    )


def _once(found: Iterable[_File]) -> list[_File]:
    """Leave out copies, and files that were named twice.

    Files that don't say which code they are about may be alike and not be copies.
    """
    kept: dict[object, _File] = {}
    for file in found:
        same = json.dumps(file.content, sort_keys=True) if file.code else file.path.resolve()
        kept.setdefault(same, file)
    return list(kept.values())


def _joined(results: list[_File], reports: list[_File]) -> list[tuple[_File | None, _File | None]]:
    left = list(reports)
    taken: dict[int, _File] = {}
    for test in (_same_code, _beside, _only_one_of(results)):
        for place, result in enumerate(results):
            if place in taken:
                continue
            report = next((r for r in left if not r.excludes(result) and test(result, r)), None)
            if report is not None:
                taken[place] = report
                left.remove(report)
    joined: list[tuple[_File | None, _File | None]] = [
        (result, taken.get(place)) for place, result in enumerate(results)
    ]
    return [*joined, *((None, report) for report in left)]


def _same_code(result: _File, report: _File) -> bool:
    return result.op == report.op and result.code is not None and result.code == report.code


def _beside(result: _File, report: _File) -> bool:
    name = result.path.name.replace("verify_result", "perf_result")
    return result.op == report.op and report.path == result.path.with_name(name)


def _only_one_of(results: list[_File]) -> Any:
    ops = [result.op for result in results]
    return lambda result, report: result.op == report.op and ops.count(result.op) == 1


def _subject(result: _File | None, report: _File | None) -> Subject:
    known = result or report
    assert known is not None  # noqa: S101 - one of them is given
    notes = []
    checked = verification.of(result.content, result.path) if result else None
    contradiction = checked.contradiction() if checked else None
    if contradiction:
        notes.append(f"the result contradicts itself: {contradiction}")
    return Subject(
        op=known.op,
        impl=known.impl,
        place=str(known.path),
        verification=checked,
        performance=performance.of(report.content, report.path) if report else None,
        failed=contradiction is not None
        or (checked is not None and _check_failed(checked.content)),
        notes=tuple(notes),
    )


def checks_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result says of checks that concern a pair as a whole, by name."""
    section = content.get("degeneration")
    found = dict(section) if isinstance(section, dict) else {}
    return {**found, **{name: content.get(name) for name in ("hidden_state", "compile")}}


def _check_failed(content: Mapping[str, Any]) -> bool:
    """Say whether one of them has failed: not all of them keep cases from counting as passed."""
    checks = checks_of(content).values()
    return any(isinstance(check, dict) and check.get("status") == "failed" for check in checks)


def _unusable(path: Path, error: files.FileError) -> Subject:
    return Subject(op=path.stem, impl="", place=str(path), failed=True, notes=(str(error),))

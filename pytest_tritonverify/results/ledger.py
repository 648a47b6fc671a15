"""Keep every record of a run, and write each pair's result file as soon as it is complete.

One process of a run owns the ledger: pytest's own, or under pytest-xdist the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import plain_files
from pytest_tritonverify.results import names, result_file
from pytest_tritonverify.results.journal import Journal
from pytest_tritonverify.results.records import CaseRecord, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.discovery import Pair

LOAD_ITEM = "load"
_UNKNOWN = "not gathered: no case of this run got that far"


@dataclass
class PairAccount:
    """What is known about one pair in this run.

    Attributes:
        pair: the pair.
        path: its result file.
        total: number of its cases; None while unknown.
        selected: the case numbers that this run is to judge.
        entries: the cases as listed, where known.
        sources: sha256 by role of the files, as they were when the run began.
        records: outcomes by case number.
        expected_checks: names of the items beside the cases that this run is to judge.
        checks: outcomes of such items by name; the static one is there whenever it is on.
        load_failure: entry for `failures` where the cases can't be listed.
        full: this run judges all cases, so it owns the result file.
        problem: what is wrong with the result file.
        cache_ab: what a second run on an empty Triton cache has shown.
        written: sha256 of the result file as it was last written.
    """

    pair: Pair
    path: Path
    total: int | None = None
    selected: tuple[int, ...] = ()
    entries: Sequence[CaseEntry] = ()
    sources: dict[str, str | None] | None = None
    records: dict[int, CaseRecord] = field(default_factory=dict)
    expected_checks: tuple[str, ...] = ()
    checks: dict[str, CheckRecord] = field(default_factory=dict)
    load_failure: dict[str, Any] | None = None
    full: bool = False
    journal: Journal | None = None
    environment: dict[str, Any] | None = None
    problem: str | None = None
    cache_ab: dict[str, Any] | None = None
    written: str | None = None

    @property
    def complete(self) -> bool:
        """Whether everything selected has an outcome."""
        if self.load_failure is not None:
            return True
        return (
            self.total is not None
            and all(k in self.records for k in self.selected)
            and all(name in self.checks for name in self.expected_checks)
        )

    @property
    def objection(self) -> CheckRecord | None:
        """The first check that keeps all cases from passing, whatever their outputs."""
        return result_file.objection_among(self.checks, self.records.values())

    @property
    def passed_cases(self) -> int:
        """Number of cases that passed: none if the implementation is not what it seems."""
        if self.objection is not None:
            return 0
        return sum(record.passed for record in self.records.values())

    @property
    def green(self) -> bool:
        """Whether everything selected passed, and there was something."""
        return (
            self.load_failure is None
            and (self.written is not None or not (self.full and self.complete))
            and bool(self.selected or self.expected_checks)
            and self.complete
            and all(check.passed for check in self.checks.values())
            and all(self.records[k].passed for k in self.selected)
        )

    def overview(self) -> dict[str, Any]:
        """Return the outcome for other reports."""
        return {
            "op_name": self.pair.op,
            "triton_impl_name": self.pair.impl_name,
            "total_cases": self.total,
            "passed_cases": self.passed_cases,
            "result_file": str(self.path) if self.written else None,
            "load_failure": self.load_failure,
            "cache_ab": self.cache_ab,
            "checks": [check.to_json() for check in self.checks.values()],
            "cases": [self.records[k].to_json() for k in sorted(self.records)],
        }


class Ledger:
    """The accounts of all pairs of a run.

    Args:
        output: where the only pair's result goes instead of beside it.
        cmdline: the options that the result file records.
        policies: what becomes of failing checks, by their name; results say so.
        in_process: nothing is isolated in this run; results say so.
        strictness: thresholds of what is asked for beyond the standard; None where nothing is.
        isolation: how files are kept from implementations; results say so.
    """

    def __init__(
        self,
        output: Path | None,
        cmdline: Mapping[str, Any],
        policies: Mapping[str, str] | None = None,
        *,
        in_process: bool = False,
        strictness: Mapping[str, float] | None = None,
        isolation: str = "none",
    ) -> None:
        self.accounts: dict[Path, PairAccount] = {}
        self._output = output
        self._cmdline = dict(cmdline)
        self._policies = dict(policies or {})
        self._in_process = in_process
        self._strictness = strictness
        self._isolation = isolation

    def account(self, pair: Pair) -> PairAccount:
        """Return a pair's account, opening it where there is none."""
        found = self.accounts.get(pair.implementation)
        if found is None:
            shared = names.is_shared(pair.implementation.parent)
            path = self._output or names.verify_result(pair, shared_folder=shared)
            found = self.accounts[pair.implementation] = PairAccount(pair, path)
        return found

    def expect(
        self,
        pair: Pair,
        entries: Sequence[CaseEntry],
        total: int,
        selected: Sequence[int],
        checks: Sequence[str] = (),
    ) -> None:
        """Note what a run is to judge. A run of all cases removes old results first.

        Args:
            pair: the pair.
            entries: its cases, where known.
            total: how many there are.
            selected: numbers of those to be judged.
            checks: names of the other items to be judged.
        """
        account = self.account(pair)
        if account.total is not None:
            return
        account.total = total
        account.entries = entries
        account.selected = tuple(sorted(selected))
        account.expected_checks = tuple(checks)
        account.full = len(account.selected) == total
        account.sources = result_file.sources_of(pair)
        if account.full:
            self._remove_old(account)
            account.journal = Journal(names.journal(account.path), pair.op, pair.impl_name, total)

    def _remove_old(self, account: PairAccount) -> None:
        pair = account.pair
        shared = names.is_shared(pair.implementation.parent)
        for path in (
            account.path,
            names.verify_result(pair, shared_folder=shared),
            names.perf_result(pair, shared_folder=shared),
        ):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                account.problem = f"the old {path.name} can't be removed: {error.strerror}"

    def start(self, pair: Pair, case_idx: int, name: str) -> None:
        """Note that a case begins."""
        account = self.account(pair)
        if account.journal is not None:
            account.journal.started(case_idx, name)

    def add(self, pair: Pair, record: CaseRecord, environment: dict[str, Any] | None) -> CaseRecord:
        """Take in an outcome; a pass after a failure is recorded as flaky.

        Returns:
            The record as it is kept.
        """
        account = self.account(pair)
        earlier = account.records.get(record.case_idx)
        if earlier is not None and record.passed and not earlier.passed:
            data = record.to_json()
            record = CaseRecord.from_json(
                {
                    **data,
                    "flaky": True,
                    "error_msg": earlier.error_msg,
                    "error_type": earlier.error_type,
                }
            )
        account.records[record.case_idx] = record
        if environment is not None:
            account.environment = environment
        if account.journal is not None:
            account.journal.finished(record)
        if account.complete:
            self._conclude(account)
        return record

    def add_check(
        self, pair: Pair, record: CheckRecord, environment: dict[str, Any] | None
    ) -> None:
        """Take in the outcome of a check. One that failed once in this run stays failed."""
        account = self.account(pair)
        earlier = account.checks.get(record.name)
        if earlier is None or earlier.passed:
            account.checks[record.name] = record
        if environment is not None:
            account.environment = environment
        if account.complete:
            self._conclude(account)

    def add_load_failure(
        self, pair: Pair, error_type: str, error_msg: str, environment: dict[str, Any] | None
    ) -> None:
        """Take in that a pair's cases can't be listed."""
        account = self.account(pair)
        account.full = True
        account.environment = environment
        account.load_failure = result_file.failure_entry(1, [], error_type, error_msg)
        self._remove_old(account)
        self._write(account)

    def add_empty(self, pair: Pair, environment: dict[str, Any] | None) -> None:
        """Take in that a task has no case at all: nothing of nothing is no pass."""
        account = self.account(pair)
        account.total, account.full, account.environment = 0, True, environment
        self._remove_old(account)
        self._write(account)

    def finish(self, reason: str) -> None:
        """Close all accounts, once no process of a candidate is left.

        Every result is written again: a candidate may have touched the file of its own pair or
        of an earlier one.

        Args:
            reason: why what did not run did not.
        """
        for account in self.accounts.values():
            if not account.full:
                continue
            if not account.complete:
                self._enter_not_run(account, reason)
                self._conclude(account)
                continue
            if account.written is not None and plain_files.digest(account.path) != account.written:
                account.problem = (
                    f"{account.path.name} was changed by another process while the run lasted; "
                    "it has been written again"
                )
            self._write(account)

    def _conclude(self, account: PairAccount) -> None:
        """Write the result of what is complete, unless what was judged is there no longer."""
        if account.sources is not None:
            changed = result_file.sources_changed(account.pair, account.sources)
            if changed is not None:
                account.checks[result_file.SOURCES] = changed
        self._write(account)

    def _enter_not_run(self, account: PairAccount, reason: str) -> None:
        for case_idx in account.selected:
            if case_idx not in account.records:
                entry = account.entries[case_idx - 1] if account.entries else None
                account.records[case_idx] = CaseRecord.not_run(
                    case_idx,
                    entry.name if entry else f"case{case_idx}",
                    entry.input_desc if entry else [],
                    reason,
                )
        for name in account.expected_checks:
            if name not in account.checks:
                account.checks[name] = CheckRecord.not_run(name, reason)

    def content(self, account: PairAccount) -> dict[str, Any]:
        """Return what a pair's result file holds, or would hold if it were written."""
        pair = account.pair
        cmdline = {"triton_impl_name": pair.impl_name, **self._cmdline}
        return result_file.document(
            pair.op,
            [account.records[k] for k in sorted(account.records)],
            {**(account.environment or {"error": _UNKNOWN}), "cmdline": cmdline},
            account.sources or result_file.sources_of(pair),
            load_failure=account.load_failure,
            checks=account.checks,
            policies=self._policies,
            in_process=self._in_process,
            cache_ab=account.cache_ab,
            strictness=self._strictness,
            isolation=self._isolation,
        )

    def _write(self, account: PairAccount) -> None:
        if not account.full:
            return
        try:
            result_file.make_folder(account.path.parent)
            account.written = result_file.write_atomically(account.path, self.content(account))
        except OSError as error:
            account.problem = f"{account.path} can't be written: {error.strerror}"
            account.written = None
            return
        if account.journal is not None and account.complete:
            try:
                account.journal.remove()
            except OSError as error:
                journal = account.journal.path.name
                account.problem = f"the journal {journal} can't be removed: {error.strerror}"

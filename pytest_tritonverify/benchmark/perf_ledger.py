"""Keep the measurements of a run, and write each pair's report as soon as it is complete.

As with verification, one process of a run owns it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import plain_files
from pytest_tritonverify.benchmark import aggregate, gpu_reference, perf_file
from pytest_tritonverify.benchmark.measurement import FAILED, CaseMeasurement
from pytest_tritonverify.results import names, result_file
from pytest_tritonverify.results.journal import Journal
from pytest_tritonverify.results.records import NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
    from pytest_tritonverify.benchmark.measurement import PerfSettings
    from pytest_tritonverify.discovery import Pair

_UNKNOWN = "not gathered: no case of this run got that far"


@dataclass
class PerfAccount:
    """What is known of one pair's benchmark in this run.

    Attributes:
        pair: the pair.
        path: its report.
        total: number of the pair's cases.
        names: of the items that this run is to measure, by case number.
        sources: sha256 by role of the files, as they were when the run began.
        cases: measurements by case number.
        gate: how the verification stood, as plain data; None before the first measurement.
        refusal: what the gate said where it refused, for people; nothing is written then.
        environment: sections of the environment.
        warnings: `{"code", "message"}` entries.
        journal: stands in for the report while the run lasts.
        content: of the report, as far as it has been drawn up.
        written: sha256 of the report as it was last written.
        problem: what is wrong with the report.
    """

    pair: Pair
    path: Path
    total: int
    names: Mapping[int, str]
    sources: Mapping[str, str | None]
    cases: dict[int, CaseMeasurement] = field(default_factory=dict)
    gate: Mapping[str, Any] | None = None
    refusal: str | None = None
    environment: dict[str, Any] | None = None
    warnings: list[dict[str, str]] = field(default_factory=list)
    journal: Journal | None = None
    content: dict[str, Any] | None = None
    written: str | None = None
    problem: str | None = None

    @property
    def full(self) -> bool:
        """Whether this run measures all cases, so that it owns the report."""
        return len(self.names) == self.total

    @property
    def complete(self) -> bool:
        """Whether every case has a measurement."""
        return all(case_idx in self.cases for case_idx in self.names)

    @property
    def green(self) -> bool:
        """Whether everything was measured, and passed, and has been written down."""
        return (
            self.refusal is None
            and self.complete
            and all(case.passed for case in self.cases.values())
            and (self.written is not None or not self.full)
        )

    def overview(self) -> dict[str, Any]:
        """Return the outcome for other reports."""
        totals = aggregate.total(list(self.cases.values()))
        return {
            "op_name": self.pair.op,
            "triton_impl_name": self.pair.impl_name,
            "total_cases": self.total,
            "passed_cases": totals.passed_cases,
            "speedup_vs_torch": totals.speedup,
            "refusal": self.refusal,
            "result_file": str(self.path) if self.written else None,
        }

    def document(self, perf: PerfSettings, frequency: FrequencyReport | None) -> dict[str, Any]:
        """Return the report's content."""
        content = perf_file.document(
            self.pair.op,
            self.cases.values(),
            gpu_reference.settings_of(self.pair.task, perf),
            environment={
                **(self.environment or {"error": _UNKNOWN}),
                "cmdline": {"triton_impl_name": self.pair.impl_name},
            },
            sources=self.sources,
            frequency=frequency,
            gate=self.gate,
            warnings=self.warnings,
        )
        return gpu_reference.compared(self.pair.task, content)


class PerfLedger:
    """The benchmarks of all pairs of a run.

    Args:
        output: where the only pair's report goes instead of beside it.
        perf: how cases are measured.
    """

    def __init__(self, output: Path | None, perf: PerfSettings) -> None:
        self.accounts: dict[Path, PerfAccount] = {}
        self.perf = perf
        self.frequency: FrequencyReport | None = None
        self._output = output

    def path_of(self, pair: Pair) -> Path:
        """Return where a pair's report goes."""
        shared = names.is_shared(pair.implementation.parent)
        return self._output or names.perf_result(pair, shared_folder=shared)

    def expect(self, pair: Pair, total: int, items: Mapping[int, str]) -> None:
        """Note what a run is to measure. Where that is every case, the old report is removed.

        Args:
            pair: the pair.
            total: how many cases it has.
            items: names of the items to be measured, by case number.
        """
        if pair.implementation in self.accounts or not items:
            return
        sources = result_file.sources_of(pair)
        account = PerfAccount(pair, self.path_of(pair), total, dict(items), sources)
        self.accounts[pair.implementation] = account
        if not account.full:
            return
        try:
            account.path.unlink(missing_ok=True)
        except OSError as error:
            account.problem = f"the old {account.path.name} can't be removed: {error.strerror}"

    def add(
        self,
        pair: Pair,
        case: CaseMeasurement,
        gate: Mapping[str, Any] | None,
        environment: dict[str, Any] | None,
        warnings: Sequence[Mapping[str, str]],
    ) -> None:
        """Take in a measurement; under reruns the last one of a case counts."""
        account = self.accounts[pair.implementation]
        account.cases[case.case_idx] = case
        account.content = None
        account.gate = gate
        if environment is not None:
            account.environment = environment
        account.warnings = [dict(warning) for warning in warnings]
        if account.full:
            self._note(account, case)
            if account.complete:
                self._write(account)

    def refuse(self, pair: Pair, text: str) -> None:
        """Take in that the gate refused a pair."""
        self.accounts[pair.implementation].refusal = text

    @property
    def refusals(self) -> list[str]:
        """What the gate said, once for each pair that it refused."""
        return [a.refusal for a in self.accounts.values() if a.refusal is not None]

    def finish(self, reason: str) -> None:
        """Write the reports of all pairs that were measured, once no process is left.

        Args:
            reason: why what did not run did not.
        """
        for account in self.accounts.values():
            if not account.full or account.refusal is not None or not account.cases:
                continue
            for case_idx, name in account.names.items():
                if case_idx not in account.cases:
                    account.cases[case_idx] = CaseMeasurement(
                        case_idx=case_idx,
                        status=FAILED,
                        error_type=NOT_RUN,
                        error_msg=f"{NOT_RUN}: {reason}",
                        name=name,
                    )
                    account.content = None
            untouched = account.written == plain_files.digest(account.path)
            if account.written is not None and not untouched:
                account.problem = (
                    f"{account.path.name} was changed by another process while the run lasted; it "
                    "has been written again"
                )
            if account.content is None or not untouched or self.frequency is not None:
                self._write(account)

    def content(self, account: PerfAccount) -> dict[str, Any]:
        """Return what a pair's report holds, or would hold if it were written."""
        if account.content is None:
            account.content = account.document(self.perf, self.frequency)
        return account.content

    def _note(self, account: PerfAccount, case: CaseMeasurement) -> None:
        if account.journal is None:
            pair, path = account.pair, names.journal(account.path)
            account.journal = Journal(path, pair.op, pair.impl_name, account.total)
        account.journal.finished(case)

    def _write(self, account: PerfAccount) -> None:
        account.content = None
        try:
            account.written = perf_file.write(account.path, self.content(account))
            if account.journal is not None:
                account.journal.remove()
        except OSError as error:
            account.problem = f"{account.path} can't be written: {error.strerror}"
            account.written = None

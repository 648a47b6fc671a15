"""The benchmarks of a run: who may be measured, by whom, and where it is written down."""

from __future__ import annotations

import datetime as dt
import os
import sys
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import exclusive, history, items
from pytest_tritonverify.benchmark.admission import Admission
from pytest_tritonverify.benchmark.clocks import clocks_of
from pytest_tritonverify.benchmark.frequency import FrequencyError, FrequencyWatch
from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
from pytest_tritonverify.benchmark.keeping import Keeper, Kept
from pytest_tritonverify.benchmark.measurement import FAILED, CaseMeasurement
from pytest_tritonverify.benchmark.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_tritonverify.benchmark.asking import BenchmarkWishes
    from pytest_tritonverify.benchmark.perf_ledger import PerfAccount, PerfLedger
    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.settings import Settings

_WORKERS = "PYTEST_XDIST_WORKER_COUNT"


class Benchmarks:
    """Measures what a run is to measure.

    Args:
        settings: the session's settings.
        wishes: how to measure.
        engine: runs workers.
        ledger: keeps the measurements; None in a process that only runs items for another one.
        keeper: compares and saves reports, where that is asked for.

    Attributes:
        kept: what came of comparing and saving.
    """

    def __init__(
        self,
        settings: Settings,
        wishes: BenchmarkWishes,
        engine: Engine,
        ledger: PerfLedger | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.ledger = ledger
        self.kept = Kept()
        self._keeper = keeper
        self._wishes = wishes
        self._engine = engine
        self._admission = Admission(settings, engine, required=not wishes.perf.not_required)
        self._standings: dict[Path, Standing] = {}
        self._watch: FrequencyWatch | None = None
        self._clock_problem: str | None = None

    def note(self, pair: Pair, content: Mapping[str, Any]) -> None:
        """Take in what an item of the verification publishes."""
        self._standings.setdefault(pair.implementation, Standing()).note(content)

    def measure(self, wanted: items.Wanted, item_timeout: float | None) -> items.Outcome:
        """Measure a case, if its pair may be measured.

        Args:
            wanted: the case.
            item_timeout: seconds that this item may take; None leaves the usual limit.
        """
        standing = self._standings.setdefault(wanted.pair.implementation, Standing())
        passage = self._admission.ask(wanted, standing)
        if not passage.opened:
            return items.Outcome(refusal=passage.words())
        name = self._engine.device.name
        with exclusive.device(name):
            problem = self._watch_clocks(name)
            if problem is not None:
                return items.Outcome(case=_not_measured(wanted, problem), gate=passage.to_json())
            case = self._engine.benchmark(wanted.pair).run_case(
                wanted.case_idx,
                wanted.entries[wanted.case_idx - 1],
                wanted.name,
                self._wishes.perf,
                item_timeout,
            )
        warnings = [{"code": "gate", "message": text} for text in passage.warnings]
        return items.Outcome(case=case, gate=passage.to_json(), warnings=[*warnings, *_company()])

    def _watch_clocks(self, device: str) -> str | None:
        """Lock and watch the clocks from the first measurement on; say why it can't be done."""
        if self._watch is None:
            self._watch = FrequencyWatch(clocks_of(device), self._wishes.perf)
            try:
                self._watch.start()
            except FrequencyError as error:
                self._clock_problem = str(error)
        return self._clock_problem

    def release_clocks(self) -> dict[str, Any] | None:
        """Take locks back; return the report as plain data, or None where nothing was measured."""
        if self._watch is None:
            return None
        return self._watch.stop().to_json()

    def take_clocks(self, report: Mapping[str, Any] | None) -> None:
        """Take in what `release_clocks` returned, in whichever process."""
        if report is not None and self.ledger is not None:
            found, earlier = FrequencyReport.from_json(report), self.ledger.frequency
            self.ledger.frequency = earlier.joined(found) if earlier else found

    def expect(self, pair: Pair, total: int, names: Mapping[int, str]) -> None:
        """Note what is to be measured of a pair."""
        if self.ledger is not None:
            self.ledger.expect(pair, total, names)

    def expect_names(self, pair: Pair, cases: tuple[CaseEntry, ...], wanted: set[str]) -> None:
        """Note what is to be measured, from the names of the items that another process runs."""
        names = {k: items.name_of(entry) for k, entry in enumerate(cases, 1)}
        self.expect(pair, len(cases), {k: name for k, name in names.items() if name in wanted})

    def receive(self, pair: Pair, payload: Mapping[str, Any]) -> None:
        """Enter what an item's report carries into the ledger."""
        if self.ledger is None:
            return
        # Does nothing where it was announced.
        names = {int(case_idx): name for case_idx, name in payload["items"].items()}
        self.ledger.expect(pair, payload["total"], names)
        outcome = items.Outcome.from_json(payload["benchmark"])
        if outcome.refusal is not None:
            self.ledger.refuse(pair, outcome.refusal)
        elif outcome.case is not None:
            environment = payload["environment"]
            self.ledger.add(pair, outcome.case, outcome.gate, environment, outcome.warnings)

    @property
    def accounts(self) -> list[PerfAccount]:
        """The accounts of all pairs that are measured, in their order."""
        if self.ledger is None:
            return []
        return sorted(self.ledger.accounts.values(), key=lambda account: account.pair)

    def account(self, implementation: Path) -> PerfAccount | None:
        """Return the account of the pair with an implementation."""
        return self.ledger.accounts.get(implementation) if self.ledger is not None else None

    def content(self, account: PerfAccount) -> dict[str, Any]:
        """Return what a pair's report holds, or would hold if it were written."""
        assert self.ledger is not None  # noqa: S101 - an account is its
        return self.ledger.content(account)

    @property
    def red(self) -> bool:
        """Whether a pair was not measured, or failed, or the clocks were not as demanded."""
        frequency = self.ledger.frequency if self.ledger is not None else None
        if frequency is not None and frequency.failed:
            return True
        return not all(account.green for account in self.accounts)

    def overview(self) -> list[dict[str, Any]]:
        """Return what came of every pair, for other reports."""
        return [account.overview() for account in self.accounts]

    def announce_refusals(self) -> bool:
        """Print what the gate said to standard error; return whether it refused a pair."""
        refusals = self.ledger.refusals if self.ledger is not None else []
        for text in refusals:
            print(text, file=sys.stderr)  # noqa: T201 - documented
        return bool(refusals)

    def finish(self, reason: str) -> None:
        """Write all reports, once no process of a candidate is left.

        Args:
            reason: why what did not run did not.
        """
        if self.ledger is None:
            return
        self.ledger.finish(reason)
        if self._keeper is not None:
            reports = {
                history.key_of(account.pair, self._keeper.root): self.content(account)
                for account in self.accounts
                if account.written is not None
            }
            self.kept = self._keeper.finish(reports, dt.datetime.now().astimezone())


def _not_measured(wanted: items.Wanted, problem: str) -> CaseMeasurement:
    return CaseMeasurement(
        case_idx=wanted.case_idx,
        input_desc=wanted.entries[wanted.case_idx - 1].input_desc,
        status=FAILED,
        error_type=FrequencyError.__name__,
        error_msg=f"{FrequencyError.__name__}: {problem}",
        name=wanted.name,
    )


def _company() -> list[dict[str, str]]:
    """Warn where other processes of the run keep the machine busy."""
    count = os.environ.get(_WORKERS, "1")
    if not count.isdecimal() or int(count) < 2:  # noqa: PLR2004 - alone
        return []
    text = (
        f"measured by one of {count} processes of pytest-xdist, which may have worked on the "
        "same device meanwhile: times of a run without -n are the ones to rely on"
    )
    return [{"code": "shared_device", "message": text}]

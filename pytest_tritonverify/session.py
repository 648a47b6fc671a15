"""One verification run: what it is about, the engine that does it, and the ledger it fills."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import discovery, execution_check, interpreter_doubts, signals
from pytest_tritonverify.cache_ab import CacheTrial
from pytest_tritonverify.results.claim import Claims
from pytest_tritonverify.results.records import CaseRecord, CheckRecord
from pytest_tritonverify.results.result_file import CHECKS, HIDDEN_STATE
from pytest_tritonverify.screening import Screening
from pytest_tritonverify.settings import absolute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_tritonverify.activation import Activation
    from pytest_tritonverify.benchmark.benchmarks import Benchmarks
    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.compilation.compiling import Compilations
    from pytest_tritonverify.discovery import Findings, Pair
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.results.ledger import Ledger
    from pytest_tritonverify.settings import Settings


@dataclass
class VerifySession:
    """The state of a run in one process.

    Attributes:
        settings: what the user asked for.
        activation: where pairs are collected.
        findings: the pairs found by walking, and what is odd about the folders.
        engine: runs and judges.
        ledger: keeps the outcomes; None in a process that only runs items for another one.
        clocks: what happened to the clocks of the devices, once the session is closed.
        benchmarks: measures, and keeps what was measured; None where nothing is to be.
        compilations: compiles kernels for other devices; None where none is to be.
        screening: the static check of implementations.
    """

    settings: Settings
    activation: Activation
    findings: Findings
    engine: Engine
    ledger: Ledger | None = None
    benchmarks: Benchmarks | None = None
    compilations: Compilations | None = None
    clocks: dict[str, Any] | None = field(init=False, default=None)
    screening: Screening = field(init=False)
    _known: dict[Path, Pair] = field(init=False)
    _environment_sent: set[Path] = field(default_factory=set)
    _claims: Claims = field(default_factory=Claims)

    def __post_init__(self) -> None:
        self.screening = Screening(self.settings)
        known = (*self.activation.named, *self.findings.pairs)
        self._known = {pair.implementation: pair for pair in known}

    def run_case(
        self,
        pair: Pair,
        case_idx: int,
        entries: Sequence[CaseEntry],
        item_timeout: float | None,
    ) -> CaseRecord:
        """Judge one case."""
        entry = entries[case_idx - 1]
        refusal = self.screening.refusal(pair)
        objection = refusal
        if objection is None and case_idx == 1 and self.probing:
            objection = self.probe(pair, item_timeout)
        if objection is not None and not objection.passed:
            return CaseRecord.refused(case_idx, entry.name, entry.input_desc, objection)
        if self.ledger is not None:
            self.ledger.start(pair, case_idx, entry.name)
        judge = self.engine.judge(pair)
        record = judge.run_case(case_idx, entry, len(entries), item_timeout)
        if not self.engine.device.interpreted:
            return record
        return interpreter_doubts.doubted(record, self.engine.fingerprint())

    @property
    def probing(self) -> bool:
        """Whether the models of both sides are compared."""
        return self.settings.hidden_state != "off"

    @property
    def observing(self) -> bool:
        """Whether implementations are examined at run time: not where nothing is isolated."""
        return self.settings.execution != "off" and not self.settings.in_process

    def probe(self, pair: Pair, item_timeout: float | None) -> CheckRecord:
        """Compare what the models of both sides hold; a mismatch is case 1's failure, too."""
        refusal = self.screening.refusal(pair)
        if refusal is not None:
            return CheckRecord.passed_over(HIDDEN_STATE, refusal)
        return self.engine.judge(pair).probe(item_timeout)

    def examine(
        self, pair: Pair, entries: Sequence[CaseEntry], item_timeout: float | None
    ) -> CheckRecord:
        """Run a pair's cases again under observation and draw the conclusion."""
        refusal = self.screening.refusal(pair)
        if refusal is not None:
            return CheckRecord.passed_over(execution_check.CHECK, refusal)
        report = self.engine.judge(pair).examine(entries, item_timeout)
        partial = self.settings.degeneration == "partial"
        return execution_check.concluded(report, self.settings.execution, partial=partial)

    def compile(
        self,
        pair: Pair,
        entries: Sequence[CaseEntry],
        item_timeout: float | None,
        say: Callable[[int, int], None],
    ) -> CheckRecord:
        """Compile the kernels that a pair's cases launch.

        Args:
            pair: the pair.
            entries: its cases.
            item_timeout: seconds that this may take; None leaves the pair's limit.
            say: is told how many of how many compilations are done.
        """
        from pytest_tritonverify.compilation import outcomes

        assert self.compilations is not None  # noqa: S101 - else there is no such item
        refusal = self.screening.refusal(pair)
        if refusal is not None:
            return CheckRecord.passed_over(outcomes.CHECK, refusal)
        judge = self.engine.judge(pair)
        report = judge.compile(self.compilations, len(entries), item_timeout, say)
        return outcomes.concluded(report, pair.implementation.parent)

    def expect(
        self,
        pair: Pair,
        entries: Sequence[CaseEntry],
        total: int,
        selected: Sequence[int],
        checks: Sequence[str],
    ) -> None:
        """Enter into the ledger what is to be judged; the static check counts in any selection."""
        if self.ledger is None:
            return
        self.ledger.expect(pair, entries, total, selected, checks)
        screened = self.screening.record(pair)
        if screened is not None:
            self.ledger.add_check(pair, screened, None)

    def payload(self, pair: Pair, **content: Any) -> dict[str, Any]:
        """Return what a report carries to the process with the ledger, as plain data."""
        if self.benchmarks is not None:
            self.benchmarks.note(pair, content)
        environment = None
        if pair.implementation not in self._environment_sent:
            self._environment_sent.add(pair.implementation)
            environment = self.engine.fingerprint()
        return {
            "implementation": str(pair.implementation),
            "environment": environment,
            **content,
        }

    def claim(self, pairs: Iterable[Pair]) -> None:
        """Hold pairs whose results this run will write, as long as it lasts.

        Raises:
            ClaimedError: another run holds one.
        """
        if self.ledger is not None:
            for pair in pairs:
                self._claims.hold(pair.implementation)

    def pairs_among(self, ids: Sequence[str], root: Path) -> list[Pair]:
        """Return the pairs that node ids of items belong to."""
        paths = dict.fromkeys(absolute(root / nodeid.partition("::")[0]) for nodeid in ids)
        return [pair for pair in map(self._pair, paths) if pair is not None]

    def expect_ids(self, ids: Sequence[str], root: Path) -> None:
        """Enter into the ledger which cases a worker has collected, from its node ids.

        A pair whose listing this process can't see is entered when its first record comes.
        """
        if self.ledger is None:
            return
        names: dict[Path, set[str]] = {}
        for nodeid in ids:
            file, _, name = nodeid.partition("::")
            names.setdefault(absolute(root / file), set()).add(name)
        for path, wanted in names.items():
            pair = self._pair(path)
            listing = self.engine.catalogue.cached(pair) if pair is not None else None
            if pair is None or listing is None or not listing.cases:
                continue
            selected = [k for k, entry in enumerate(listing.cases, 1) if entry.name in wanted]
            checks = [name for name in CHECKS if name in wanted]
            if selected or checks:
                self.expect(pair, listing.cases, len(listing.cases), selected, checks)
            if self.benchmarks is not None:
                self.benchmarks.expect_names(pair, listing.cases, wanted)

    def _pair(self, implementation: Path) -> Pair | None:
        found = self._known.get(implementation)
        # What pytest has collected counts, also where the walk has not come.
        if found is None and implementation.is_file():
            found = discovery.pair_of(implementation)
        return found

    def receive(self, payload: dict[str, Any]) -> None:
        """Enter what a report carries into the ledger."""
        pair = self._pair(Path(payload["implementation"]))
        if self.ledger is None or pair is None:
            return
        environment = payload["environment"]
        if "benchmark" in payload:
            if self.benchmarks is not None:
                self.benchmarks.receive(pair, payload)
            return
        if "total" in payload:
            # Does nothing where the cases were announced.
            self.expect(pair, (), payload["total"], payload["selected"], payload["checks"])
        if "record" in payload:
            self.ledger.add(pair, CaseRecord.from_json(payload["record"]), environment)
        elif "check" in payload:
            self.ledger.add_check(pair, CheckRecord.from_json(payload["check"]), environment)
        elif payload["error_type"] is None:
            self.ledger.add_empty(pair, environment)
        else:
            self.ledger.add_load_failure(
                pair, payload["error_type"], payload["error_msg"], environment
            )

    @property
    def red(self) -> bool:
        """Whether a pair failed a selected case, or there was none where some were demanded."""
        if self.ledger is None:
            return False
        accounts = self.ledger.accounts.values()
        measured = self.benchmarks is not None and bool(self.benchmarks.accounts)
        if not accounts and not measured:
            return self.activation.demanded
        failed = self.benchmarks is not None and self.benchmarks.red
        return failed or not all(account.green for account in accounts)

    def refused(self) -> bool:
        """Say which pairs may not be measured, on standard error; return whether there are any."""
        return self.benchmarks is not None and self.benchmarks.announce_refusals()

    def overview(self) -> dict[str, Any]:
        """Return the outcome of every pair, for other reports."""
        accounts = self.ledger.accounts.values() if self.ledger is not None else ()
        found: dict[str, Any] = {
            "device": self.engine.device.name,
            "pairs": [account.overview() for account in accounts],
        }
        if self.benchmarks is not None:
            found["benchmarks"] = self.benchmarks.overview()
        return found

    def close(self, *, interrupted: bool) -> None:
        """End all processes, then write the results of pairs that did not get through.

        In this order: a candidate must not be able to touch a file that is final.
        """
        try:
            if not interrupted:
                self._try_empty_caches()
        finally:
            with signals.held_back():
                try:
                    self.engine.close()
                    if self.compilations is not None:
                        self.compilations.close()
                    if self.benchmarks is not None:
                        self.clocks = self.benchmarks.release_clocks()
                        self.benchmarks.take_clocks(self.clocks)
                finally:
                    self._finish(interrupted=interrupted)
                    self._claims.give_back()

    def _try_empty_caches(self) -> None:
        """Run pairs with accuracy failures again, where the user wants to know whose they are."""
        if self.ledger is None or not self.settings.cache_ab:
            return
        trial = CacheTrial(self.engine, self.settings)
        for account in self.ledger.accounts.values():
            account.cache_ab = trial.section(account)

    def _finish(self, *, interrupted: bool) -> None:
        if self.ledger is not None:
            found = [account.cache_ab or {} for account in self.ledger.accounts.values()]
            for kept in (self.engine.kept_cache, *(section.get("kept_cache") for section in found)):
                if kept is not None:
                    print(f"Triton 缓存目录已保留: {kept}", file=sys.stderr)  # noqa: T201 - documented
            reason = "the run was interrupted" if interrupted else "the run ended before it"
            self.ledger.finish(reason)
            if self.benchmarks is not None:
                self.benchmarks.finish(reason)

"""Judge pairs case by case: ask the workers, compare, and put the outcome on record."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from pytest_tritonverify.case_run import CaseRun
from pytest_tritonverify.compilation.recorder import Recorder
from pytest_tritonverify.examination import ExecutionExamination
from pytest_tritonverify.probe.probing import Probe
from pytest_tritonverify.results.records import CaseRecord, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.compilation.compiling import Compilations
    from pytest_tritonverify.compilation.outcomes import CompileReport
    from pytest_tritonverify.evidence.report import ExecutionReport
    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.pair_processes import PairProcesses
    from pytest_tritonverify.reported import RunFacts


class PairJudge:
    """Judges the cases of one pair, in any order.

    Args:
        processes: makes the pair's processes.
    """

    def __init__(self, processes: PairProcesses) -> None:
        self.processes = processes
        self.pair = processes.pair
        self.settings = processes.settings
        self.reference = processes.shared
        self.candidate = processes.candidate()
        self.recorder = None
        if self.settings.compile is not None:
            self.recorder = Recorder(self.settings, self.reference, self.candidate)
        self._spent = 0.0
        self._probed: CheckRecord | None = None
        # Now, before the implementation runs: it reads the file that could change itself.
        self._examination = ExecutionExamination(processes)
        self._outcomes: dict[int, dict[str, str] | None] = {}
        self._expired_by: int | None = None
        self.last_cause: BaseException | None = None

    def run_case(
        self, case_idx: int, entry: CaseEntry, total: int, item_timeout: float | None
    ) -> CaseRecord:
        """Run one case and judge it.

        Args:
            case_idx: number of the case, from 1.
            entry: the case as listed.
            total: number of cases, for log lines.
            item_timeout: seconds that this item may take; None leaves the pair's limit.
        """
        self.last_cause = None
        if self._expired_by is not None:
            reason = (
                f"case {self._expired_by} used up the {self.settings.timeout:g} s "
                "that this pair may take (--verify-timeout)"
            )
            return CaseRecord.not_run(case_idx, entry.name, entry.input_desc, reason)
        started = time.monotonic()
        run = CaseRun(self, case_idx, entry, total, item_timeout, started)
        try:
            record = run.judge()
        finally:
            self._spent += time.monotonic() - started
        self.last_cause = run.cause
        if not self.time_left:
            self._expired_by = case_idx
        return record

    def probe(self, item_timeout: float | None) -> CheckRecord:
        """Compare what the models of both sides hold; done once.

        Args:
            item_timeout: seconds that this may take; None leaves the pair's limit.
        """
        if self._probed is None:
            with self._timed(item_timeout) as deadline:
                found = Probe(self.processes).run(deadline)
            self._probed = found.check(str(self.pair.implementation))
        return self._probed

    def examine(self, entries: Sequence[CaseEntry], item_timeout: float | None) -> ExecutionReport:
        """Examine the implementation at work, on all cases, in processes of its own.

        Args:
            entries: the cases as listed.
            item_timeout: seconds that this may take; None leaves the pair's limit.
        """
        with self._timed(item_timeout) as deadline:
            return self._examination.run(entries, deadline, self._outcomes)

    def compile(
        self,
        compilations: Compilations,
        total: int,
        item_timeout: float | None,
        say: Callable[[int, int], None],
    ) -> CompileReport:
        """Compile the kernels that the cases launch; cases that have not been run are run for it.

        Args:
            compilations: compiles.
            total: the number of cases.
            item_timeout: seconds that this may take; None leaves the pair's limit.
            say: is told how many of how many compilations are done.
        """
        assert self.recorder is not None  # noqa: S101 - there is one wherever kernels are compiled
        with self._timed(item_timeout) as deadline:
            known, unknown = self.recorder.recordings(total, deadline)
            # It needs the cores, and another case starts a new one.
            self.candidate.close()
            return compilations.report(self.pair, known, unknown, deadline, say)

    @contextlib.contextmanager
    def _timed(self, item_timeout: float | None) -> Iterator[float]:
        """Book what is done inside on the pair's time; yield the deadline."""
        started = time.monotonic()
        try:
            yield started + min(self.time_left, item_timeout or self.time_left)
        finally:
            self._spent += time.monotonic() - started

    def remember(self, case_idx: int, answer: Answer | None) -> None:
        """Keep the bits of a case's outcome, so that its examination need not run it again.

        Args:
            case_idx: number of the case.
            answer: a result that has been read already; None where the run failed.
        """
        if self.settings.execution == "off" or self.settings.in_process:
            return
        from pytest_tritonverify import outcomes

        found = None if answer is None else outcomes.digests(answer.message["result"], answer.fd)
        self._outcomes[case_idx] = found

    @property
    def time_left(self) -> float:
        """Seconds that the pair may still take."""
        return max(self.settings.timeout - self._spent, 0.0)

    def poison_may_matter(self, facts: RunFacts | None) -> bool:
        """Say whether a failing run may owe its failure to the poison in undefined lanes.

        Args:
            facts: what is known of the run; None where its process died.
        """
        interpreted = self.processes.device == "cpu"
        if not interpreted or self.settings.masked_lanes != "poison" or not self.time_left:
            return False
        return facts is None or bool(facts.undefined_loads)

    def close(self) -> None:
        """End the implementation's process."""
        self.candidate.close()

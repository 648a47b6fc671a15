"""Examine an implementation at work, case by case: who computes what it returns?

The runs are made in workers of their own, so that they change no case's verdict. What the
workers tell is judged here, by `evidence`; outcomes are compared by their bits, from the sealed
memory that holds them.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from pytest_tritonverify.case_examination import CaseExamination
from pytest_tritonverify.evidence.report import (
    ERROR,
    NOTE,
    CaseSummary,
    ExecutionReport,
    Finding,
    merged,
)
from pytest_tritonverify.evidence.sources import Sources
from pytest_tritonverify.supervision import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.pair_processes import PairProcesses

_NO_FIXED_PLAIN: Mapping[int, Mapping[str, str] | None] = {}

# Nobody can foresee what it says.
_CHANCE = random.SystemRandom()


class ExecutionExamination:
    """Examines the cases of one pair.

    Args:
        processes: makes the pair's processes.
    """

    def __init__(self, processes: PairProcesses) -> None:
        self.processes = processes
        self._settings = processes.settings
        self.sources = Sources(processes.pair.implementation)
        self.reference = processes.shared
        self.observer = processes.observer()
        self.plain = processes.candidate()
        self.choose: random.Random = _CHANCE

    def run(
        self,
        entries: Sequence[CaseEntry],
        deadline: float | None = None,
        plain: Mapping[int, Mapping[str, str] | None] = _NO_FIXED_PLAIN,
    ) -> ExecutionReport:
        """Examine cases, and end the processes that this took.

        Args:
            entries: the cases as listed; the first one has number 1.
            deadline: on the clock of `time.monotonic`; default: the pair's time limit from now.
            plain: digests of the outcomes of cases' own runs (`outcomes.digests`), None for runs
                that failed. Those that are missing are run again, without instruments.
        """
        started = time.monotonic()
        if deadline is None:
            deadline = started + self._settings.timeout
        if self._settings.in_process:
            text = "--verify-in-process: nothing can be observed where nothing is isolated"
            return ExecutionReport((Finding("not_examined", NOTE, text, 1),))
        findings: list[Finding] = []
        cases: list[CaseSummary] = []
        try:
            for case_idx, _ in enumerate(entries, 1):
                if time.monotonic() >= deadline:
                    text = "the time that the examination may take is used up (--verify-timeout)"
                    findings.append(Finding("not_examined", ERROR, text, case_idx))
                    cases.append(CaseSummary(case_idx, examined=False))
                    continue
                found, summary = self.examine(case_idx, deadline, plain)
                findings += found
                cases.append(summary)
        finally:
            self.close()
        if self.sources.changed:
            name = self.processes.pair.implementation.name
            text = f"{name} was changed while it was judged, so nobody knows what ran; run it again"
            findings = [Finding("file_changed", ERROR, text, 1)]
        return ExecutionReport(merged(findings), tuple(cases), time.monotonic() - started)

    def examine(
        self,
        case_idx: int,
        deadline: float,
        plain: Mapping[int, Mapping[str, str] | None] = _NO_FIXED_PLAIN,
    ) -> tuple[list[Finding], CaseSummary]:
        """Examine one case.

        Args:
            case_idx: number of the case, from 1.
            deadline: on the clock of `time.monotonic`.
            plain: as for `run`.
        """
        budget = f"{self._settings.timeout:g}秒"
        case = CaseExamination(self, case_idx, deadline, budget, plain)
        try:
            return case.examine()
        except Failure as failure:
            finding = case.not_examined(failure)
            return [finding], CaseSummary(case_idx, examined=False)
        finally:
            case.close()

    def close(self) -> None:
        """End the processes; another case starts new ones."""
        self.observer.close()
        self.plain.close()

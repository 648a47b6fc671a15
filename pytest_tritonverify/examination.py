"""Examine an implementation at work, case by case: who computes what it returns?

The runs are made in workers of their own, so that they change no case's verdict. What the
workers tell is judged here, by `evidence`; outcomes are compared by their bits, from the sealed
memory that holds them.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import starting
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
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.settings import Settings

_NO_FIXED_PLAIN: Mapping[int, Mapping[str, str] | None] = {}


class ExecutionExamination:
    """Examines the cases of one pair.

    Args:
        pair: the pair.
        settings: the session's settings.
        device: name of the device that implementations run on.
        reference: the task's worker, which the session may share.
        spawn: starts a worker from a start request.
    """

    def __init__(
        self,
        pair: Pair,
        settings: Settings,
        device: str,
        reference: Process,
        spawn: Callable[[Message], Any],
    ) -> None:
        self.pair = pair
        self._settings = settings
        self.device = device
        self.reference = reference
        self.sources = Sources(pair.implementation)
        self._spawn = spawn
        self.observer = self._process("observer")
        self.plain = self._process("candidate")
        self.choose = random.SystemRandom()

    def fresh(self) -> Process:
        """Return a process in which nothing has run; the caller closes it."""
        return self._process("candidate")

    def _process(self, role: str) -> Process:
        start = starting.candidate(self.pair, self._settings, self.device, role=role)
        name = self.pair.implementation.name
        return Process(lambda: self._spawn(start), IMPLEMENTATION, name, self.device)

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
            text = (
                f"{self.pair.implementation.name} was changed while it was judged, so nobody knows "
                "what ran; run it again"
            )
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

"""The judge's record of the launches of a pair's cases, from the runs that cases make anyway."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from pytest_tritonverify import configurations
from pytest_tritonverify.compilation.launches import Recording
from pytest_tritonverify.supervision import Failure, Process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.configurations import Attempt
    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.settings import Settings


class Recorder:
    """Keeps what is known of the launches of one pair's cases.

    Args:
        settings: the session's settings.
        reference: the task's worker.
        candidate: the implementation's worker.
    """

    def __init__(self, settings: Settings, reference: Process, candidate: Process) -> None:
        self._settings = settings
        self._reference = reference
        self._candidate = candidate
        self._recordings: dict[int, Recording] = {}
        self._reasons: dict[int, str] = {}

    def note(self, case_idx: int, attempts: Sequence[Attempt]) -> None:
        """Take in the runs of a case. What ran before a failure counts, and isn't everything."""
        found = [attempt.facts.recording for attempt in attempts if attempt.facts is not None]
        launches = {one: None for each in found if each is not None for one in each.launches}
        left_out = sum(each.left_out for each in found if each is not None)
        self._recordings[case_idx] = Recording(tuple(launches), left_out)
        self._reasons.pop(case_idx, None)
        for attempt in attempts:
            if isinstance(attempt.outcome, Failure):
                self.note_failure(case_idx, attempt.outcome)

    def note_failure(self, case_idx: int, failure: Failure) -> None:
        """Take in why a case did not get to its end."""
        self._reasons.setdefault(case_idx, failure.message.partition("\n")[0])

    def recordings(
        self, total: int, deadline: float
    ) -> tuple[dict[int, Recording], dict[int, str]]:
        """Return the launches of all cases, running those that have not been run.

        Args:
            total: the number of cases.
            deadline: on the clock of `time.monotonic`.

        Returns:
            The launches by number of the case, and for those whose launches are not, or not all,
            known the reason.
        """
        for case_idx in range(1, total + 1):
            if case_idx in self._recordings or case_idx in self._reasons:
                continue
            if time.monotonic() >= deadline:
                self._reasons[case_idx] = "the time is used up (--verify-timeout)"
                continue
            self._run(case_idx, deadline)
        return dict(self._recordings), dict(self._reasons)

    def _run(self, case_idx: int, deadline: float) -> None:
        budget = f"{self._settings.timeout:g}秒"
        fds: list[int] = []

        def taken(answer: Answer) -> Answer:
            if answer.fd is not None:
                fds.append(answer.fd)
            return answer

        try:
            self._reference.post({"op": "inputs", "case_idx": case_idx})
            inputs = taken(self._reference.result(deadline, budget))

            def run(selection: int | str | None) -> Answer:
                request = {"op": "run", "case": inputs.message["case"], "configuration": selection}
                self._candidate.post(request, inputs.fd)
                return taken(self._candidate.result(deadline, budget))

            self.note(case_idx, configurations.attempts(run, self._settings.autotune))
        except Failure as failure:
            self.note_failure(case_idx, failure)
        finally:
            for fd in fds:
                os.close(fd)

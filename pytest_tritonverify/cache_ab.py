"""Whether accuracy failures are the compile cache's: run the same code again on an empty one.

The rule is the documented one for blaming a cache: where both runs end alike the code is wrong,
where they differ the compiler is under suspicion. A difference alone proves little, since a
kernel may be unstable by itself; so both runs are repeated, each on its own cache, and have to end
as before. No verdict changes by any of this.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.own_cache import discard, keep, own_cache
from pytest_tritonverify.results.records import NOT_RUN, TIMEOUT
from pytest_tritonverify.results.result_file import CHECKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.results.ledger import PairAccount
    from pytest_tritonverify.results.records import CaseRecord
    from pytest_tritonverify.settings import Settings

Code = Literal[
    "accuracy_defect", "compiler_defect_suspected", "unstable", "not_isolated", "not_finished"
]
# The documented words, where there are some.
_CONCLUSIONS: dict[Code, str] = {
    "accuracy_defect": "真实精度缺陷",
    "compiler_defect_suspected": "编译器缺陷嫌疑",
}
_MESSAGES: dict[Code, str] = {
    "accuracy_defect": "with an empty cache the same cases fail in the same way. It is a real "
    "accuracy defect: mend the code; the cache is not to blame",
    "compiler_defect_suspected": "with an empty cache the outcome is another one, and with either "
    "cache it repeats. It may be a defect of the compiler: report it with the cache that was kept, "
    "which holds the new binaries, and with both environments",
    "unstable": "the outcome changes from run to run, with the same cache too, so nothing is known "
    "of the cache: look for a race, for memory that is read before it is written, or for results "
    "that depend on earlier cases",
    "not_isolated": "TRITON_CACHE_DIR does not decide where Triton's cache is "
    "(cache.fresh_effective is not true), so there was no empty cache; unset TRITON_CACHE_MANAGER "
    "and TRITON_REMOTE_CACHE_BACKEND and run it again",
    "not_finished": "running the cases again took longer than --verify-timeout allows, so there is "
    "nothing to compare",
}
# What comparators say. Lanes that a load leaves undefined are the kernel's fault in any case.
_VERDICTS = ("AccuracyError", "AssertionError")


@dataclass(frozen=True)
class Outcome:
    """How a run of a pair's cases ended.

    Attributes:
        failures: error types by case number.
        finished: all cases were run.
    """

    failures: Mapping[int, str]
    finished: bool = True


def repeatable(account: PairAccount) -> list[int]:
    """Return which cases are to be run again: all that ran, in their order.

    Not the failing ones alone: an implementation may remember what it did in earlier cases.

    Returns:
        Numbers of cases; none where no comparator has found an output wrong, or where not the
        outputs decide.
    """
    if not account.complete or account.objection is not None:
        return []
    if not any(map(_is_accuracy_failure, account.records.values())):
        return []
    return [k for k, record in sorted(account.records.items()) if _ran(record)]


def _is_accuracy_failure(record: CaseRecord) -> bool:
    return not record.passed and record.phase == "compare" and record.error_type in _VERDICTS


def _ran(record: CaseRecord) -> bool:
    # A case that hangs would take all the time that there is.
    return record.phase not in CHECKS and record.error_type not in (NOT_RUN, TIMEOUT)


def outcome_of(records: Mapping[int, CaseRecord], cases: Sequence[int]) -> Outcome:
    """Return how cases ended, of those that are compared."""
    chosen = [records[k] for k in cases if k in records]
    failed = {r.case_idx: r.error_type or "Error" for r in chosen if not r.passed}
    finished = len(chosen) == len(cases) and NOT_RUN not in failed.values()
    return Outcome(failed, finished)


@dataclass(frozen=True)
class Runs:
    """The runs of a trial, in their order; None for one that was not made.

    Attributes:
        first: the one that the verdicts come from.
        fresh: on a cache that was empty.
        fresh_again: on the cache that this has filled; made where the two differ.
        first_again: on the cache of the first; made where the new one's outcome repeats.
    """

    first: Outcome
    fresh: Outcome | None = None
    fresh_again: Outcome | None = None
    first_again: Outcome | None = None

    @property
    def differ(self) -> bool:
        """Whether the outcome on the empty cache is another one."""
        return (
            self.fresh is not None
            and self.fresh.finished
            and self.fresh.failures != self.first.failures
        )


def conclude(runs: Runs) -> Code:
    """Draw the conclusion from runs on caches that are really two."""
    if runs.fresh is None or not runs.fresh.finished:
        return "not_finished"
    if not runs.differ:
        return "accuracy_defect"
    # In this order, so that what changes from one run to the next is not taken for a cache's work.
    for before, again in ((runs.fresh, runs.fresh_again), (runs.first, runs.first_again)):
        if again is None or not again.finished:
            return "not_finished"
        if again.failures != before.failures:
            return "unstable"
    return "compiler_defect_suspected"


class CacheTrial:
    """Runs the cases of pairs again.

    Args:
        engine: the session's engine.
        settings: the session's settings. All runs of a pair together may take as long as the pair.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings

    def section(self, account: PairAccount) -> dict[str, Any] | None:
        """Return what is found about a pair, as the result file holds it; None for nothing."""
        cases = repeatable(account)
        if not cases:
            return None
        entries = account.entries or self._engine.catalogue.list(account.pair).cases
        if len(entries) < cases[-1]:
            return None
        started = time.monotonic()
        folder = own_cache()
        runs = Runs(outcome_of(account.records, cases))
        try:
            environment = self._engine.fingerprint_on(folder)
            isolated = environment.get("cache", {}).get("fresh_effective") is True
            if isolated:
                run = partial(self._run, account, entries, cases, started)
                runs = replace(runs, fresh=run(folder))
                if runs.differ:
                    runs = replace(runs, fresh_again=run(folder))
                if runs.differ and runs.fresh_again == runs.fresh:
                    runs = replace(runs, first_again=run(None))
        finally:
            kept = runs.differ or self._settings.keep_cache
            (keep if kept else discard)(folder)
        code = conclude(runs) if isolated else "not_isolated"
        return {
            "code": code,
            "conclusion": _CONCLUSIONS.get(code),
            "message": _MESSAGES[code],
            "first": _run_section(runs.first, account.environment or self._engine.fingerprint()),
            "fresh": _run_section(runs.fresh, environment),
            "fresh_again": _listed(runs.fresh_again),
            "first_again": _listed(runs.first_again),
            "cases": cases,
            "kept_cache": folder if kept else None,
            "seconds": time.monotonic() - started,
        }

    def _run(
        self,
        account: PairAccount,
        entries: Sequence[CaseEntry],
        cases: Sequence[int],
        started: float,
        folder: str | None,
    ) -> Outcome:
        left = self._settings.timeout - (time.monotonic() - started)
        if left <= 0:
            return Outcome({}, finished=False)
        settings = replace(self._settings, timeout=left, execution="off")
        judge = self._engine.another_judge(account.pair, settings, folder)
        records: dict[int, CaseRecord] = {}
        try:
            for case_idx in range(1, cases[-1] + 1):
                if case_idx in cases:
                    entry = entries[case_idx - 1]
                    records[case_idx] = judge.run_case(case_idx, entry, len(entries), None)
                else:
                    # Its process was lost there, and with it whatever it remembered.
                    judge.close()
        finally:
            judge.close()
        return outcome_of(records, cases)


def _run_section(outcome: Outcome | None, environment: Mapping[str, Any]) -> dict[str, Any]:
    # What is on record of the command line belongs to the result as a whole.
    sections = {name: part for name, part in environment.items() if name != "cmdline"}
    return {"failures": _listed(outcome), "environment": sections}


def _listed(outcome: Outcome | None) -> list[dict[str, Any]] | None:
    """Return the failures of a run as builtins; None of one that did not get through."""
    if outcome is None or not outcome.finished:
        return None
    return [{"case_idx": k, "error_type": kind} for k, kind in sorted(outcome.failures.items())]

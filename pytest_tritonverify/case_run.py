"""One case of a pair on its way through the workers: run, compare, and put on record."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import time
from typing import TYPE_CHECKING

from pytest_tritonverify import (
    configurations,
    interpreter_doubts,
    out_of_bounds,
    precise_golden,
    trials,
    undefined_lanes,
)
from pytest_tritonverify.configurations import Attempt
from pytest_tritonverify.execution.wire import WireError
from pytest_tritonverify.reported import RunFacts
from pytest_tritonverify.results.records import CRASH, FAILED, PASSED, CaseRecord
from pytest_tritonverify.stress import Repeats
from pytest_tritonverify.supervision import IMPLEMENTATION, VERIFIER, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.comparison import Comparison, Finer, Strictness
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.judge import PairJudge
    from pytest_tritonverify.precise_golden import Precise

logger = logging.getLogger("pytest_tritonverify")


class CaseRun:
    """One case on its way through the workers."""

    def __init__(
        self,
        judge: PairJudge,
        case_idx: int,
        entry: CaseEntry,
        total: int,
        item_timeout: float | None,
        started: float,
    ) -> None:
        self._judge = judge
        self._case_idx = case_idx
        self._entry = entry
        self._total = total
        self._label = f"[用例 {case_idx}/{total}]"
        self._started = started
        limit, allowed = judge.time_left, judge.settings.timeout
        if item_timeout is not None and item_timeout < limit:
            limit = allowed = item_timeout
        self._deadline = started + limit
        self._budget = f"{allowed:g}秒"
        self._input_desc = entry.input_desc
        self._golden_device: str | None = None
        self._fds: list[int] = []
        self._precise: Precise | None = None
        self.cause: BaseException | None = None

    def judge(self) -> CaseRecord:
        """Return the outcome, whatever it is."""
        try:
            return self._judge_case()
        except Failure as failure:
            if self._judge.recorder is not None:
                self._judge.recorder.note_failure(self._case_idx, failure)
            return self._failed(failure)
        finally:
            for fd in self._fds:
                os.close(fd)

    def _judge_case(self) -> CaseRecord:
        settings = self._judge.settings
        inputs = self._ask_inputs(0)
        self._input_desc = inputs.message["input_desc"]
        self._check_total(inputs.message["total"])
        record = self._judge_inputs(inputs, stressed=settings.stress > 1)
        if settings.trials == 1:
            return record
        seen, same = {trials.fingerprint(inputs)}, 0
        others: dict[int, CaseRecord] = {}
        for seed in range(1, settings.trials):
            with self._closing():
                inputs = self._ask_inputs(seed)
                self._check_total(inputs.message["total"])
                found = trials.fingerprint(inputs)
                same += found in seen
                seen.add(found)
                others[seed] = self._judge_inputs(inputs, further=True)
        return trials.noted(record, others, same)

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        """Close afterwards what came from the workers meanwhile."""
        before = len(self._fds)
        try:
            yield
        finally:
            for fd in self._fds[before:]:
                os.close(fd)
            del self._fds[before:]

    def _ask_inputs(self, seed: int) -> Answer:
        reference = self._judge.reference
        request = {"op": "inputs", "case_idx": self._case_idx, "seed": seed}
        reference.post(request)
        try:
            return self._take(reference.result(self._deadline, self._budget))
        except Failure as failure:
            if seed:
                failure.message += f"\nThat was with the inputs of seed {seed} (--verify-trials)."
            raise

    def _judge_inputs(
        self, inputs: Answer, *, stressed: bool = False, further: bool = False
    ) -> CaseRecord:
        """Judge the case on a set of inputs.

        Args:
            inputs: the set.
            stressed: run it as often as is asked for.
            further: it is not the set that the verdict is about in the first place.
        """
        reference, candidate = self._judge.reference, self._judge.candidate
        begun = time.monotonic()
        attempts = configurations.attempts(
            lambda selection: self._run(candidate, inputs, selection), self._judge.settings.autotune
        )
        if self._judge.recorder is not None and not further:
            self._judge.recorder.note(self._case_idx, attempts)
        repeats = self._repeated(inputs, attempts[0]) if stressed else None
        # Not before: while the implementation can still change its answer there is no golden
        # for it to find, in whichever process or file it may look.
        asked = time.monotonic()
        reference.post({"op": "golden", "case": inputs.message["case"]}, inputs.fd)
        try:
            golden = self._take(reference.result(self._deadline, self._budget))
        except Failure as failure:
            failure.apportion(asked - begun, self._deadline - self._started)
            raise
        self._note_golden(golden.message)
        if self._judge.settings.strict or self._wants_finer:
            self._precise = precise_golden.ask(
                reference,
                inputs,
                golden,
                lambda: self._take(reference.result(self._deadline, self._budget)),
            )
        for attempt in attempts:
            record = self._concluded(attempt, inputs, golden)
            if attempt is attempts[0] and not further:
                self._remember(attempt, record)
            if not record.passed:
                break
        record = configurations.blamed(record, attempt)
        # What was found in undefined lanes may have become an address outside of all tensors.
        strayed = attempt.facts is not None and bool(attempt.facts.strays)
        doubtful = not record.passed or strayed
        if doubtful and self._judge.poison_may_matter(attempt.facts):
            record = self._look_again(record, attempt, inputs, golden)
        if repeats is None:
            return record
        selection = attempts[0].selection
        return repeats.noted(
            record, lambda answer: self._concluded(Attempt(selection, answer), inputs, golden)
        )

    @property
    def _wants_finer(self) -> bool:
        """Whether the golden is to be of a higher precision than the reference's own."""
        settings = self._judge.settings
        # Moved data have the bits that they had.
        return settings.golden == "float64" and not settings.non_compute

    def _repeated(self, inputs: Answer, first: Attempt) -> Repeats:
        """Run the case as often as is asked for, under stress."""
        candidate, settings = self._judge.candidate, self._judge.settings

        def digests(answer: Answer) -> dict[str, str]:
            from pytest_tritonverify import outcomes

            try:
                return outcomes.digests(answer.message["result"], answer.fd)
            except (WireError, KeyError) as error:
                raise self._nonsense(candidate, error) from None

        def run(variation: Message) -> Answer:
            request = {
                "op": "run",
                "case": inputs.message["case"],
                "configuration": first.selection,
                "variation": variation,
            }
            candidate.post(request, inputs.fd)
            return self._take(candidate.result(self._deadline, self._budget))

        repeats = Repeats(self._judge.processes.device, digests)
        repeats.add_first(first.outcome)
        repeats.make(settings.stress, run, self._drop)
        return repeats

    def _drop(self, answer: Answer) -> None:
        if answer.fd is not None:
            self._fds.remove(answer.fd)
            os.close(answer.fd)

    def _concluded(self, attempt: Attempt, inputs: Answer, golden: Answer) -> CaseRecord:
        candidate, outcome = self._judge.candidate, attempt.outcome
        if isinstance(outcome, Failure):
            record = self._failed(outcome)
        else:
            comparison = self._compare(candidate, inputs, golden, outcome)
            record = self._judged(comparison, candidate.output)
        facts = attempt.facts
        record = dataclasses.replace(
            record,
            configurations=configurations.described(facts),
            standin=facts.standin if facts else None,
        )
        # The reference may fail, too, before anything is to be said of the implementation.
        if facts is None or record.side not in (None, IMPLEMENTATION):
            return record
        record = interpreter_doubts.restored(record, facts)
        return out_of_bounds.breached(out_of_bounds.noted(record, facts.strays), facts)

    def _remember(self, attempt: Attempt, record: CaseRecord) -> None:
        outcome = attempt.outcome
        if isinstance(outcome, Failure) or record.error_type == CRASH:
            self._judge.remember(self._case_idx, None)
        else:
            self._judge.remember(self._case_idx, outcome)

    def _look_again(
        self, record: CaseRecord, attempt: Attempt, inputs: Answer, golden: Answer
    ) -> CaseRecord:
        """Find out whether a case fails, or strays, only because undefined lanes hold no zeros."""
        zeros = self._judge.processes.candidate(masked_lanes="zero")
        facts, again = attempt.facts, None
        passes = False
        try:
            actual = self._run(zeros, inputs, attempt.selection)
            again = RunFacts.of(actual.message)
            passes = self._compare(zeros, inputs, golden, actual).passed and not again.strays
        except Failure as failure:
            again = again or failure.facts
        finally:
            zeros.close()
        loads = next((f.undefined_loads for f in (facts, again) if f and f.undefined_loads), ())
        if not loads or (record.passed and not passes):
            return record
        if not passes:
            return undefined_lanes.cleared(record, loads)
        self.cause = None
        return undefined_lanes.blamed(record, loads)

    def _run(self, candidate: Process, inputs: Answer, selection: int | str | None) -> Answer:
        request = {"op": "run", "case": inputs.message["case"], "configuration": selection}
        candidate.post(request, inputs.fd)
        return self._take(candidate.result(self._deadline, self._budget))

    def _take(self, answer: Answer) -> Answer:
        if answer.fd is not None:
            self._fds.append(answer.fd)
        return answer

    def _check_total(self, made: int) -> None:
        """Refuse a listing that is not the task's: a case left out would pass unseen.

        Raises:
            Failure: the task makes another number of cases than were listed.
        """
        if made != self._total:
            text = (
                f"ListingError: {self._judge.pair.task.name} makes {made} cases now, but "
                f"{self._total} were listed; if it is not its input function that changes, "
                "remove the listing with --cache-clear"
            )
            raise Failure(VERIFIER, "ListingError", text, "inputs")

    def _note_golden(self, message: Message) -> None:
        self._golden_device = message["golden_device"]
        fallback = message.get("fallback")
        if fallback:
            text = f"{fallback['type']}: {fallback['message']}"
            logger.warning(
                "%s golden 落 CPU 时执行失败,回退 golden 到 %s 重试: %s",
                self._label,
                str(message["golden_device"]).upper(),
                text.partition("\n")[0],
            )

    def _compare(
        self, candidate: Process, inputs: Answer, golden: Answer, actual: Answer
    ) -> Comparison:
        """Compare an answer with the golden.

        Raises:
            Failure: what the implementation's process sent is no answer.
        """
        # It imports torch, which a run that compares nothing never does.
        from pytest_tritonverify.comparison import Parcel, compare, rules_of

        settings = self._judge.settings
        facts = RunFacts.of(actual.message)
        if settings.masked_lanes == "zero":
            # Such lanes explain no NaN and no huge number then.
            facts = dataclasses.replace(facts, undefined_loads=None)
        try:
            return compare(
                Parcel(inputs.message["case"]["call"], inputs.fd),
                Parcel.of(golden),
                Parcel.of(actual),
                rules_of(settings, self._judge.pair.task),
                lambda line: logger.info("%s", line),
                facts,
                self._strictness() if settings.strict else None,
                self._finer(),
            )
        except WireError as error:
            raise self._nonsense(candidate, error) from None

    def _nonsense(self, candidate: Process, error: Exception) -> Failure:
        candidate.close()
        text = f"{CRASH}: {self._judge.pair.implementation.name} sent no proper result: {error}"
        return Failure(IMPLEMENTATION, CRASH, text, "transfer")

    def _finer(self) -> Finer | None:
        """Return the golden of a higher precision, where it is wanted and there is one."""
        from pytest_tritonverify.comparison import Finer, Parcel

        precise = self._precise
        if not self._wants_finer or precise is None or precise.answer is None:
            return None
        answer = precise.answer
        return Finer(str(precise.precision), Parcel.of(answer))

    def _strictness(self) -> Strictness | None:
        from pytest_tritonverify.comparison import Parcel, Strictness

        precise = self._precise
        if precise is None:
            return None
        golden, answer = None, precise.answer
        if answer is not None:
            golden = Parcel.of(answer)
        limits = self._judge.settings.strict_limits
        return Strictness(limits, precise.precision, golden, precise.missing)

    def _judged(self, comparison: Comparison, output: str) -> CaseRecord:
        warnings = [{"code": c.code, "message": c.message} for c in comparison.cautions]
        precise = self._precise
        if self._wants_finer and precise is not None and precise.precision is None:
            text = (
                "the golden is the reference's own output and not one of float64: "
                f"{precise.missing}"
            )
            warnings.append({"code": "golden_precision", "message": text})
        return CaseRecord(
            case_idx=self._case_idx,
            name=self._entry.name,
            status=PASSED if comparison.passed else FAILED,
            input_desc=self._input_desc,
            seconds=time.monotonic() - self._started,
            golden_device=self._golden_device,
            side=None if comparison.passed else IMPLEMENTATION,
            phase=None if comparison.passed else "compare",
            error_type=comparison.error_type,
            error_msg=None if comparison.passed else comparison.message,
            metrics=comparison.metrics,
            outputs=comparison.entries(),
            warnings=warnings,
            output=output,
            golden_precision=comparison.golden_precision,
        )

    def _failed(self, failure: Failure) -> CaseRecord:
        self.cause = failure.cause
        return CaseRecord(
            case_idx=self._case_idx,
            name=self._entry.name,
            status=FAILED,
            input_desc=self._input_desc,
            seconds=time.monotonic() - self._started,
            golden_device=self._golden_device,
            side=failure.side,
            phase=failure.phase,
            error_type=failure.error_type,
            error_msg=failure.message,
            file=failure.file,
            line=failure.line,
            output=failure.output,
        )

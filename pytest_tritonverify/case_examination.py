"""One case of an examination on its way through the workers."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.evidence import again, conclusions, observations
from pytest_tritonverify.evidence.case import Evidence, GoldenFact, Inputs, Repeats
from pytest_tritonverify.evidence.observations import Endurance, Observation, Replay
from pytest_tritonverify.evidence.report import ERROR, NOTE, CaseSummary, Finding
from pytest_tritonverify.execution.wire import WireError
from pytest_tritonverify.results.records import TIMEOUT
from pytest_tritonverify.supervision import IMPLEMENTATION, REFERENCE, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_tritonverify.examination import ExecutionExamination
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer

# Operators that no kernel's author uses, and that every torch since 2.1 has.
_MARKS = (
    "special_airy_ai",
    "special_bessel_j0",
    "special_bessel_j1",
    "special_bessel_y0",
    "special_bessel_y1",
    "special_entr",
    "special_i0e",
    "special_i1e",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_log_ndtr",
)
# Calls beyond the replayed one: so many that nobody can count on their number. Their launches
# have no effect, so that they cost next to nothing.
_FURTHER_CALLS = (8, 16)
# Seconds for a run on garbage, which may take longer than a proper one, or for ever.
_GARBAGE_TIMEOUT = 30.0


class CaseExamination:
    """Examines one case.

    Args:
        examination: the pair's, with its processes.
        case_idx: number of the case, from 1.
        deadline: on the clock of `time.monotonic`.
        budget: the time allowed, in words.
        plain: digests of cases' own runs, as for `ExecutionExamination.run`.
    """

    def __init__(
        self,
        examination: ExecutionExamination,
        case_idx: int,
        deadline: float,
        budget: str,
        plain: Mapping[int, Mapping[str, str] | None],
    ) -> None:
        self._all = examination
        self._case_idx = case_idx
        self._deadline = deadline
        self._budget = budget
        self._fixed = plain
        self._fds: list[int] = []
        self._plain_failed = plain.get(case_idx, {}) is None
        self._marks = examination.choose.sample(_MARKS, 4)
        self._calls = examination.choose.randint(*_FURTHER_CALLS)
        self._nonce = examination.choose.getrandbits(32)
        self._case: tuple[Message, int | None] = ({}, None)
        self._seed = 0
        self._variant: tuple[Message, int | None] | None = None
        self._extra: list[Finding] = []
        self._observed: Answer | None = None
        self._replayed: Answer | None = None

    def close(self) -> None:
        """Close what came from the workers."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def examine(self) -> tuple[list[Finding], CaseSummary]:
        """Make the runs, and whatever a conclusion needs beyond them.

        Raises:
            Failure: the case can't be observed; `not_examined` says what that means.
        """
        evidence = self._evidence()
        # The golden comes last: while the implementation works there is none to be found.
        order = (
            (conclusions.CONFIRMATION, self._confirm),
            (conclusions.REPEATS, self._repeat),
            (conclusions.REFERENCE, self._ask_reference),
            (conclusions.GOLDEN, self._ask_golden),
        )
        for need, fulfil in order:
            if need in conclusions.needs(evidence):
                fulfil(evidence)
        return [*conclusions.conclude(evidence), *self._extra], conclusions.summary(evidence)

    def _evidence(self) -> Evidence:
        """Make the runs that every case needs."""
        inputs = self._ask_inputs()
        # At the same time: the other process has a core of its own where there are two.
        asked = self._case_idx not in self._fixed
        waiting = self._posted(self._all.observer, self._observe_request())
        plain_waiting = self._posted(self._all.plain, self._run_request()) if asked else None
        observed: Answer | Failure
        try:
            observed = self._collected(self._all.observer, waiting)
        except Failure as failure:
            observed = failure
        plain = self._plain(plain_waiting) if asked else self._fixed[self._case_idx]
        self._plain_failed = plain is None
        if isinstance(observed, Failure):
            raise observed
        self._observed = observed
        evidence = Evidence(
            case_idx=self._case_idx,
            sources=self._all.sources,
            inputs=inputs,
            observation=self._read(Observation.of, observed.message.get("observed")),
            observed=self._digests(observed),
            marks=(self._marks[0], self._marks[1], self._marks[2], self._marks[3]),
            interpreted=self._all.processes.device == "cpu",
            plain=plain,
        )
        self._replay(evidence)
        self._endure(evidence)
        self._knock_out(evidence)
        return evidence

    def _ask_inputs(self) -> Inputs:
        reference = self._all.reference
        answer = self._asked(reference, {"op": "inputs", "case_idx": self._case_idx})
        self._case = (answer.message["case"], answer.fd)
        self._seed = self._all.choose.getrandbits(31)
        answer = self._asked(
            reference, {"op": "variant", "case_idx": self._case_idx, "seed": self._seed}
        )
        found = answer.message
        if found["altered"]:
            self._variant = (found["case"], answer.fd)
        return Inputs(found["tensors"], found["floating"], found["altered"])

    def _observe_request(self) -> Message:
        return {
            "op": "observe",
            "case": self._case[0],
            "marks": self._marks[:2],
            "nonce": self._nonce,
        }

    def _run_request(self) -> Message:
        return {"op": "run", "case": self._case[0]}

    def _posted(self, process: Process, request: Message) -> Failure | None:
        """Send a request of this case; return what keeps it from being sent."""
        try:
            process.post(request, self._case[1])
        except Failure as failure:
            return failure
        return None

    def _collected(self, process: Process, failure: Failure | None) -> Answer:
        if failure is not None:
            raise failure
        return self._take(process.result(self._deadline, self._budget))

    def _plain(self, failure: Failure | None) -> Mapping[str, str] | None:
        try:
            return self._digests(self._collected(self._all.plain, failure))
        except Failure:
            return None

    def _replay(self, evidence: Evidence) -> None:
        if self._variant is None:
            return
        request = {
            "op": "replay",
            "case": self._variant[0],
            "marks": self._marks[2:3],
            "nonce": self._nonce,
        }
        try:
            answer = self._asked(self._all.observer, request, self._variant[1])
        except Failure as failure:
            self._judge_failed_replay(failure)
            return
        evidence.replay = self._read(Replay.of, answer.message.get("replayed"))
        evidence.replayed = self._digests(answer)
        self._replayed = answer

    def _judge_failed_replay(self, failure: Failure) -> None:
        """A second call may fail where a first one on the same values fails, too."""
        if failure.error_type == "NotReplayableError" or self._variant is None:
            return
        try:
            self._asked(self._all.plain, {"op": "run", "case": self._variant[0]}, self._variant[1])
        except Failure:
            return
        text = (
            "a second call of the same model, with other values in the same tensors, fails, and a "
            f"first one does not: {failure.message.partition(chr(10))[0]}"
        )
        self._extra.append(Finding("second_call_fails", ERROR, text, self._case_idx))

    def _endure(self, evidence: Evidence) -> None:
        evidence.endurance = self._further_calls(launching=False)

    def _confirm(self, evidence: Evidence) -> None:
        """Garbage may have led the calls astray: the same again with proper values."""
        evidence.confirmed = self._further_calls(launching=True)

    def _further_calls(self, *, launching: bool) -> Endurance | None:
        request = {
            "op": "endure",
            "calls": self._calls,
            "launching": launching,
            "marks": self._marks[3:],
        }
        limit = self._deadline if launching else self._soon()
        try:
            self._all.observer.post(request)
            answer = self._take(self._all.observer.result(limit, self._budget))
        except Failure:
            return None
        found: Endurance = self._read(Endurance.of, answer.message.get("endured"))
        return found

    def _knock_out(self, evidence: Evidence) -> None:
        request = {"op": "knock_out", "case": self._case[0]}
        try:
            self._all.observer.post(request, self._case[1])
            answer = self._take(self._all.observer.result(self._soon(), self._budget))
        except Failure:
            return
        if self._read(observations.broke_off, answer.message.get("knocked_out")) is None:
            evidence.knocked_out = self._digests(answer)

    def _repeat(self, evidence: Evidence) -> None:
        """Find out whether runs of a kind repeat themselves bit by bit."""
        plain, observer = self._all.plain, self._all.observer
        wanted = [
            (plain, self._run_request()),
            (plain, self._run_request()),
            (observer, self._observe_request()),
            (observer, self._run_request()),
        ]
        found: list[Mapping[str, str] | None] = []
        for process, request in wanted:
            try:
                found.append(self._digests(self._asked(process, request, self._case[1])))
            except Failure:
                found.append(None)
        evidence.repeats = Repeats(
            plain=tuple(one for one in found[:2] if one is not None),
            observed=tuple(one for one in found[2:3] if one is not None),
            beside=found[3],
        )

    def _ask_reference(self, evidence: Evidence) -> None:
        request = {"op": "operators", "case": self._case[0]}
        try:
            answer = self._asked(self._all.reference, request, self._case[1])
        except Failure:
            return
        if answer.message["pure"]:
            evidence.reference = self._read(observations.operators_of, answer.message["operators"])

    def _ask_golden(self, evidence: Evidence) -> None:
        from pytest_tritonverify import outcomes
        from pytest_tritonverify.execution import tensors

        answer, other = self._golden(self._case), None
        golden, views = self._opened(answer), frozenset(answer.message["views"])
        if self._variant is not None:
            try:
                other = self._opened(self._golden(self._variant))
            except Failure:
                other = None
        call = tensors.unpack(self._case[0]["call"], self._case[1])
        observed = self._opened(self._observed)
        fixed = evidence.inputs.tensors == 0

        def facts(answer: Answer | None) -> dict[str, GoldenFact]:
            replayed = None if answer is None else self._opened(answer)
            return outcomes.golden_facts(
                call, golden, other, observed, replayed, fixed=fixed, views=views
            )

        evidence.golden = facts(self._replayed)
        if any(fact.followed is False for fact in evidence.golden.values()):
            # A later call may be wrong for other reasons: only a first one tells.
            later, evidence.golden = evidence.golden, facts(self._first_call_on_variant())
            wrong = again.wrong_again(later, evidence.golden)
            if wrong and self._reference_repeats_itself(wrong, other):
                self._extra.append(again.finding(self._case_idx, wrong))

    def _reference_repeats_itself(self, paths: list[str], golden: Any) -> bool:
        from pytest_tritonverify import outcomes

        request = {"op": "again", "case_idx": self._case_idx, "seed": self._seed}
        try:
            second = self._opened(self._asked(self._all.reference, request))
        except Failure:
            return False
        found = outcomes.golden_facts({}, golden, None, second, fixed=False)
        return all(path in found and found[path].resembled for path in paths)

    def _first_call_on_variant(self) -> Answer | None:
        """Run the other values in a process of their own; None where that fails."""
        assert self._variant is not None  # noqa: S101 - its golden has been compared
        process = self._all.processes.candidate()
        try:
            return self._asked(process, {"op": "run", "case": self._variant[0]}, self._variant[1])
        except Failure:
            return None
        finally:
            process.close()

    def _golden(self, case: tuple[Message, int | None]) -> Answer:
        return self._asked(self._all.reference, {"op": "golden", "case": case[0]}, case[1])

    @staticmethod
    def _opened(answer: Answer | None) -> Any:
        from pytest_tritonverify.execution import tensors

        assert answer is not None  # noqa: S101 - there is a golden only where there was an answer
        return tensors.unpack(answer.message["result"], answer.fd, bounded=True)

    def _asked(self, process: Process, request: Message, fd: int | None = None) -> Answer:
        process.post(request, fd)
        return self._take(process.result(self._deadline, self._budget))

    def _take(self, answer: Answer) -> Answer:
        if answer.fd is not None:
            self._fds.append(answer.fd)
        return answer

    def _soon(self) -> float:
        return min(self._deadline, time.monotonic() + _GARBAGE_TIMEOUT)

    def _digests(self, answer: Answer) -> dict[str, str]:
        from pytest_tritonverify import outcomes

        try:
            return outcomes.digests(answer.message["result"], answer.fd)
        except (WireError, KeyError) as error:
            raise self._nonsense(error) from None

    def _read(self, read: Callable[[object], Any], told: object) -> Any:
        try:
            return read(told)
        except (observations.ObservationError, LookupError) as error:
            raise self._nonsense(error) from None

    def _nonsense(self, error: Exception) -> Failure:
        self._all.close()
        name = self._all.processes.pair.implementation.name
        text = f"{name}'s process sent no proper answer: {error}"
        return Failure(IMPLEMENTATION, "NoObservation", text, "transfer")

    def not_examined(self, failure: Failure) -> Finding:
        """Say why a case could not be observed: no evidence, unless it runs otherwise."""
        first = failure.message.partition("\n")[0]
        if failure.side == REFERENCE:
            severity, text = ERROR, f"the reference fails: {first}"
        elif self._plain_failed:
            severity, text = NOTE, f"the case fails by itself: {first}"
        elif failure.error_type == TIMEOUT:
            severity, text = ERROR, f"it hangs, or takes too long, when it is observed: {first}"
        else:
            severity, text = ERROR, f"it fails when it is observed, and only then: {first}"
        return Finding(
            "not_examined",
            severity,
            text,
            self._case_idx,
            failure.file,
            failure.line,
            (self._case_idx,),
        )

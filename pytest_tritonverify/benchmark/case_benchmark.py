"""One case of a benchmark on its way through the workers: measure, compare, conclude."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import answers, plausible
from pytest_tritonverify.benchmark.measurement import (
    FAILED,
    PROFILED,
    CaseMeasurement,
    MeasurementError,
    SideMeasurement,
)
from pytest_tritonverify.execution.timing import sets
from pytest_tritonverify.execution.wire import WireError
from pytest_tritonverify.results.records import CRASH
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.benchmark.answers import Measured
    from pytest_tritonverify.benchmark.measurement import PerfSettings
    from pytest_tritonverify.benchmark.pair_benchmark import PairBenchmark
    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.comparison import Comparison, Parcel
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer

logger = logging.getLogger("pytest_tritonverify")

IMPLAUSIBLE = "ImplausibleTime"
# Timed forwards whose outputs are compared with a golden: a handful, as each is a run on the CPU.
_COMPARED = 3
# Bytes of outputs, and of inputs that are looked through for changes, for which others are compared
# with what the reference's process returned.
_ROOM = 64 << 20
# A machine that stalls for a moment is no fraud: only times that are wrong again and again are.
_ATTEMPTS = 3


class CaseBenchmark:
    """Measures one case.

    Args:
        pair: the pair's processes.
        case_idx: number of the case, from 1.
        entry: the case as listed.
        perf: how to measure.
        deadline: on the clock of `time.monotonic`.
        budget: the time allowed, in words.
    """

    def __init__(
        self,
        pair: PairBenchmark,
        case_idx: int,
        entry: CaseEntry,
        perf: PerfSettings,
        deadline: float,
        budget: str,
    ) -> None:
        self._pair = pair
        self._case_idx = case_idx
        self._perf = perf
        self._deadline = deadline
        self._budget = budget
        self._input_desc = entry.input_desc
        self._fds: list[int] = []
        self._warnings: list[dict[str, str]] = []
        self._framework: SideMeasurement | None = None
        self._implementation: SideMeasurement | None = None

    def measure(self, name: str, started: float) -> CaseMeasurement:
        """Return what came of it, whatever it is.

        Args:
            name: the item's name.
            started: when, on the clock of `time.monotonic`.
        """
        outcome: dict[str, Any] = {}
        try:
            self._measure()
        except Failure as failure:
            outcome = {
                "status": FAILED,
                "error_type": failure.error_type,
                "error_msg": failure.message,
            }
        finally:
            for fd in self._fds:
                os.close(fd)
        return CaseMeasurement(
            case_idx=self._case_idx,
            input_desc=self._input_desc,
            framework=self._framework,
            implementation=self._implementation,
            warnings=tuple(self._warnings),
            name=name,
            seconds=time.monotonic() - started,
            **outcome,
        )

    def _measure(self) -> None:
        pair, perf = self._pair, self._perf
        inputs = self._asked(
            pair.inputs,
            {
                "op": "sets",
                "case_idx": self._case_idx,
                "wanted": perf.warmup + 2 * perf.repeats if pair.rotated else 1,
            },
        )
        self._input_desc = inputs.message["input_desc"]
        packed = {name: inputs.message[name] for name in ("sets", "init", "segments", "turning")}
        count = len(packed["sets"])
        if count == 1 and not packed["turning"]:
            text = (
                "there is one set of inputs only, since no other values can be put in: outputs "
                "that are remembered are not found out"
            )
            self._warnings.append({"code": "inputs_not_rotated", "message": text})
        required = self._numbers(perf.repeats if packed["turning"] else count)
        request = {
            **packed,
            "op": "measure",
            "warmup": perf.warmup,
            "repeats": perf.repeats,
            "kept": required,
            "welcome": [],
            "room": 0,
        }
        kept, mine, theirs = self._timed_both(request, inputs.fd)
        outputs = self._outputs(pair.candidate, kept, theirs)
        for number in outputs:
            case = (sets.case_of(packed, number), inputs.fd)
            self._compare(
                case, number, outputs[number], mine.get(number), required=number in required
            )
        self._implementation = theirs.side

    def _timed_both(
        self, request: Message, fd: int | None
    ) -> tuple[list[int], dict[int, Answer], Measured]:
        """Measure both sides, and again until the implementation's times can be true.

        Returns:
            The numbers of the implementation's forwards whose outputs are to be compared, the
            reference's outputs by theirs, and the implementation's measurement.

        Raises:
            Failure: its times never can be true.
        """
        objection = None
        for _ in range(_ATTEMPTS):
            trusted, mine = self._reference_timed(request, fd)
            kept = sorted({*request["kept"], *mine})
            theirs = self._timed(self._pair.candidate, {**request, "kept": kept}, fd)
            objection = plausible.objection(theirs.loop, trusted.loop if trusted else None)
            if objection is None:
                return kept, mine, theirs
            logger.info("measured again: %s", objection)
            # In a process that has not seen these inputs yet.
            self._pair.candidate.close()
        name = self._pair.pair.implementation.name
        text = (
            f"{IMPLAUSIBLE}: the times that {name} was measured at can't be true: {objection}. "
            f"It was measured {_ATTEMPTS} times."
        )
        raise Failure(IMPLEMENTATION, IMPLAUSIBLE, text, "measured")

    def _reference_timed(
        self, request: Message, fd: int | None
    ) -> tuple[Measured | None, dict[int, Answer]]:
        """Measure the reference, if it is to be run; return its outputs, too."""
        if self._perf.skip_framework:
            self._framework = _given(self._perf)
            return None, {}
        welcome = self._others(request["kept"], request)
        # What an earlier case has left running there would take time from the reference.
        with self._pair.candidate.paused():
            trusted = self._timed(
                self._pair.reference, {**request, "welcome": welcome, "room": _ROOM}, fd
            )
        self._framework = trusted.side
        return trusted, self._outputs(self._pair.reference, trusted.kept, trusted)

    def _numbers(self, sets: int) -> list[int]:
        """Choose the forwards whose outputs count, so that nobody can know them before.

        Args:
            sets: after how many forwards the inputs are again those that the task made.
        """
        repeats = self._perf.repeats
        # One on the inputs as the task made them, and others on any.
        original = list(range(0, repeats, sets))
        chosen = {self._pair.choose.choice(original)}
        rest = [number for number in range(repeats) if number not in chosen]
        chosen.update(self._pair.choose.sample(rest, min(_COMPARED - 1, len(rest))))
        # One of those that a profiler looks at, should there be any: an implementation may notice.
        chosen.add(repeats + self._pair.choose.randrange(repeats))
        return sorted(chosen)

    def _others(self, required: Sequence[int], packed: Message) -> list[int]:
        """Choose forwards whose outputs are compared with what the reference's process returned.

        Half of each loop: an implementation that is right in most forwards only is found out.
        """
        repeats = self._perf.repeats
        size = sum(size for _, size in packed["segments"]) // len(packed["sets"])
        count = min(repeats // 2, _ROOM // max(size, 1))
        chosen = {
            first + number
            for first in (0, repeats)
            for number in self._pair.choose.sample(range(repeats), count)
        }
        return sorted(chosen.difference(required))

    def _timed(self, process: Process, request: Message, fd: int | None) -> Measured:
        answer = self._asked(process, request, fd)
        judged_s = process.lasted("timed", "measured")
        try:
            return answers.read(answer.message, self._perf.repeats, judged_s)
        except MeasurementError as error:
            raise self._nonsense(process, error) from None

    def _outputs(self, process: Process, kept: Sequence[int], found: Measured) -> dict[int, Answer]:
        """Fetch the outputs that were kept, by the numbers of their forwards."""
        runs = 2 if found.side.method in PROFILED else 1
        return {
            number: self._asked(process, {"op": "kept", "number": number})
            for number in kept
            if number < runs * self._perf.repeats
        }

    def _asked(self, process: Process, request: Message, fd: int | None = None) -> Answer:
        process.post(request, fd)
        answer = process.result(self._deadline, self._budget)
        if answer.fd is not None:
            self._fds.append(answer.fd)
        return answer

    def _compare(
        self,
        case: tuple[Message, int | None],
        number: int,
        actual: Answer,
        stateful: Answer | None,
        *,
        required: bool,
    ) -> None:
        """Compare the outputs of a timed forward.

        Args:
            case: the case, and its memory file.
            number: of the forward, from 0.
            actual: what the implementation made of it.
            stateful: what the measured reference made of it in its forward of the same number: a
                model that remembers earlier calls is right when it does the same.
            required: a golden is asked for whatever the measured reference made of it.

        Raises:
            Failure: the outputs are wrong.
        """
        from pytest_tritonverify.comparison import Parcel

        message, fd = case
        call, told = Parcel(message["call"], fd), self._parcel(actual)
        alike = None if stateful is None else self._judged(call, self._parcel(stateful), told)
        if alike is not None and alike.passed and not required:
            return
        golden = self._asked(self._pair.inputs, {"op": "golden", "case": message}, fd)
        found = self._judged(call, self._parcel(golden), told)
        if found.passed or (alike is not None and alike.passed):
            return
        repeats = self._perf.repeats
        text = (
            f"{found.error_type}: the outputs of timed forward {number % repeats + 1} of {repeats} "
            "are wrong, although the case passes by itself: an implementation that remembers "
            "results, or has not finished when it returns, gains no speed-up.\n"
            f"{found.message}"
        )
        raise Failure(IMPLEMENTATION, found.error_type or "AccuracyError", text, "compare")

    def _judged(self, call: Parcel, golden: Parcel, actual: Parcel) -> Comparison:
        from pytest_tritonverify.comparison import compare, rules_of

        rules = rules_of(self._pair.settings, self._pair.pair.task)
        try:
            return compare(call, golden, actual, rules, lambda line: logger.debug("%s", line))
        except WireError as error:
            raise self._nonsense(self._pair.candidate, error) from None

    def _parcel(self, answer: Answer) -> Parcel:
        from pytest_tritonverify.comparison import Parcel

        try:
            return Parcel.of(answer)
        except WireError as error:
            raise self._nonsense(self._pair.candidate, error) from None

    def _nonsense(self, process: Process, error: Exception) -> Failure:
        process.close()
        name = self._pair.pair.implementation.name
        text = f"{CRASH}: the process that measures {name} sent no proper answer: {error}"
        return Failure(IMPLEMENTATION, CRASH, text, "transfer")


def _given(perf: PerfSettings) -> SideMeasurement:
    if perf.framework_latency_ms is None:
        return SideMeasurement.missing("the reference was not to be run (--verify-skip-framework)")
    return SideMeasurement.given(perf.framework_latency_ms)

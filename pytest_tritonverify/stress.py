"""A case run again and again, in surroundings that must not matter: does it always end alike?

No verdict is tried again by this. One run that fails, or whose outputs have other bits, fails the
case: a kernel whose result changes is not correct.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.rates import Rate
from pytest_tritonverify.reported import RunFacts
from pytest_tritonverify.results.records import (
    FAILED,
    FLAKY,
    NONDETERMINISM,
    TIMEOUT,
    CaseRecord,
)
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer

PLAIN = "plain"
_KINDS = {
    "cpu": ("shuffled", "together", "reversed", "memory", "reuse", PLAIN),
    "": (PLAIN, "memory", "busy", "reuse"),
}
_IN_WORDS = {
    PLAIN: "as it is",
    "shuffled": "with the programs of each grid in a random order",
    "together": "as if all programs of each grid ran at the same time",
    "reversed": "with the programs of each grid in reversed order",
    "memory": "with other values in fresh memory",
    "reuse": "with fresh memory as it was left",
    "busy": "with other work on the device",
}
_ORDERS = ("shuffled", "together", "reversed")
_WAITS = "WaitsForProgramsError"
# Each may be as large as all outputs together.
_MOST_KEPT = 8
_ADVICE = {
    "cpu": "Look for programs that write what others read or write, for atomics on floating-point "
    "numbers, whose sum depends on their order, and for memory that is read before it is written.",
    "cuda": "Look for programs that write what others read or write, and for atomics on "
    "floating-point numbers, whose sum depends on their order; `compute-sanitizer --tool "
    "racecheck` and `--tool initcheck` find races and memory that nobody has written.",
    "npu": "Look for programs that write what others read or write, and for atomics on "
    "floating-point numbers, whose sum depends on their order. `TRITON_ALWAYS_COMPILE=1 "
    "TRITON_ENABLE_SANITIZER=1 PYTORCH_NO_NPU_MEMORY_CACHING=1 mssanitizer --tool=racecheck ...` "
    "looks for races, `--tool=initcheck` for memory that nobody has written.",
}


@dataclass(eq=False)
class _Outcome:
    """What some runs have left behind, to the bit.

    Attributes:
        answer: the first run's; None where there were too many different ones to keep.
        record: what the comparison says of it.
    """

    answer: Answer | None
    record: CaseRecord | None = None


@dataclass(frozen=True)
class _Run:
    kind: str
    outcome: _Outcome | None = None
    failure: Failure | None = None

    @property
    def failed(self) -> bool | None:
        """Whether it failed; None where nobody knows."""
        if self.outcome is None:
            return True
        record = self.outcome.record
        return None if record is None else not record.passed


@dataclass
class Repeats:
    """The runs of a case under stress.

    Args:
        device: name of the device that implementations run on.
        digests: returns the bits of an answer by path.
    """

    device: str
    digests: Callable[[Answer], Mapping[str, str]]
    _runs: list[_Run] = field(default_factory=list)
    _outcomes: dict[tuple[Any, ...], _Outcome] = field(default_factory=dict)
    _ordered: bool = True

    def add_first(self, outcome: Answer | Failure) -> None:
        """Take in the run that the verdict is about."""
        self._add(PLAIN, outcome)

    def make(
        self, wanted: int, run: Callable[[Message], Answer], drop: Callable[[Answer], None]
    ) -> None:
        """Run the case again.

        Args:
            wanted: how many runs there are to be in all.
            run: runs it in surroundings; its answer stays open until `noted`.
            drop: closes an answer that is not needed any more.

        Raises:
            Failure: the time is up, or nothing can be run at all.
        """
        kinds = _KINDS.get(self.device, _KINDS[""])
        for number in range(1, wanted):
            kind = kinds[(number - 1) % len(kinds)]
            if kind in _ORDERS and not self._ordered:
                kind = PLAIN
            # From 0 for each kind, so that each meets all of its variants.
            seed = sum(one.kind == kind for one in self._runs)
            try:
                kind, answer = self._made(kind, seed, run)
            except Failure as failure:
                if failure.hopeless:
                    raise self._interrupted(failure, wanted) from None
                self._add(kind, failure)
                continue
            if not self._add(kind, answer):
                drop(answer)

    def _made(self, kind: str, seed: int, run: Callable[[Message], Answer]) -> tuple[str, Answer]:
        """Run the case, and return in which surroundings that was possible."""
        try:
            return kind, run({"kind": kind, "seed": seed})
        except Failure as failure:
            if kind not in _ORDERS or failure.error_type != _WAITS:
                raise
        # A program may wait for another one, as on a device that runs them at the same time.
        self._ordered = False
        return PLAIN, run({"kind": PLAIN, "seed": seed})

    def _interrupted(self, failure: Failure, wanted: int) -> Failure:
        if failure.error_type == TIMEOUT:
            failure.message += (
                f"\nThat was run {len(self._runs) + 1} of {wanted} (--verify-stress); all of them "
                "count on --verify-timeout."
            )
        return failure

    def _add(self, kind: str, found: Answer | Failure) -> bool:
        """Take in a run; return whether its answer is kept."""
        if isinstance(found, Failure):
            self._runs.append(_Run(kind, failure=found))
            return False
        facts = RunFacts.of(found.message)
        key = (tuple(sorted(self.digests(found).items())), facts.writes_outside)
        new = key not in self._outcomes
        kept = new and sum(one.answer is not None for one in self._outcomes.values()) < _MOST_KEPT
        if new:
            self._outcomes[key] = _Outcome(found if kept else None)
        self._runs.append(_Run(kind, self._outcomes[key]))
        return kept

    def noted(
        self,
        record: CaseRecord,
        judge: Callable[[Answer], CaseRecord],
    ) -> CaseRecord:
        """Return the record of the first run with what came of all of them.

        Args:
            record: the outcome of the first run.
            judge: compares an answer with the golden.
        """
        for outcome in self._outcomes.values():
            if self._runs[0].outcome is outcome:
                outcome.record = record
            elif outcome.answer is not None:
                outcome.record = judge(outcome.answer)
        found = _Findings(self._runs, self._base, self._differences())
        record = dataclasses.replace(record, stress=found.to_json(ordered=self._orders))
        if found.failed.count == found.failed.of and len(self._outcomes) < 2:  # noqa: PLR2004 - one, or none
            text = f"{record.error_msg}\nAll {len(self._runs)} runs of the case fail."
            return dataclasses.replace(record, error_msg=text)
        if not found.failed.count and not found.differing.count:
            return record
        return _refused(record, found, self.device)

    @property
    def _base(self) -> _Outcome | None:
        """What the first run left behind that left anything."""
        return next((run.outcome for run in self._runs if run.outcome is not None), None)

    @property
    def _orders(self) -> bool | None:
        return self._ordered if self.device == "cpu" else None

    def _differences(self) -> list[dict[str, Any]]:
        """Return the largest difference from the first outcome, by output."""
        from pytest_tritonverify import outcomes

        base = self._base
        worst: dict[str, dict[str, Any]] = {}
        for other in self._outcomes.values():
            if base is None or base.answer is None or other is base or other.answer is None:
                continue
            pair = [(one.message["result"], one.fd) for one in (base.answer, other.answer)]
            for entry in outcomes.differences(*pair):
                known = worst.setdefault(entry["path"], entry)
                worst[entry["path"]] = {
                    **known,
                    "elements": max(known["elements"], entry["elements"]),
                    "max_abs_diff": _larger(known["max_abs_diff"], entry["max_abs_diff"]),
                }
        return list(worst.values())


def _larger(first: float | None, second: float | None) -> float | None:
    return first if second is None else second if first is None else max(first, second)


class _Findings:
    """What the runs show together.

    Args:
        runs: all of them.
        base: the outcome that the others are held against.
        differences: how much they differ from it.
    """

    def __init__(
        self, runs: list[_Run], base: _Outcome | None, differences: list[dict[str, Any]]
    ) -> None:
        self.runs = runs
        self.differences = differences
        judged = [run for run in runs if run.failed is not None]
        self.failed = Rate(sum(bool(run.failed) for run in judged), len(judged))
        self._ended = [run for run in runs if run.outcome is not None]
        self._other = [run for run in self._ended if run.outcome is not base]
        # A run that raised has no outputs that could differ.
        self.differing = Rate(len(self._other), max(len(self._ended), 1))
        self.outcomes = len({id(run.outcome) for run in self._ended})

    def to_json(self, *, ordered: bool | None) -> dict[str, Any]:
        """Return the findings for the result file."""
        return {
            "runs": len(self.runs),
            "judged": self.failed.of,
            "failed": self.failed.count,
            **self.failed.to_json("failure"),
            "differing": self.differing.count,
            **self.differing.to_json("differing"),
            "outcomes": self.outcomes,
            "errors": dict(Counter(_name(run) for run in self.runs if run.failed)),
            "differences": self.differences,
            "by_variation": self._by_variation(),
            "any_order": ordered,
        }

    def _by_variation(self) -> dict[str, dict[str, int]]:
        kinds: dict[str, dict[str, int]] = {}
        for run in self.runs:
            entry = kinds.setdefault(run.kind, {"runs": 0, "failed": 0, "differing": 0})
            entry["runs"] += 1
            entry["failed"] += bool(run.failed)
            entry["differing"] += run in self._other
        return kinds

    def in_words(self) -> list[str]:
        """Return what the runs show, as lines."""
        lines = []
        for entry in self.differences:
            size = entry["max_abs_diff"]
            far = "" if size is None else f", by up to {size:.6g}"
            lines.append(
                f"  {entry['path']}: up to {entry['elements']} of {entry['total']} elements "
                f"differ{far}"
            )
        for kind, entry in self._by_variation().items():
            if entry["failed"] or entry["differing"]:
                lines.append(
                    f"  {_IN_WORDS[kind]}: {entry['failed']} of {entry['runs']} fail, "
                    f"{entry['differing']} of {entry['runs']} differ from the first"
                )
        return lines


def _name(run: _Run) -> str:
    if run.failure is not None:
        return run.failure.error_type
    record = run.outcome.record if run.outcome is not None else None
    return (record.error_type if record is not None else None) or "Error"


def _refused(record: CaseRecord, found: _Findings, device: str) -> CaseRecord:
    """Return the record of a case whose runs don't end alike."""
    if found.failed.count:
        kind = FLAKY
        head = f"{FLAKY}: {found.failed} runs of the case fail"
        if found.failed.count == found.failed.of:
            kind = record.error_type or FLAKY
            head = f"{kind}: {found.failed} runs of the case fail, and they don't end alike"
    else:
        kind = NONDETERMINISM
        head = (
            f"{NONDETERMINISM}: {found.differing} runs of the case leave other bits behind than "
            "the first one, all of them within the limits; a kernel whose result changes is not "
            "correct"
        )
    example = _example(record, found)
    lines = [head, *found.in_words(), _ADVICE.get(device, _ADVICE["cuda"])]
    if example:
        lines.append(f"The first failure: {example}")
    return dataclasses.replace(
        record,
        status=FAILED,
        side=IMPLEMENTATION,
        phase=record.phase or "compare",
        error_type=kind,
        error_msg="\n".join(lines),
    )


def _example(record: CaseRecord, found: _Findings) -> str:
    if not record.passed:
        return record.error_msg or ""
    for run in found.runs:
        if run.failure is not None:
            return run.failure.message
        if run.failed and run.outcome is not None and run.outcome.record is not None:
            return run.outcome.record.error_msg or ""
    return ""

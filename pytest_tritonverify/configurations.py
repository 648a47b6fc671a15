"""Every configuration of autotuned kernels has to be right, not only the one that runs first."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.reported import RunFacts
from pytest_tritonverify.supervision import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.results.records import CaseRecord

ALL = "all"
# A tuner leaves out configurations for which a device raises this.
_TOO_LARGE = "OutOfResources"


@dataclass(frozen=True)
class Attempt:
    """A run of an implementation, with what its tuners were to choose.

    Attributes:
        selection: index of the configuration from 0, "all" for a run of all on the same buffers,
            None where that is left to the tuner or to the interpreter.
        outcome: what came of it.
        count: how many configurations there are.
    """

    selection: int | str | None
    outcome: Answer | Failure
    count: int = 1

    @property
    def facts(self) -> RunFacts | None:
        """What is known of the run."""
        if isinstance(self.outcome, Failure):
            return self.outcome.facts
        return RunFacts.of(self.outcome.message)

    @property
    def names(self) -> str:
        """The configurations that ran, for people."""
        choices = self.facts.choices if self.facts else ()
        told = "; ".join(f"{choice.kernel}: {choice.name}" for choice in choices)
        if told or not isinstance(self.selection, int) or self.count == 1:
            return told
        # A process that died has told nothing.
        return f"number {self.selection + 1} of {self.count}, in the order of the source"


def attempts(run: Callable[[int | str | None], Answer], policy: str) -> list[Attempt]:
    """Run an implementation as often as its tuners have configurations.

    Args:
        run: runs it with a selection.
        policy: "first": one run; "all": one for each configuration, and one of all on the same
            buffers, as a tuner makes them.

    Raises:
        Failure: nothing can be learned from going on.
    """
    if policy != ALL:
        return [_attempt(run, None)]
    made = [_attempt(run, 0)]
    facts = made[0].facts
    count = max((choice.count for choice in facts.choices), default=1) if facts else 1
    if count > 1:
        made += [_attempt(run, selection, count) for selection in (*range(1, count), ALL)]
    fitting = [attempt for attempt in made if not _is_left_out(attempt)]
    return fitting or made


def _attempt(
    run: Callable[[int | str | None], Answer], selection: int | str | None, count: int = 1
) -> Attempt:
    try:
        return Attempt(selection, run(selection), count)
    except Failure as failure:
        if failure.hopeless:
            raise
        return Attempt(selection, failure, count)


def _is_left_out(attempt: Attempt) -> bool:
    return isinstance(attempt.outcome, Failure) and attempt.outcome.error_type == _TOO_LARGE


def blamed(record: CaseRecord, attempt: Attempt) -> CaseRecord:
    """Return a failure with the configuration that failed in its text."""
    if attempt.selection is None or not attempt.names:
        return record
    note = f"This is the result with the configuration {attempt.names}."
    if attempt.selection == ALL:
        note = (
            "Each configuration by itself is right. This is the result where all run on the same "
            f"buffers, as a tuner runs them ({attempt.names}): name what the kernel adds to or "
            "overwrites in reset_to_zero or restore_value."
        )
    head, _, rest = (record.error_msg or "").partition("\n")
    text = "\n".join(line for line in (head, note, rest) if line)
    return dataclasses.replace(record, error_msg=text)


def described(facts: RunFacts | None) -> list[dict[str, Any]]:
    """Return which configurations ran, as builtins."""
    return [dataclasses.asdict(choice) for choice in facts.choices] if facts else []

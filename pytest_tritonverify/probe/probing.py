"""Probe pairs: ask a reference and an implementation what they hold, and compare.

Both are asked in processes of their own, which end with the probe. The first forward of a model may
leave traces in its class or its module; in the processes that run cases they could change a
verdict. The implementation is told nothing of the reference but its inputs, and what it answers
counts as its own word about its own tensors: the comparison is made here.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import errors
from pytest_tritonverify.execution.wire import WireError, require_sealed
from pytest_tritonverify.probe import conclusions, determinism, matching
from pytest_tritonverify.probe.conclusions import ProbeRecord
from pytest_tritonverify.probe.inventory import Inventory
from pytest_tritonverify.probe.matching import Matching, Mismatch, Told
from pytest_tritonverify.results.records import SKIPPED
from pytest_tritonverify.supervision import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.pair_processes import PairProcesses
    from pytest_tritonverify.probe.differences import Difference
    from pytest_tritonverify.supervision import Process

logger = logging.getLogger("pytest_tritonverify")

_TAG = "[隐藏状态探针]"
# One question may take this part of the time that is left, so that cases get the rest.
_SHARE = 0.25
# The same for a first forward of the implementation, which may be slow on the interpreter.
_FORWARD_SHARE = 0.25
_REASON = 500


class Probe:
    """One probe of one pair.

    Args:
        processes: makes the pair's processes; the shared one is only asked for the inputs of the
            first case.
    """

    def __init__(self, processes: PairProcesses) -> None:
        self._shared = processes.shared
        self._determinism = processes.settings.determinism
        self._timeout = processes.settings.timeout
        self._deadline = 0.0
        self._reference = processes.reference()
        self._candidate = processes.candidate()
        self._fds: list[int] = []
        self._case: tuple[Message, int | None] = ({}, None)
        self._record = ProbeRecord()

    def run(self, deadline: float | None = None) -> ProbeRecord:
        """Probe, and end the processes that this took.

        Args:
            deadline: on the clock of `time.monotonic`; default: the pair's time limit from now.
        """
        started = time.monotonic()
        self._deadline = started + self._timeout if deadline is None else deadline
        record = self._record
        try:
            self._probe()
        except Failure as failure:
            # Whatever it is, the cases will run into it and tell all of it.
            record.reason = f"Model could not be looked into: {_first_line(failure)}"
        finally:
            self._candidate.close()
            self._reference.close()
            for fd in self._fds:
                os.close(fd)
            self._fds.clear()
        record.seconds = time.monotonic() - started
        self._log()
        return record

    def _probe(self) -> None:
        # All the time that there is: the first case needs them, too, and gets them ready made.
        inputs = self._asked(self._shared, {"op": "inputs", "case_idx": 1}, share=1.0)
        self._case = (inputs.message["case"], inputs.fd)
        reference = self._told(self._reference, {})
        hidden = matching.hidden_state(reference)
        self._record.fw_state = len(hidden)
        if hidden:
            self._compare(reference)
        else:
            self._record.reason = (
                "Model holds no tensors but those that follow from its inputs: nothing to compare"
            )
        if reference.truncated:
            self._incomplete("Model")
        if self._determinism:
            self._repeat()

    def _compare(self, reference: Told) -> None:
        record = self._record
        try:
            implementation = self._told(self._candidate, {"run": False})
        except (Failure, WireError) as error:
            record.warn(
                conclusions.NOT_COMPARED,
                "ModelNew could not be asked what it holds, so that its weights were not compared "
                f"with those of Model: {_first_line(error)}",
            )
            return
        found = matching.match(reference, implementation)
        if not found.settled:
            implementation = self._after_forward(implementation)
            found = matching.match(reference, implementation)
        record.matching, record.im_state = found, len(implementation.names)
        if found.mismatches:
            record.message = conclusions.failure(found, self._differences(found.mismatches))
        if found.missing:
            record.warn(*conclusions.missing(found.missing, implementation))
        if implementation.truncated and not found.settled:
            self._incomplete("ModelNew")

    def _after_forward(self, built: Told) -> Told:
        """Ask again after a first forward, which may make what is missing."""
        try:
            return self._told(self._candidate, {"run": True}, _FORWARD_SHARE)
        except (Failure, WireError) as error:
            return Told(built.built, None, _first_line(error))

    def _differences(self, found: Sequence[Mismatch]) -> dict[str, Difference]:
        """Look at the values of the first mismatches."""
        from pytest_tritonverify.probe import differences

        shown = found[: conclusions.MOST_SHOWN]
        # In this order: the implementation's process is gone when the reference's values come.
        theirs = self._values(self._candidate, {m.name: m.late_implementation for m in shown})
        self._candidate.close()
        ours = self._values(self._reference, {m.name: m.late_reference for m in shown})
        described = {}
        for name in ours.keys() & theirs.keys():
            try:
                described[name] = differences.describe(ours[name], theirs[name])
            except (RuntimeError, TypeError, ValueError):
                # Rare types lack the operators that this takes.
                logger.debug("%s the values of %s can't be described", _TAG, name, exc_info=True)
        return described

    def _values(self, process: Process, late: dict[str, bool]) -> dict[str, Any]:
        """Fetch tensors by name; those that a forward made come from a model that has run."""
        import torch

        from pytest_tritonverify.execution import running, tensors

        fetched: dict[str, Any] = {}
        for run in (False, True):
            names = [name for name, wanted in late.items() if wanted is run]
            if not names:
                continue
            request = {"op": "tensors", "case": self._case[0], "names": names, "run": run}
            try:
                answer = self._asked(process, request, self._case[1])
                if answer.fd is None:
                    continue
                require_sealed(answer.fd)
                values = tensors.unpack(answer.message["tensors"], answer.fd, bounded=True)
                tensors.require_modest(t for _, t in running.tensor_leaves(values, ""))
            except (Failure, WireError, KeyError):
                continue
            if isinstance(values, dict):
                fetched |= {
                    name: value
                    for name, value in values.items()
                    if name in names and isinstance(value, torch.Tensor)
                }
        return fetched

    def _repeat(self) -> None:
        """Run both sides twice. The implementation first: no golden is there to be found yet."""
        sides = (
            (self._candidate, "run", "ModelNew"),
            (self._reference, "golden", "Model"),
        )
        for process, op, name in sides:
            # A fresh one: what the probe has run may have used up a first call.
            process.close()
            request = {"op": op, "case": self._case[0]}
            try:
                answers = [self._asked(process, request, self._case[1]) for _ in range(2)]
                unlike = determinism.unlike(*((a.message.get("result"), a.fd) for a in answers))
            except (Failure, WireError) as error:
                text = f"{name} could not be run twice: {_first_line(error)}"
                self._record.warn(conclusions.NOT_CHECKED, text)
                continue
            finally:
                process.close()
            if unlike:
                text = determinism.message(name, unlike)
                self._record.warn(conclusions.NONDETERMINISTIC, text)

    def _told(self, process: Process, request: Message, share: float | None = None) -> Told:
        question = {"op": "probe", "case": self._case[0], **request}
        answer = self._asked(process, question, self._case[1], share).message
        ran, raised = answer.get("ran"), answer.get("raised")
        return Told(
            Inventory.of(answer.get("built")),
            None if ran is None else Inventory.of(ran),
            errors.clip(errors.printable(raised), _REASON) if isinstance(raised, str) else None,
        )

    def _asked(
        self,
        process: Process,
        request: Message,
        fd: int | None = None,
        share: float | None = None,
    ) -> Answer:
        now = time.monotonic()
        seconds = max(self._deadline - now, 0.0) * (_SHARE if share is None else share)
        process.post(request, fd)
        answer = process.result(now + seconds, f"{seconds:.3g}秒")
        if answer.fd is not None:
            self._fds.append(answer.fd)
        return answer

    def _incomplete(self, name: str) -> None:
        self._record.warn(
            conclusions.INCOMPLETE,
            f"{name} holds more than the probe can look into: not all of it was compared",
        )

    def _log(self) -> None:
        record = self._record
        if record.message is not None:
            logger.error("%s %s", _TAG, record.message.partition("\n")[0])
        for warning in record.warnings:
            logger.warning("%s WARN %s: %s", _TAG, warning["code"], warning["message"])
        if record.status == SKIPPED:
            logger.info("%s SKIP: %s", _TAG, record.reason)
        found: Matching | None = record.matching
        if found is not None:
            logger.info(
                "%s tensors of Model: %d, equal by name: %d, by value: %d",
                _TAG,
                record.fw_state,
                len(found.compared),
                len(found.matched),
            )


def _first_line(error: Exception) -> str:
    text = error.message if isinstance(error, Failure) else str(error)
    return errors.clip(errors.printable(text.partition("\n")[0]), _REASON)

"""A case judged on inputs from several seeds: is it right on these inputs alone?"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import TYPE_CHECKING

from pytest_tritonverify.rates import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.results.records import CaseRecord

SAME_INPUTS = "trials_same_inputs"
_CHUNK = 1 << 20


def fingerprint(inputs: Answer) -> bytes:
    """Return a digest of packed inputs: their description and their memory."""
    found = hashlib.sha256(json.dumps(inputs.message["case"], sort_keys=True).encode())
    if inputs.fd is not None:
        at = 0
        while chunk := os.pread(inputs.fd, _CHUNK, at):
            found.update(chunk)
            at += len(chunk)
    return found.digest()


def noted(record: CaseRecord, others: Mapping[int, CaseRecord], same: int) -> CaseRecord:
    """Return the record of a case with what came of its inputs from other seeds.

    Args:
        record: the outcome on the inputs of the documented seed, 0.
        others: the outcomes by seed.
        same: how many of these had inputs that another seed had made, too.
    """
    outcomes = {0: record, **others}
    failing = [seed for seed, one in outcomes.items() if not one.passed]
    rate = Rate(len(failing), len(outcomes))
    told = {
        "sets": rate.of,
        "failed": rate.count,
        **rate.to_json("failure"),
        "failed_seeds": failing,
        "same_inputs": same,
    }
    if failing:
        first = outcomes[failing[0]]
        head, _, rest = (first.error_msg or "").partition("\n")
        seed = "" if failing[0] == 0 else f" This is the first of them, from seed {failing[0]}."
        runs = record.stress["runs"] if record.stress is not None else 1
        stressed = f" That of seed 0 was run {runs} times, each other one once." if runs > 1 else ""
        note = f"{rate} sets of inputs, each from a seed of its own, fail.{seed}{stressed}"
        text = "\n".join(line for line in (head, note, rest) if line)
        record = dataclasses.replace(
            first, input_desc=record.input_desc, stress=record.stress, error_msg=text
        )
    warnings = record.warnings
    if same:
        text = (
            f"{same} of {rate.of - 1} further seeds gave inputs that another seed had given "
            "already, so that nothing new was judged: does the task seed its inputs itself?"
        )
        warnings = [*warnings, {"code": SAME_INPUTS, "message": text}]
    return dataclasses.replace(record, trials=told, warnings=warnings)

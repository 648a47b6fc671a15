"""What repeated runs and further inputs show, from answers that were packed here."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify import outcomes, trials
from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.wire import WireError
from pytest_tritonverify.execution.worker_handle import Answer
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord
from pytest_tritonverify.stress import Repeats
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message

RIGHT = CaseRecord(case_idx=1, name="case1", status=PASSED)
WRONG = CaseRecord(
    case_idx=1,
    name="case1",
    status=FAILED,
    side=IMPLEMENTATION,
    phase="compare",
    error_type="AccuracyError",
    error_msg="AccuracyError: output differs",
)

RAISED = dataclasses.replace(WRONG, error_type="ValueError", error_msg="ValueError: no")


def answer(value: float) -> Answer:
    """An answer whose only output is a number."""
    packed = tensors.pack({"outputs": torch.tensor([value, 1.0]), "changed": {}}, keep_layout=False)
    return Answer({"result": packed.spec}, packed.fd)


def value_of(found: Answer) -> float:
    return float(tensors.unpack(found.message["result"], found.fd)["outputs"][0])


def right_or_wrong(found: Answer) -> CaseRecord:
    """Numbers from 0 to 9 are right."""
    return RIGHT if 0 <= value_of(found) < 10 else WRONG


class Opened:
    """The descriptors of answers that are open."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def outcome(self, value: float | None) -> Answer | Failure:
        """What comes of a run that returns a number; without one it raises."""
        if value is None:
            return Failure(IMPLEMENTATION, "ValueError", "ValueError: no", "forward")
        found = answer(value)
        assert found.fd is not None
        self._fds.append(found.fd)
        return found

    def drop(self, found: Answer) -> None:
        assert found.fd is not None
        self._fds.remove(found.fd)
        os.close(found.fd)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


def stressed(values: list[float | None], device: str = "npu") -> tuple[CaseRecord, list[str]]:
    """Judge runs that return numbers, or raise where there is none.

    Returns:
        The record, and the kinds of the runs that were asked for.
    """
    opened, left = Opened(), iter(values[1:])
    kinds: list[str] = []

    def run(variation: Message) -> Answer:
        kinds.append(variation["kind"])
        found = opened.outcome(next(left))
        if isinstance(found, Failure):
            raise found
        return found

    first = opened.outcome(values[0])
    repeats = Repeats(device, lambda one: outcomes.digests(one.message["result"], one.fd))
    repeats.add_first(first)
    repeats.make(len(values), run, opened.drop)
    record = RAISED if isinstance(first, Failure) else right_or_wrong(first)
    try:
        return repeats.noted(record, right_or_wrong), kinds
    finally:
        opened.close()


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([None, 1.0, 2.0, 3.0, 50.0, -1.0]), min_size=2, max_size=14),
    st.sampled_from(["cpu", "npu"]),
)
def test_counts_are_those_of_the_runs(values: list[float | None], device: str) -> None:
    record, kinds = stressed(values, device)
    stress = record.stress
    assert stress is not None
    failed = [v is None or not 0 <= v < 10 for v in values]
    ended = [v for v in values if v is not None]
    differing = sum(v != ended[0] for v in ended)
    assert (stress["runs"], stress["judged"]) == (len(values), len(values))
    assert (stress["failed"], stress["differing"]) == (sum(failed), differing)
    assert stress["outcomes"] == len(set(ended))
    names = [
        "ValueError" if v is None else "AccuracyError"
        for v, bad in zip(values, failed, strict=True)
        if bad
    ]
    assert stress["errors"] == dict(Counter(names))
    assert sum(e["runs"] for e in stress["by_variation"].values()) == len(values)
    assert Counter(kinds) + Counter(["plain"]) == {
        kind: entry["runs"] for kind, entry in stress["by_variation"].items()
    }
    assert record.passed == (not any(failed) and not differing)
    if all(failed):
        assert record.error_type in names
    elif any(failed):
        assert record.error_type == "FlakyCase"
    elif differing:
        assert record.error_type == "NonDeterminism"
    if differing:
        assert stress["differences"][0]["max_abs_diff"] == max(abs(v - ended[0]) for v in ended)


def test_of_very_many_outcomes_not_all_are_kept() -> None:
    record, _ = stressed([float(k) / 10 for k in range(20)])
    stress = record.stress
    assert stress is not None
    assert (stress["runs"], stress["judged"], stress["outcomes"]) == (20, 8, 20)
    assert record.error_type == "NonDeterminism"


def test_time_that_is_up_is_told_with_the_number_of_the_run() -> None:
    repeats = Repeats("cpu", lambda one: outcomes.digests(one.message["result"], one.fd))
    first = answer(1.0)
    repeats.add_first(first)

    def run(_: Message) -> Answer:
        raise Failure(IMPLEMENTATION, "VerifyTimeout", "VerifyTimeout: 验证超时", "forward")

    with pytest.raises(Failure) as raised:
        repeats.make(50, run, lambda _: None)
    assert "run 2 of 50 (--verify-stress)" in raised.value.message
    assert first.fd is not None
    os.close(first.fd)


def test_the_first_failing_seed_is_what_a_record_tells() -> None:
    record = trials.noted(RIGHT, {1: RIGHT, 2: WRONG, 3: WRONG}, 1)
    assert (record.status, record.error_type) == (FAILED, "AccuracyError")
    assert record.trials is not None
    assert record.trials["failed_seeds"] == [2, 3]
    lines = (record.error_msg or "").splitlines()
    assert lines[0] == "AccuracyError: output differs"
    assert lines[1].startswith("2 of 4 (50.0 %, ")
    assert lines[1].endswith("This is the first of them, from seed 2.")
    assert [w["code"] for w in record.warnings] == ["trials_same_inputs"]
    assert trials.noted(RIGHT, {1: RIGHT}, 0).passed


def test_what_was_stressed_and_what_was_not_are_told_apart() -> None:
    stressed = dataclasses.replace(WRONG, stress={"runs": 50})
    lines = (trials.noted(stressed, {1: RIGHT}, 0).error_msg or "").splitlines()
    assert lines[1].endswith("That of seed 0 was run 50 times, each other one once.")


def test_differences_are_those_of_bits() -> None:
    def packed(outputs: Any) -> tuple[Any, int | None]:
        found = tensors.pack({"outputs": outputs, "changed": {}}, keep_layout=False)
        fds.append(found.fd)
        return found.spec, found.fd

    fds: list[int] = []
    nan = float("nan")
    one = packed(
        [torch.tensor([1.0, nan, 3.0]), torch.tensor([1, 2]), torch.zeros(2), torch.ones(1)]
    )
    other = packed(
        [torch.tensor([1.5, nan, -3.0]), torch.tensor([1, 2]), -torch.zeros(2), torch.ones(2)]
    )
    assert outcomes.differences(one, one) == []
    assert [tuple(d.values()) for d in outcomes.differences(one, other)] == [
        ("output[0]", 2, 3, 6.0),
        ("output[2]", 2, 2, 0.0),
        ("output[3]", 1, 1, None),
    ]
    for fd in fds:
        os.close(fd)


def test_tensors_claim_no_more_than_a_reader_can_look_at() -> None:
    wide, same = torch.ones(1).expand(1 << 20), torch.ones(1 << 20)
    tensors.require_modest([])
    tensors.require_modest([wide, *[same] * 15])
    for claims in ([torch.ones(1).expand(1 << 28, 2)], [wide] * 300):
        with pytest.raises(WireError, match="and 4 came"):
            tensors.require_modest(claims)

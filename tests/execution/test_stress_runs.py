"""Cases under stress, on several sets of inputs, and against a golden of float64."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify.results import result_file
from tests.support.device import DEVICE
from tests.support.workers import Sides, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.results.records import CaseRecord
    from tests.support.workers import Bench

pytestmark = pytest.mark.skipif(
    DEVICE != "cpu", reason="only Triton's interpreter runs programs in another order"
)

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {golden}

def get_inputs():
    return [{inputs}]
"""
ROWS = TASK.format(golden="x * 2", inputs="torch.rand(5, 12) + 1")

HEAD = """
import torch
import triton
import triton.language as tl

"""
# The mask lets each row's program write beyond its row, into the next one.
SPILLS = (
    HEAD
    + """
@triton.jit
def rows(x, o, n, size, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    value = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(o + row * n + i, value * 2, mask={mask})

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        rows[(x.shape[0],)](x, o, x.shape[1], x.numel(), B=16)
        return o
"""
)
SUMS = (
    HEAD
    + """
@triton.jit
def total(x, o, n):
    for k in range(n):
        tl.atomic_add(o, tl.load(x + tl.program_id(0) * n + k))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.zeros(1)
        total[(x.shape[0],)](x, o, x.shape[1])
        return o
"""
)
# NaN in memory that nobody has written is what a maximum drops.
MAXIMUM = (
    HEAD
    + """
@triton.jit
def largest(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.maximum(tl.load(o + i), tl.load(x + i)))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        largest[(1,)](x, o, B=64)
        return o
"""
)
SOMETIMES = (
    HEAD
    + """
calls = []

class ModelNew(torch.nn.Module):
    def forward(self, x):
        calls.append(x)
        if len(calls) == 4:
            raise ValueError("the fourth call fails")
        return x * (3 if len(calls) == 3 else 2)
"""
)


def verdict(
    bench: Bench, folder: Path, task: str, implementation: str, **wanted: Any
) -> CaseRecord:
    """Judge the only case of a pair; what is on record about it fits the schema of results."""
    (record,) = bench.verdict(write_pair(folder, task, implementation), **wanted)
    schema = json.loads(result_file.SCHEMA_PATH.read_text())
    case = result_file.document("op", [record], {}, {})["cases"][0]
    jsonschema.validate(case, {**schema["$defs"]["case"], "$defs": schema["$defs"]})
    return record


def test_a_missing_mask_shows_when_programs_run_in_another_order(
    bench: Bench, tmp_path: Path
) -> None:
    wrong = SPILLS.format(mask="row * n + i < size")
    assert verdict(bench, tmp_path, ROWS, wrong).passed
    record = verdict(bench, tmp_path, ROWS, wrong, stress=11)
    assert record.error_type == "FlakyCase"
    stress = record.stress
    assert stress is not None
    assert (stress["runs"], stress["judged"], stress["outcomes"]) == (11, 11, stress["outcomes"])
    by_kind = stress["by_variation"]
    assert by_kind["reversed"] == {"runs": 2, "failed": 2, "differing": 2}
    assert by_kind["plain"] == {"runs": 2, "failed": 0, "differing": 0}
    low, high = stress["failure_rate_ci95"]
    assert low < stress["failed"] / 11 == stress["failure_rate"] < high
    (difference,) = stress["differences"]
    assert difference["path"] == "output"
    assert 0 < difference["elements"] <= difference["total"] == 60
    assert difference["max_abs_diff"] > 1
    text = record.error_msg or ""
    assert "of 11 (" in text
    assert "with the programs of each grid in reversed order: 2 of 2 fail, 2 of 2 differ" in text


def test_a_right_kernel_ends_alike_every_time(bench: Bench, tmp_path: Path) -> None:
    record = verdict(bench, tmp_path, ROWS, SPILLS.format(mask="i < n"), stress=6)
    assert record.passed
    assert record.error_msg is None
    stress = record.stress
    assert stress is not None
    assert (stress["failed"], stress["differing"], stress["outcomes"]) == (0, 0, 1)
    assert stress["failure_rate_ci95"] == [0, pytest.approx(1 - 0.025 ** (1 / 6))]
    assert sum(entry["runs"] for entry in stress["by_variation"].values()) == 6
    assert stress["any_order"] is True


def test_atomics_in_another_order_are_told_by_their_bits(bench: Bench, tmp_path: Path) -> None:
    task = TASK.format(golden="x.sum().reshape(1)", inputs="torch.rand(40, 3) * 100")
    record = verdict(bench, tmp_path, task, SUMS, stress=4)
    assert record.error_type == "NonDeterminism"
    stress = record.stress
    assert stress is not None
    assert stress["failed"] == 0
    assert stress["differing"] > 0
    assert 0 < stress["differences"][0]["max_abs_diff"] < 0.1
    assert "atomics" in (record.error_msg or "")


# Programs of a device find the same count and write it back: some of them are lost.
COUNTS = (
    HEAD
    + """
@triton.jit
def count(x, o, ticket, n, B: tl.constexpr, SAFE: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    found = tl.sum(tl.load(x + i, mask=i < n, other=0), 0)
    if SAFE:
        tl.store(o + 1 + tl.program_id(0), found)
        if tl.atomic_add(ticket, 1) == tl.num_programs(0) - 1:
            # The last one to come finds what all of them have stored.
            rows = tl.arange(0, 8)
            parts = tl.load(o + 1 + rows, mask=rows < tl.num_programs(0), other=0)
            tl.store(o, tl.sum(parts, 0))
    else:
        tl.store(o, tl.load(o) + found)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.zeros(9, dtype=torch.int32)
        count[(5,)](x, o, torch.zeros(1, dtype=torch.int32), x.numel(), B=16, SAFE={safe})
        return o[:1]
"""
)
# The interpreter's C++ has no such addition: it is made of a load and a store.
BFLOATS = (
    HEAD
    + """
@triton.jit
def count(o, x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(o + i, tl.load(x + i).to(tl.bfloat16))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.zeros(64, dtype=torch.bfloat16)
        count[(5,)](o, x, B=64)
        return o
"""
)
# Each program reads again what it has stored, and stores it again; its last block leaves `o`.
TWICE = (
    HEAD
    + """
@triton.jit
def twice(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)
    tl.store(o + i, tl.load(o + i, mask=i < n, other=0.0) * 2, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        twice[(triton.cdiv(x.numel(), 16),)](x, o, x.numel(), B=16)
        return o
"""
)


def test_a_race_shows_when_no_program_sees_what_others_store(bench: Bench, tmp_path: Path) -> None:
    task = TASK.format(
        golden="x.sum(dtype=torch.int32).reshape(1)",
        inputs="torch.randint(1, 9, (70,), dtype=torch.int32)",
    )
    wrong = COUNTS.replace("{safe}", "False")
    record = verdict(bench, tmp_path, task, wrong, stress=6)
    assert record.error_type == "FlakyCase"
    assert record.stress is not None
    # No order of whole programs loses a count.
    failed = {kind: entry["failed"] for kind, entry in record.stress["by_variation"].items()}
    assert {kind for kind, count in failed.items() if count} == {"together"}
    assert "as if all programs of each grid ran at the same time: 1 of 1 fail" in (
        record.error_msg or ""
    )


def test_programs_that_only_meet_in_atomics_are_right_at_the_same_time(
    bench: Bench, tmp_path: Path
) -> None:
    task = TASK.format(
        golden="x.sum(dtype=torch.int32).reshape(1)",
        inputs="torch.randint(1, 9, (70,), dtype=torch.int32)",
    )
    added = TASK.format(golden="(x * 5).bfloat16()", inputs="torch.randint(1, 9, (64,)).float()")
    twice = TASK.format(golden="x * 2", inputs="torch.randn(70)")
    safe = COUNTS.replace("{safe}", "True")
    for sides in ((task, safe), (added, BFLOATS), (twice, TWICE)):
        record = verdict(bench, tmp_path, *sides, stress=8)
        assert record.passed, record.error_msg
        assert record.stress is not None
        assert record.stress["by_variation"]["together"]["runs"] == 1


def test_memory_that_nobody_wrote_shows_when_it_holds_other_values(
    bench: Bench, tmp_path: Path
) -> None:
    task = TASK.format(golden="x", inputs="torch.rand(64)")
    assert verdict(bench, tmp_path, task, MAXIMUM).passed
    record = verdict(bench, tmp_path, task, MAXIMUM, stress=9)
    assert record.error_type == "FlakyCase"
    assert record.stress is not None
    assert record.stress["by_variation"]["memory"]["failed"] > 0
    assert record.stress["by_variation"]["reversed"]["failed"] == 0


TURNS = (
    HEAD
    + """
@triton.jit
def number(o, turn):
    at = (tl.program_id(0) * 3 + tl.program_id(1)) * 2 + tl.program_id(2)
    tl.store(o + at, tl.atomic_add(turn, 1))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        o, turn = torch.full((12,), -1), torch.zeros(1, dtype=torch.int64)
        number[(2, 3, 2)](o, turn)
        return o
"""
)
# What a program waits for is there only if the one before it has run, or runs at the same time.
CHAIN = (
    HEAD
    + """
from pytest_tritonverify.execution import varying
varying._LEAST_PATIENCE = 0.5

@triton.jit
def chain(flags):
    program = tl.program_id(0)
    if program > 0:
        while tl.load(flags + program - 1) == 0:
            pass
    tl.store(flags + program, 1)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        flags = torch.zeros(6, dtype=torch.int32)
        chain[(6,)](flags)
        return flags
"""
)


def test_each_program_runs_once_in_whatever_order(bench: Bench, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, ROWS, TURNS)
    case, worker = bench.case(pair), bench.ready("candidate", pair)

    def turns(kind: str, seed: int = 1) -> list[int]:
        message = {**case["message"], "variation": {"kind": kind, "seed": seed}}
        answer = bench.ask(worker, message, case["fd"])
        found: list[int] = Sides.opened(answer)["outputs"].tolist()
        return found

    assert turns("plain") == list(range(12))
    assert turns("reversed") == list(range(12))[::-1]
    shuffled = turns("shuffled")
    assert sorted(shuffled) == list(range(12)) != shuffled
    assert turns("shuffled") == shuffled != turns("shuffled", 2)
    assert turns("plain") == list(range(12))


def test_programs_that_wait_for_each_other_are_left_in_their_order(
    bench: Bench, tmp_path: Path
) -> None:
    task = TASK.format(golden="torch.ones(6, dtype=torch.int32)", inputs="torch.rand(2)")
    record = verdict(bench, tmp_path, task, CHAIN, stress=6)
    assert record.passed
    assert record.stress is not None
    assert record.stress["any_order"] is False
    assert set(record.stress["by_variation"]) == {"plain", "memory", "reuse"}


def test_a_case_that_fails_now_and_then_is_flaky_and_never_green(
    bench: Bench, tmp_path: Path
) -> None:
    record = verdict(bench, tmp_path, ROWS, SOMETIMES, stress=8)
    assert record.error_type == "FlakyCase"
    assert record.stress is not None
    assert record.stress["errors"] == {"AccuracyError": 1, "ValueError": 1}
    assert record.stress["failed"] == 2
    assert "2 of 8" in (record.error_msg or "")


def test_a_case_that_always_fails_keeps_its_own_failure(bench: Bench, tmp_path: Path) -> None:
    wrong = SPILLS.format(mask="i < n").replace("value * 2", "value * 3")
    record = verdict(bench, tmp_path, ROWS, wrong, stress=3)
    assert record.error_type == "AccuracyError"
    assert "All 3 runs of the case fail." in (record.error_msg or "")
    assert record.stress is not None
    assert record.stress["failure_rate"] == 1


def test_other_seeds_show_what_one_set_of_inputs_does_not(bench: Bench, tmp_path: Path) -> None:
    task = TASK.format(golden="x * 2", inputs="torch.randn(5, 12)")
    wrong = SPILLS.format(mask="i < n").replace("value * 2", "tl.minimum(value, 2.3) * 2")
    assert verdict(bench, tmp_path, task, wrong).passed
    record = verdict(bench, tmp_path, task, wrong, trials=6)
    trials = record.trials
    assert trials is not None
    assert record.error_type == "AccuracyError"
    assert trials["sets"] == 6
    assert 0 < trials["failed"] == len(trials["failed_seeds"]) < 6
    assert 0 not in trials["failed_seeds"]
    assert trials["same_inputs"] == 0
    seed = trials["failed_seeds"][0]
    assert f"from seed {seed}." in (record.error_msg or "")


def test_a_task_that_seeds_itself_has_no_other_inputs(bench: Bench, tmp_path: Path) -> None:
    task = ROWS.replace("    return [", "    torch.manual_seed(7)\n    return [")
    record = verdict(bench, tmp_path, task, SPILLS.format(mask="i < n"), trials=3)
    assert record.passed
    assert record.trials is not None
    assert record.trials["same_inputs"] == 2
    assert [w["code"] for w in record.warnings] == ["trials_same_inputs"]


NORM = TASK.format(
    golden="(x.pow(2).mean(-1, keepdim=True).sqrt(), x.argmax(-1))",
    inputs="torch.linspace(100, 400, 48).reshape(4, 12).half()",
)
WIDE = (
    HEAD
    + """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.float()
        return wide.pow(2).mean(-1, keepdim=True).sqrt().half(), x.argmax(-1)
"""
)


def test_a_golden_of_float64_does_not_overflow_on_the_way(bench: Bench, tmp_path: Path) -> None:
    record = verdict(bench, tmp_path, NORM, WIDE)
    assert (record.passed, record.golden_precision) == (False, "own")
    record = verdict(bench, tmp_path, NORM, WIDE, golden="float64")
    assert (record.passed, record.golden_precision) == (True, "float64")
    assert record.outputs[0]["dtype"] == "torch.float16"
    record = verdict(bench, tmp_path, NORM, WIDE, golden="float64", strict=True)
    assert record.golden_precision == "float64"


NARROW = """
import torch

def narrow(x):
    if x.element_size() > {limit}:
        raise TypeError("numbers are too wide")
    return x * 2

class Model(torch.nn.Module):
    def forward(self, x):
        return narrow(x)

def get_inputs():
    return [(torch.rand(5, 12) + 1).half()]
"""


def test_where_there_is_no_such_golden_the_next_best_decides_and_the_record_says_so(
    bench: Bench, tmp_path: Path
) -> None:
    right = SPILLS.format(mask="i < n")
    record = verdict(bench, tmp_path, NARROW.format(limit=4), right, golden="float64")
    assert (record.passed, record.golden_precision, record.warnings) == (True, "float32", [])
    record = verdict(bench, tmp_path, NARROW.format(limit=2), right, golden="float64")
    assert (record.passed, record.golden_precision) == (True, "own")
    assert [w["code"] for w in record.warnings] == ["golden_precision"]
    assert "numbers are too wide" in record.warnings[0]["message"]

"""A kernel that uses lanes which a masked load leaves undefined fails, and is told which load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.workers import write_pair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_tritonverify.results.records import CaseRecord
    from tests.support.workers import Bench

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, index):
        return {golden}

def get_inputs():
    return [torch.rand(3, 100) + 1, torch.arange(100).flip(0)]
"""

IMPLEMENTATION = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + row * n + at, mask=inside)
    {body}

class ModelNew(torch.nn.Module):
    def forward(self, x, index):
        out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        kernel[(x.shape[0],)](x, index, out, x.shape[1], BLOCK=128)
        return out
"""
LOAD_LINE = 1 + IMPLEMENTATION[: IMPLEMENTATION.index("x = tl.load")].count("\n")
SUM = "tl.store(out_ptr + row, tl.sum(x))"
WHERE = "tl.store(out_ptr + row, tl.sum(tl.where(inside, x, 0.0)))"
WRONG = "tl.store(out_ptr + row, tl.sum(x) * 3)"
MINIMUM = "tl.store(out_ptr + row, tl.min(x))"
GATHER = """\
place = tl.load(index_ptr + at, mask=inside)
    found = tl.load(x_ptr + row * n + place)
    tl.store(out_ptr + row, tl.sum(tl.where(inside, found, 0.0)))"""
REFUSES = """\
tl.store(out_ptr + row, tl.sum(x))
    assert not (tl.max(x).handle.data > 1e30).any(), "too large"
"""


@pytest.fixture
def judged(bench: Bench, tmp_path: Path) -> Callable[..., CaseRecord]:
    """Judge a kernel that ends in some lines against a golden."""

    def judge(golden: str, body: str, lanes: str = "poison") -> CaseRecord:
        task, implementation = TASK.format(golden=golden), IMPLEMENTATION.format(body=body)
        return bench.verdict(write_pair(tmp_path, task, implementation), masked_lanes=lanes)[0]

    return judge


@pytest.mark.parametrize(
    ("golden", "body", "original", "lanes"),
    [
        ("x.sum(1)", SUM, "NaN positions differ", 84),
        ("x.amin(1).clamp(max=0)", MINIMUM, "is not accurate", 84),
        ("x.sum(1)", REFUSES, "too large", 28),
    ],
    ids=["sum", "minimum", "exception"],
)
def test_a_case_that_passes_with_zeros_alone_is_shown_at_the_load(
    judged: Callable[..., CaseRecord], golden: str, body: str, original: str, lanes: int
) -> None:
    record = judged(golden, body)

    assert (record.status, record.error_type) == ("failed", "MaskedLaneRead")
    assert record.line == LOAD_LINE
    assert record.file is not None
    assert record.file.endswith("op_triton_ascend_impl.py")
    message = record.error_msg or ""
    assert message.startswith("MaskedLaneRead: ")
    assert f"op_triton_ascend_impl.py:{LOAD_LINE}: the load left {lanes} lanes undefined" in message
    assert original in message
    assert "other=" in message


def test_a_kernel_that_puts_undefined_lanes_aside_passes(
    judged: Callable[..., CaseRecord],
) -> None:
    assert judged("x.sum(1)", WHERE).passed


def test_with_zeros_they_are_as_triton_has_them(judged: Callable[..., CaseRecord]) -> None:
    assert judged("x.sum(1)", SUM, "zero").passed


def test_a_kernel_that_is_wrong_with_zeros_too_keeps_its_failure(
    judged: Callable[..., CaseRecord],
) -> None:
    record = judged("x.sum(1)", WRONG)

    assert record.error_type == "AssertionError"
    assert "NaN positions differ" in (record.error_msg or "")
    note = (record.error_msg or "").splitlines()[-1]
    assert note.startswith("It fails too with zeros")
    assert f"op_triton_ascend_impl.py:{LOAD_LINE}" in note
    assert record.outputs[0]["diagnosis"]["code"] == "masked_lanes"


def test_an_address_made_from_undefined_lanes_is_shown_at_the_load(
    judged: Callable[..., CaseRecord],
) -> None:
    record = judged("x.flip(1).sum(1)", GATHER)

    assert record.error_type == "MaskedLaneRead"
    assert "outside of the tensors" in (record.error_msg or "")
    assert f"op_triton_ascend_impl.py:{LOAD_LINE + 1}" in (record.error_msg or "")


def test_other_failures_are_not_run_again(bench: Bench, tmp_path: Path) -> None:
    task = TASK.format(golden="x.sum(1)")
    body = "tl.store(out_ptr + row, tl.sum(tl.where(inside, x, 0.0)) * 3)"
    marks = tmp_path / "runs"
    code = IMPLEMENTATION.format(body=body).replace(
        "        return out", f"        open({str(marks)!r}, 'a').write('.')\n        return out"
    )
    pair = write_pair(tmp_path, task, code.replace("mask=inside)", "mask=inside, other=0.0)", 1))

    record = bench.verdict(pair, limits=bench.limits(files="off"))[0]

    assert record.error_type == "AccuracyError"
    assert marks.read_text() == "."

"""Real kernels with one planted fault each, judged as in a run: the record names the fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.results.records import CaseRecord
    from tests.support.workers import Bench

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {golden}

def get_inputs():
    return [{given}]
"""

HEAD = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
"""

# One program for each BLOCK elements of a flat array.
FLAT = (
    HEAD
    + """
    at = pid * BLOCK + at
    n = rows * cols
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    {body}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.{fresh}_like(x)
        rows, cols = x.shape
        kernel[({programs},)](x, out, rows, cols, BLOCK=256)
        return out
"""
)

# One program for each row.
ROWS = (
    HEAD
    + """
    row = pid
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other={other})
    {body}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty({shape}, dtype=x.dtype, device=x.device)
        kernel[({programs},)](x, out, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return {result}
"""
)


@dataclass
class Planted:
    """A kernel and its fault.

    Attributes:
        code: the diagnosis.
        golden: what the reference computes of `x`.
        body: the statements of the kernel, after the load.
        where: the kind of region that the failing elements form, if it is to be told.
    """

    code: str
    golden: str
    body: str
    where: str | None = None
    rows: bool = False
    programs: str = ""
    given: str = "torch.randn(24, 100)"
    fresh: str = "empty"
    other: str = "0.0"
    shape: str = "x.shape"
    result: str = "out"

    def write(self, folder: Path) -> tuple[str, str]:
        programs = self.programs or ("rows" if self.rows else "triton.cdiv(x.numel(), 256)")
        source = ROWS if self.rows else FLAT
        return (
            TASK.format(golden=self.golden, given=self.given),
            source.format(
                body=self.body,
                programs=programs,
                fresh=self.fresh,
                other=self.other,
                shape=self.shape,
                result=self.result,
            ),
        )


STORE = "tl.store(out_ptr + at, {value}, mask={mask})"
ROW_STORE = "tl.store(out_ptr + row * cols + at, {value}, mask={mask})"


def flat(value: str, mask: str = "at < n") -> str:
    return STORE.format(value=value, mask=mask)


def rows(value: str, mask: str = "at < cols") -> str:
    return ROW_STORE.format(value=value, mask=mask)


FAULTS = {
    "the grid is rounded down": Planted(
        "tail_unwritten", "x * 2", flat("x * 2"), programs="x.numel() // 256"
    ),
    "a program is skipped": Planted(
        "one_block", "x * 2", "if pid != 3:\n        " + flat("x * 2"), given="torch.randn(32, 64)"
    ),
    "a block takes the wrong branch": Planted(
        "one_block", "x * 2", flat("tl.where(pid == 5, x, x * 2)")
    ),
    "every fourth lane is left out": Planted(
        "every_kth", "x.exp()", flat("tl.exp(x)", "(at < n) & (at % 4 != 3)"), fresh="zeros"
    ),
    "rows are counted from one": Planted(
        "first_row",
        "x.abs()",
        "at1 = (row + 1) * cols + at\n"
        "    y = tl.load(x_ptr + at1, mask=(at < cols) & (row + 1 < rows), other=0.0)\n"
        "    tl.store(out_ptr + at1, tl.abs(y), mask=(at < cols) & (row + 1 < rows))",
        rows=True,
    ),
    "the last column is forgotten": Planted(
        "last_column", "x.sin()", rows("tl.sin(x)", "at < cols - 1"), rows=True
    ),
    "the last row is forgotten": Planted(
        "last_row", "x.sin()", rows("tl.sin(x)", "(at < cols) & (row < rows - 1)"), rows=True
    ),
    "rows and columns are exchanged": Planted(
        "transposed",
        "x * x",
        "tl.store(out_ptr + at * rows + row, x * x, mask=at < cols)",
        rows=True,
        given="torch.randn(48, 48)",
    ),
    "the load is one too far": Planted(
        "rolled",
        "x.exp()",
        "x = tl.load(x_ptr + at + 1, mask=at + 1 < n, other=0.0)\n    " + flat("tl.exp(x)"),
    ),
    "one element is loaded for all": Planted(
        "broadcast", "x + 1", "x = tl.load(x_ptr + at * 0)\n    " + flat("x + 1")
    ),
    "a mean is a sum": Planted(
        "constant_factor",
        "x.mean(1)",
        "tl.store(out_ptr + row, tl.sum(x))",
        rows=True,
        shape="rows",
    ),
    "a constant is not added": Planted("constant_offset", "x.exp() + 0.25", flat("tl.exp(x)")),
    "the wrong axis is reduced": Planted(
        "wrong_reduction_axis",
        "x.sum(1)",
        "x = tl.load(x_ptr + at * cols + row, mask=at < rows, other=0.0)\n"
        "    tl.store(out_ptr + row, tl.sum(x))",
        rows=True,
        shape="rows",
        given="torch.randn(64, 64)",
    ),
    "two outputs are exchanged": Planted(
        "swapped_outputs",
        "(x.amax(1), x.amin(1))",
        "tl.store(out_ptr + row, tl.min(tl.where(at < cols, x, float('inf'))))\n"
        "    tl.store(out_ptr + rows + row, tl.max(x))",
        rows=True,
        other="-float('inf')",
        shape="(2, rows)",
        result="(out[0], out[1])",
    ),
    "the product is computed in half precision": Planted(
        "half_precision",
        "x * x * x",
        "h = x.to(tl.float16)\n    " + flat("(h * h * h).to(tl.float32)"),
        given="torch.rand(24, 100) + 1",
    ),
    "squares overflow in half precision": Planted(
        "overflow_to_infinity",
        "x * x",
        "h = x.to(tl.float16)\n    " + flat("(h * h).to(tl.float32)"),
        given="torch.randn(24, 100) * 200",
    ),
    "exponentials overflow": Planted(
        "overflow_to_infinity",
        "x.softmax(1)",
        "e = tl.where(at < cols, tl.exp(x), 0.0)\n    " + rows("e / tl.sum(e)"),
        rows=True,
        given="torch.randn(24, 100) * torch.tensor([1.0, 60.0] * 12)[:, None]",
    ),
    "nothing is written": Planted("uninitialised", "x * 2", flat("x * 2", "at < 0")),
    "the sign is wrong": Planted("sign_flipped", "x.exp() - x", flat("x - tl.exp(x)")),
    "zeros are returned": Planted("zeros", "x.cos()", flat("x - x")),
}


def judged(bench: Bench, folder: Path, fault: Planted) -> CaseRecord:
    return bench.verdict(write_pair(folder, *fault.write(folder)))[0]


@pytest.mark.parametrize("name", FAULTS)
def test_the_planted_fault_is_named(bench: Bench, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]

    record = judged(bench, tmp_path, fault)

    assert record.status == "failed"
    found = record.outputs[0]["diagnosis"]
    assert found["code"] == fault.code
    assert found["confidence"] in {"clear", "likely"}
    assert f"cause: {found['cause']}" in (record.error_msg or "")


def test_an_undefined_lane_is_shown_by_its_load(bench: Bench, tmp_path: Path) -> None:
    fault = Planted("", "x.sum(1)", "tl.store(out_ptr + row, tl.sum(x))", rows=True, shape="rows")
    task, source = fault.write(tmp_path)

    pair = write_pair(tmp_path, task, source.replace(", other=0.0", ""))

    assert bench.verdict(pair)[0].error_type == "MaskedLaneRead"


def test_the_block_size_comes_from_the_launch(bench: Bench, tmp_path: Path) -> None:
    record = judged(bench, tmp_path, FAULTS["a program is skipped"])
    evidence = " ".join(record.outputs[0]["diagnosis"]["evidence"])
    assert "block 3 of 8, of 4 rows each" in evidence

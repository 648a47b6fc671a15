"""Tiny pairs of task and implementation, written where a test wants them.

Case k feeds in k rows of eight numbers, so that an implementation can tell which case it is in
and misbehave in that one only.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What an implementation can do in a case instead of being right.
WRONG = "factor = 3.0"
RAISES = "raise ValueError('no such luck')"
LEAVES = "sys.exit(0)"
CRASHES = "os.abort()"
HANGS = "time.sleep(600)"

_TASK = '''\
"""Twice the input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * {factor}


def get_input_groups():
    return [[torch.randn(k, 8)] for k in range(1, {cases} + 1)]


def get_init_inputs():
    return []
'''

_IMPLEMENTATION = '''\
"""Twice the input, by a kernel."""

import os
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) * factor, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        case, factor = x.shape[0], {factor}
{special}
        out = torch.empty_like(x)
        n = x.numel()
        double_kernel[(1,)](x, out, factor, n, BLOCK=triton.next_power_of_2(n))
        return out
'''


@dataclass(frozen=True)
class WrittenPair:
    """The files of a pair."""

    task: Path
    implementation: Path

    @property
    def folder(self) -> Path:
        """The folder of both."""
        return self.task.parent

    @property
    def class_line(self) -> int:
        """The line of `class ModelNew`, from 1."""
        lines = self.implementation.read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.startswith("class ModelNew"))

    def line_of(self, text: str) -> int:
        """The first line of the implementation that holds a text, from 1."""
        lines = self.implementation.read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)

    def result(self, name: str = "verify_result.json") -> dict[str, Any]:
        """The pair's result file, read."""
        content: dict[str, Any] = json.loads((self.folder / name).read_text())
        return content


def write_pair(
    folder: Path,
    op: str = "double",
    variant: str = "ascend_impl",
    *,
    cases: int = 3,
    factor: float = 2.0,
    at: Mapping[int, str] | None = None,
) -> WrittenPair:
    """Write a pair and return its files.

    Args:
        folder: where; made if it is not there.
        op: the operator's name.
        variant: the implementation's variant.
        cases: number of cases.
        factor: what the input is multiplied by.
        at: statements that `forward` runs first, by case; 0 stands for every case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pair = WrittenPair(folder / f"{op}_torch.py", folder / f"{op}_triton_{variant}.py")
    pair.task.write_text(_TASK.format(cases=cases, factor=factor))
    special = "\n".join(
        (f"if case == {case}:\n" if case else "if True:\n") + textwrap.indent(text, "    ")
        for case, text in (at or {}).items()
    )
    pair.implementation.write_text(
        _IMPLEMENTATION.format(factor=factor, special=textwrap.indent(special, " " * 8))
    )
    return pair


def case_name(case: int) -> str:
    """Return the name of a case's item."""
    return f"case{case}-float32-{case}x8"


def case_names(cases: int) -> list[str]:
    """Return the names of all items of a pair with so many cases."""
    return [case_name(case) for case in range(1, cases + 1)]


def error_types(result: Mapping[str, Any]) -> dict[int, str]:
    """Return the error types in a result's `failures`, by case."""
    return {entry["case_idx"]: entry["error_type"] for entry in result["failures"]}

"""Examine pairs that are written from source, in real workers."""

from __future__ import annotations

import textwrap
import time
from typing import TYPE_CHECKING

from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.examination import ExecutionExamination
from pytest_tritonverify.isolation import Limits
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import Settings
from tests.support.workers import PATIENCE, write_pair

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.evidence.report import ExecutionReport, Finding
    from pytest_tritonverify.execution.host import Host

_LIMITS = Limits()
# Kernels that many implementations of tests need.
KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, o, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0) * factor, mask=i < n)

@triton.jit
def copy(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)

def twice(x, o=None):
    o = torch.empty_like(x) if o is None else o
    n = x.numel()
    if n:
        scale[(triton.cdiv(n, 64),)](x, o, n, 2, B=64)
    return o
"""

TWICE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(5, 24)]
"""


def implementation(body: str, top: str = "") -> str:
    """Return the source of an implementation.

    Args:
        body: the body of class ModelNew, or of its forward where it defines none.
        top: statements of the module, after the kernels.
    """
    body = textwrap.dedent(body).strip()
    if "def forward" not in body:
        body = "def forward(self, x):\n" + textwrap.indent(body, "    ")
    head = KERNELS + textwrap.dedent(top)
    return f"{head}\nclass ModelNew(torch.nn.Module):\n{textwrap.indent(body, '    ')}\n"


def examine(
    host: Host,
    pair: Pair,
    cases: int = 1,
    seconds: float = PATIENCE,
    plain: Mapping[int, Mapping[str, str] | None] | None = None,
    limits: Limits = _LIMITS,
) -> ExecutionReport:
    """Examine the first cases of a pair.

    Args:
        host: starts the workers.
        pair: the pair.
        cases: how many.
        seconds: the time that it may take.
        plain: digests of cases' own runs.
        limits: of the implementation's processes.
    """
    device = host.config.device.name
    settings = Settings(device=device, timeout=PATIENCE, standin="off", limits=limits)
    examination = ExecutionExamination(PairProcesses(pair, settings, device, host.spawn))
    entries = [CaseEntry(f"case{k}", "float32") for k in range(1, cases + 1)]
    try:
        return examination.run(entries, time.monotonic() + seconds, plain or {})
    finally:
        examination.reference.close()


def examined(
    host: Host, folder: Path, source: str, task: str = TWICE, cases: int = 1
) -> ExecutionReport:
    """Write a pair and examine it."""
    return examine(host, write_pair(folder, task, source), cases)


def violations(report: ExecutionReport) -> set[str]:
    """Return the codes of what shows a cheat."""
    return {finding.code for finding in report.violations}


def notes(report: ExecutionReport) -> set[str]:
    """Return the codes of what is worth knowing."""
    return {finding.code for finding in report.findings if finding.severity == "note"}


def the(report: ExecutionReport, code: str) -> Finding:
    """Return the only finding of some code."""
    (found,) = [finding for finding in report.findings if finding.code == code]
    return found

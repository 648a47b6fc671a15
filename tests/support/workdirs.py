"""Work directories from the documented tree, with results as the verifier writes them."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.results import result_file
from pytest_tritonverify.results.records import CaseRecord, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TASK = '''\
"""Twice the input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_input_groups():
    return [[torch.randn(k, 8)] for k in range(1, 4)]


def get_init_inputs():
    return []
'''

CODE = '''\
"""Twice the input, by a kernel. {mark}"""

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) * 2.0, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        double_kernel[(1,)](x, out, n, BLOCK=triton.next_power_of_2(n))
        return out
'''

FAKE = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.mul(x, 2.0)
"""

ENVIRONMENT: dict[str, Any] = {
    "timestamp": "2026-09-03T14:22:01+08:00",
    "triton": {"version": "3.2.0", "path": "triton", "key_sha256": "9f2c" * 16},
    "cache": {"dir": "cache", "fresh": False, "fresh_effective": True, "always_compile": False},
    "cann": {"info_sha256": "3a7e" * 16, "version": "8.0.RC3"},
    "torch": {"version": "2.1.0", "torch_npu_version": "2.1.0"},
    "device": {"backend": "npu", "name": "Ascend910B4", "npu_name": "Ascend910B4"},
    "cmdline": {"triton_impl_name": "triton_ascend_impl", "non_compute": False},
}


def inputs(case_idx: int) -> list[Any]:
    """Return the description of a case's inputs."""
    return [{"type": "tensor", "shape": [case_idx, 8], "dtype": "torch.float32"}]


def record(
    case_idx: int, error_type: str | None = None, message: str = "", **more: Any
) -> CaseRecord:
    """Return the record of a case; it has passed unless an error is named."""
    failed = error_type is not None
    return CaseRecord(
        case_idx=case_idx,
        name=f"case{case_idx}-float32-{case_idx}x8",
        status="failed" if failed else "passed",
        input_desc=inputs(case_idx),
        error_type=error_type,
        error_msg=(message or f"{error_type}: 3 of 8 elements differ") if failed else None,
        **({"side": "implementation", "phase": "compare"} if failed else {}) | more,
    )


def verify_result(
    records: Sequence[CaseRecord],
    *,
    op: str = "softmax",
    sources: Mapping[str, str | None] | None = None,
    environment: Mapping[str, Any] | None = None,
    checks: Mapping[str, CheckRecord] | None = None,
) -> dict[str, Any]:
    """Return a result as the verifier writes it."""
    found = dict.fromkeys(("task", "data", "implementation"))
    passed = {
        name: CheckRecord(name=name, status="passed") for name in ("degeneration", "execution")
    }
    return result_file.document(
        op,
        records,
        environment or ENVIRONMENT,
        sources or found,
        checks=passed if checks is None else checks,
        policies={"degeneration": "strict", "execution": "fail"},
    )


def perf_result(
    speedups: Sequence[float | None], *, op: str = "softmax", implementation_ms: float = 0.5
) -> dict[str, Any]:
    """Return a benchmark report with the documented keys: None stands for an abnormal case."""
    shapes = [
        {
            "case_idx": case_idx,
            "input_desc": inputs(case_idx),
            "status": "pass",
            "framework": {
                "avg_latency_ms": None if s is None else s * implementation_ms,
                "peak_memory_mb": 64.0,
            },
            "implementation": {"avg_latency_ms": implementation_ms, "peak_memory_mb": 32.0},
            "speedup_vs_torch": s,
            "error_type": None,
            "error_msg": None,
        }
        for case_idx, s in enumerate(speedups, 1)
    ]
    valid = [s for s in speedups if s is not None]
    side = {"peak_memory_mb": 64.0, "operators": {}}
    mean = math.exp(math.fsum(map(math.log, valid)) / len(valid)) if valid else None
    return {
        "op_name": op,
        "warmup": 5,
        "repeats": 50,
        "total_cases": len(shapes),
        # Deliberately no count of a verification: it must show nowhere.
        "passed_cases": len(shapes),
        "failed_cases": 0,
        "nan_indices": [],
        "inf_indices": [],
        "zero_indices": [],
        "negative_indices": [],
        "none_indices": [k for k, s in enumerate(speedups, 1) if s is None],
        "framework": {
            "avg_latency_ms": sum(valid) * implementation_ms / max(len(valid), 1),
            **side,
        },
        "implementation": {"avg_latency_ms": implementation_ms, **side},
        "speedup_vs_torch": mean,
        "per_shape_results": shapes,
    }


def write_json(path: Path, content: object) -> Path:
    """Write JSON, and the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def sha256(path: Path) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Builder:
    """Builds a work directory round by round.

    Attributes:
        folder: the work directory.
        op: the operator.
        cases: its number of cases.
    """

    folder: Path
    op: str = "softmax"
    cases: int = 3
    generated: Path | None = field(default=None)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.op}.py").write_text(TASK, encoding="utf-8")
        (self.folder / "sketch.txt").write_text("one kernel\n", encoding="utf-8")

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def iteration(
        self,
        number: int,
        records: Sequence[CaseRecord] | None = None,
        speedups: Sequence[float | None] | None = (1.5, 1.5, 1.5),
        code: str | None = None,
        **result: Any,
    ) -> Path:
        """Add a round of Phase 3; where all passed, copy its code and report as documented."""
        folder = self.output / f"iter_{number}"
        verify = folder / "verify"
        verify.mkdir(parents=True)
        text = code if code is not None else CODE.format(mark=f"Round {number}.")
        (folder / "generated_code.py").write_text(text, encoding="utf-8")
        task = verify / f"{self.op}_torch.py"
        shutil.copyfile(self.folder / f"{self.op}.py", task)
        implementation = verify / f"{self.op}_triton_ascend_impl.py"
        implementation.write_text(text, encoding="utf-8")
        chosen = [record(k) for k in range(1, self.cases + 1)] if records is None else records
        sources = {"task": sha256(task), "data": None, "implementation": sha256(implementation)}
        content = verify_result(chosen, op=self.op, sources=sources, **result)
        write_json(verify / "verify_result.json", content)
        (folder / "log.md").write_text("log\n", encoding="utf-8")
        if content["passed_cases"] == content["total_cases"] > 0:
            shutil.copyfile(folder / "generated_code.py", self.output / "generated_code.py")
            if speedups is not None:
                write_json(folder / "perf_result.json", perf_result(speedups, op=self.op))
                shutil.copyfile(folder / "perf_result.json", self.output / "perf_result.json")
        return folder

    def optimisation(
        self,
        number: int,
        baseline: Path,
        speedups: Sequence[float | None] | None = (2.0, 2.0, 2.0),
        records: Sequence[CaseRecord] | None = None,
        implementation_ms: float = 0.25,
    ) -> Path:
        """Add a round of Phase 4 against a round of Phase 3."""
        folder = self.output / f"opt_iter_{number}"
        verify = folder / "verify"
        verify.mkdir(parents=True)
        text = CODE.format(mark=f"Optimisation {number}.")
        (folder / "optimized_code.py").write_text(text, encoding="utf-8")
        shutil.copyfile(folder / "optimized_code.py", self.output / "optimized_code.py")
        shutil.copyfile(self.folder / f"{self.op}.py", verify / f"{self.op}_torch.py")
        shutil.copyfile(baseline / "generated_code.py", verify / f"{self.op}_triton_baseline.py")
        (verify / f"{self.op}_triton_optimized.py").write_text(text, encoding="utf-8")
        shutil.copyfile(
            baseline / "verify" / "verify_result.json", verify / "verify_result_baseline.json"
        )
        chosen = [record(k) for k in range(1, self.cases + 1)] if records is None else records
        sources = {
            "task": sha256(verify / f"{self.op}_torch.py"),
            "data": None,
            "implementation": sha256(verify / f"{self.op}_triton_optimized.py"),
        }
        content = verify_result(chosen, op=self.op, sources=sources)
        write_json(verify / "verify_result_optimized.json", content)
        if (baseline / "perf_result.json").exists():
            shutil.copyfile(baseline / "perf_result.json", folder / "baseline_perf_result.json")
        if speedups is not None:
            report = perf_result(speedups, op=self.op, implementation_ms=implementation_ms)
            write_json(folder / "optimized_perf_result.json", report)
        (folder / "log.md").write_text("log\n", encoding="utf-8")
        return folder

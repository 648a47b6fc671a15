"""Results and benchmark reports of many made-up pairs, as runs write them."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.results.records import CaseRecord, CheckRecord
from tests.support import workdirs

if TYPE_CHECKING:
    from pathlib import Path

_OPS = (
    "softmax", "layer_norm", "rms_norm", "matmul", "swiglu", "rotary_embedding", "gelu",
    "cross_entropy", "group_norm", "top_k_gating", "conv1d", "batched_gemm_bias_relu", "cumsum",
    "flash_attention_forward", "dequantise_int8", "scatter_add", "argmax", "dropout_add",
)  # fmt: skip
_SHAPES = ([128, 256], [4096], [8, 1024, 64], [1, 32000], [17, 33], [2, 8, 128, 64])
_METRICS: dict[str, Any] = {
    "category": "eco_open_source",
    "dtype": "torch.float16",
    "rtol": 2**-9,
    "atol": 2**-9,
    "required_matched_ratio": 0.99,
    "max_abs_error_limit": 0.1,
}


def errors(choose: random.Random, elements: int, *, failing: bool) -> dict[str, Any]:
    """Return how large the errors of an output are: a bell within the limit, or beyond it."""
    first = choose.randint(-15, -10)
    bars = range(first, choose.randint(6, 14) if failing else 0)
    middle, width = (bars[0] + bars[-1]) / 2, len(bars) / 5
    counts = [round(elements / 8 * math.exp(-(((b - middle) / width) ** 2))) for b in bars]
    over = [count if bar > 4 else 0 for bar, count in zip(bars, counts, strict=True)]
    return {
        "elements": elements,
        "measured": min(elements, 1 << 14),
        "equal": elements // 3,
        "non_finite": 12 if failing and choose.random() < 0.3 else 0,
        "histogram": {"lowest": first / 4, "step": 0.25, "counts": counts, "over": over},
        "heat_map": heat_map(choose) if failing else None,
    }


def heat_map(choose: random.Random) -> dict[str, Any]:
    """Return a map in which the last columns, one block, or single cells fail."""
    rows, columns = 32, 64
    kind = choose.randrange(3)

    def level(row: int, column: int) -> int:
        wrong = (
            column >= 58,
            8 <= row < 16 and 16 <= column < 32,
            choose.random() < 0.03,
        )[kind]
        return choose.randint(6, 9) if wrong else choose.choice((0, 1, 2, 2, 3, 3, 4, 5))

    cells = ["".join(str(level(r, c)) for c in range(columns)) for r in range(rows)]
    return {"rows": 128, "columns": 256, "cells": cells}


def output(choose: random.Random, shape: list[int], *, passed: bool) -> dict[str, Any]:
    """Return the entry of an output."""
    total = math.prod(shape)
    wrong = 0 if passed else total // 10
    metrics = {
        **_METRICS,
        "matched_ratio": 1 - wrong / total,
        "matched_count": total - wrong,
        "total_finite": total,
        "max_abs_diff": 0.001 if passed else 3.25,
        "over_count": wrong // 2,
        "checks": {"matched_ratio": passed, "abs_limit": passed},
    }
    diagnosis = {
        "code": "tail_unwritten",
        "cause": "the last block of each row is not written: a mask or the grid leaves it out",
        "confidence": choose.choice(("clear", "likely")),
        "evidence": ["the failing elements hold NaN", "BLOCK = 64 does not divide 250"],
        "region": {"kind": "interval", "text": f"{wrong:,} of {total:,} fail: columns 192 to 249"},
    }
    return {
        "path": "output",
        "passed": passed,
        "category": "eco_open_source",
        "dtype": "torch.float16",
        "shape": shape,
        "error_type": None if passed else "AccuracyError",
        "metrics": metrics,
        "diagnosis": None if passed else diagnosis,
        "strictness": None,
        "errors": errors(choose, total, failing=not passed),
    }


def case(choose: random.Random, case_idx: int, error_type: str | None) -> CaseRecord:
    """Return the record of a case; it has passed unless an error is named."""
    shape = choose.choice(_SHAPES)
    described = [{"type": "tensor", "shape": shape, "dtype": "torch.float16"}, 1e-5]
    compared = error_type in (None, "AccuracyError")
    warnings = []
    if choose.random() < 0.05:
        text = "the standard would accept zeros in place of this output"
        warnings = [{"code": "non_discriminating", "message": text}]
    message = f"{error_type}: output (float16{shape}): 90 % of the elements match (99 % required)"
    detail = "\n".join(f"  [{i}, {i + 7}]: got nan, expected 0.{i}25" for i in range(8))
    return CaseRecord(
        case_idx=case_idx,
        name=f"case{case_idx}-float16-{'x'.join(map(str, shape))}",
        status="failed" if error_type else "passed",
        input_desc=described,
        seconds=choose.uniform(0.05, 1.5),
        golden_device="cpu",
        side="implementation" if error_type else None,
        phase=("compare" if compared else "forward") if error_type else None,
        error_type=error_type,
        error_msg=f"{message}\nworst 8 of 3277:\n{detail}" if error_type else None,
        outputs=[output(choose, shape, passed=error_type is None)] if compared else [],
        warnings=warnings,
        output="" if compared else "Segmentation fault\n",
    )


def compiled(message: str, error_type: str | None = None) -> CheckRecord:
    """Return a check by which one kernel compiles for a target and not for another."""
    kernel = {
        "kernel": message,
        "file": "x.py",
        "line": 7,
        "specialization": f"n: i32, {message}",
        "cases": [1, 2],
    }
    error = {"subkind": "ub_overflow", "message": message, "words": message}
    figures = {"registers": 32, "shared_bytes": 0, "spilled_bytes": 64, "stage": "binary"}
    return CheckRecord(
        name="compile",
        status="failed",
        error_type=error_type or message,
        message=message,
        report={
            "targets": {
                "cuda:90": {"triton": "3.9.0"},
                "Ascend910B4": {"triton-ascend": "3.2.0"},
            },
            "kernels": [
                {**kernel, **figures, "target": "cuda:90", "compiles": True, "error": None},
                {
                    **kernel,
                    "target": "Ascend910B4",
                    "compiles": False,
                    "error": {**error, "file": "x.py", "line": 9},
                },
            ],
            "unknown_cases": {},
            "left_out": 0,
        },
    )


def pair(number: int, cases: int = 8) -> tuple[str, str, dict[str, Any], dict[str, Any] | None]:
    """Return a pair: operator, implementation, result, and report where all cases passed."""
    choose = random.Random(number)
    op = f"{_OPS[number % len(_OPS)]}_{number // len(_OPS)}"
    fate = choose.random()
    kinds: list[str | None] = [None] * cases
    checks = {
        name: CheckRecord(name=name, status="passed") for name in ("degeneration", "execution")
    }
    if fate < 0.06:
        text = "A-PyTorchFallback-Type2: forward computes with torch.softmax (line 31)"
        checks["degeneration"] = CheckRecord(
            name="degeneration", status="failed", error_type="PyTorchFallback", message=text
        )
    elif fate < 0.16:
        for place in choose.sample(range(cases), choose.randint(1, cases)):
            kinds[place] = "AccuracyError"
    elif fate < 0.2:
        kinds[-1] = choose.choice(("WorkerCrash", "VerifyTimeout", "CompilationError"))
    records = [case(choose, k, kind) for k, kind in enumerate(kinds, 1)]
    impl = "triton_ascend_impl" if number % 3 else "triton_optimized"
    environment = {
        **workdirs.ENVIRONMENT,
        "cmdline": {"triton_impl_name": impl, "non_compute": False},
    }
    result = workdirs.verify_result(records, op=op, checks=checks, environment=environment)
    report = None
    if result["passed_cases"] == cases:
        centre = choose.lognormvariate(0.5, 0.8)
        speedups = [centre * choose.lognormvariate(0, 0.25) for _ in range(cases)]
        report = workdirs.perf_result(speedups, op=op, implementation_ms=choose.uniform(0.01, 0.4))
    return op, impl, result, report


def write_pairs(folder: Path, count: int, cases: int = 8) -> Path:
    """Write the files of some pairs, each into a folder of its own, and return the one above."""
    for number in range(count):
        op, _, result, report = pair(number, cases)
        workdirs.write_json(folder / op / "verify_result.json", result)
        if report is not None:
            workdirs.write_json(folder / op / "perf_result.json", report)
    return folder

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": lambda x: torch.softmax(x, dim=-1),
    "matmul": torch.matmul,
    "gelu": torch.nn.functional.gelu,
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", GOLDEN)
def test_a_right_kernel_passes(kernels: dict[str, Any], name: str, dtype: torch.dtype) -> None:
    *inputs, out = kernels["models"][dtype][name]
    golden = GOLDEN[name](*inputs)
    verdict = judge_outputs(golden, out, input_type=infer_input_type(inputs), rules=Rules())
    assert verdict.outputs[0].category == "eco_open_source"
    assert verdict.passed


def test_stores_have_the_width_of_their_pointers(kernels: dict[str, Any]) -> None:
    x, sums = kernels["faults"]["sums"]
    wrapped = (x.long().sum(1) + 2**31) % 2**32 - 2**31
    assert sums.tolist() == [*wrapped.tolist(), 77, 77, 77, 77]
    drawn, counts = kernels["faults"]["counts"]
    assert counts.tolist() == [*drawn.bincount(minlength=4).tolist(), 77, 77, 77, 77]


def test_a_loaded_number_counts_a_loop(kernels: dict[str, Any]) -> None:
    assert kernels["faults"]["total"].tolist() == [10]


def test_an_autotuned_kernel_runs_its_first_configuration(kernels: dict[str, Any]) -> None:
    assert kernels["faults"]["tuned"].tolist() == [64]


def refusals(found: Any) -> list[str]:
    if isinstance(found, str):
        return [found]
    children = found.values() if isinstance(found, dict) else found
    return [
        text
        for child in children
        if isinstance(child, (str, dict, list, tuple))
        for text in refusals(child)
    ]


def test_a_current_triton_refuses_nothing(kernels: dict[str, Any]) -> None:
    if tuple(map(int, kernels["triton"].split(".")[:2])) < (3, 9):
        pytest.skip("older ones lack more")
    runs = [kernels[name] for name in ("conversions", "operators")]
    runs += [kernels["lanes"]["modes"][mode] for mode in ("zero", "poison")]
    assert [text for text in refusals(runs) if "Error" in text] == []


def test_the_report_says_what_was_corrected(kernels: dict[str, Any]) -> None:
    first, again = kernels["reports"]
    assert {"low_precision", "typed_stores", "masked_lanes"} <= set(first["applied"])
    assert first["not_applied"] == {}
    assert first["masked_lanes"] == "zero"
    assert again == {**first, "masked_lanes": "poison"}


def test_without_ml_dtypes_the_rest_is_corrected() -> None:
    code = (
        "import json, sys; sys.modules['ml_dtypes'] = None\n"
        "from pytest_tritonverify import interpreter\n"
        "print(json.dumps(interpreter.prepare(masked_lanes='poison').to_json()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["not_applied"] == {"low_precision": "ml_dtypes is not installed"}
    assert "typed_stores" in report["applied"]
    assert report["masked_lanes"] == "poison"

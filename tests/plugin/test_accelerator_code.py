"""Code that was written for an accelerator is judged on the CPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_checks import TASK, result, write

if TYPE_CHECKING:
    from tests.support.runs import Runner

CUDA = """
import torch
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) * {factor}, mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.to("{kind}")
        assert x.is_{kind}
        out = torch.empty(x.shape, device="{kind}", dtype=x.dtype)
        relu_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
        return out
"""


@pytest.mark.parametrize("kind", ["cuda", "npu"])
def test_a_stand_in_answers_and_is_named(runner: Runner, kind: str) -> None:
    head = "import torch_npu\n" if kind == "npu" else ""
    path = write(runner, head + CUDA.format(kind=kind, factor=2))

    run = runner.run("--verify-dir=ops", "--verify-device=cpu")

    assert run.code == 0, run.out
    (standin,) = {json.dumps(case["standin"]) for case in result(path)["cases"]}
    assert json.loads(standin)["kind"] == kind
    assert f"is_{kind}" in json.loads(standin)["used"]
    assert f"op (triton_ascend_impl): the CPU stood in for {kind} (" in run.out


def test_a_fault_stays_a_fault(runner: Runner) -> None:
    path = write(runner, CUDA.format(kind="cuda", factor=3))
    run = runner.run("--verify-dir=ops", "--verify-device=cpu")
    assert run.code == 1
    assert {f["error_type"] for f in result(path)["failures"]} == {"AccuracyError"}


def test_without_it_the_failure_says_what_is_wanted(runner: Runner) -> None:
    path = write(runner, CUDA.format(kind="cuda", factor=2))
    run = runner.run("--verify-dir=ops", "--verify-device=cpu", "--verify-standin=off")
    assert run.code == 1
    assert "Hint: This code asks for an accelerator" in run.out
    assert {case["standin"] and case["standin"]["kind"] for case in result(path)["cases"]} == {None}


TUNED = """
import torch
import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({{"BLOCK": block}}) for block in (8, 16, 32)],
    key=["n"]{hooks},
)
@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    {store}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
"""
STORE = "tl.store(out_ptr + at, tl.maximum(x, 0.0) * {factor}, mask=at < n)"
ADD = "tl.atomic_add(out_ptr + at, tl.maximum(x, 0.0) * 2, mask=at < n)"


def test_the_first_configuration_runs(runner: Runner) -> None:
    path = write(
        runner, TUNED.format(hooks="", store=STORE.format(factor="(2 if BLOCK < 16 else 3)"))
    )
    run = runner.run("--verify-dir=ops", "--verify-device=cpu")
    assert run.code == 0, run.out
    (choice,) = result(path)["cases"][0]["configurations"]
    assert (choice["kernel"], choice["count"], choice["index"]) == ("relu_kernel", 3, 0)
    assert "BLOCK=8" in choice["name"]


def test_every_configuration_is_judged_and_the_failing_one_named(runner: Runner) -> None:
    path = write(
        runner, TUNED.format(hooks="", store=STORE.format(factor="(2 if BLOCK < 16 else 3)"))
    )
    run = runner.run("--verify-dir=ops", "--verify-device=cpu", "--verify-autotune=all")
    assert run.code == 1
    for failure in result(path)["failures"]:
        assert failure["error_type"] == "AccuracyError"
        assert "with the configuration relu_kernel: BLOCK=16" in failure["error_msg"]


def test_all_on_the_same_buffers_show_a_missing_reset(runner: Runner) -> None:
    path = write(runner, TUNED.format(hooks="", store=ADD))
    assert runner.run("--verify-dir=ops", "--verify-device=cpu").code == 0
    run = runner.run("--verify-dir=ops", "--verify-device=cpu", "--verify-autotune=all")
    assert run.code == 1
    assert all("reset_to_zero" in failure["error_msg"] for failure in result(path)["failures"])

    (path.parent / "op_triton_ascend_impl.py").write_text(
        TUNED.format(hooks=', reset_to_zero=["out_ptr"]', store=ADD)
    )
    run = runner.run("--verify-dir=ops", "--verify-device=cpu", "--verify-autotune=all")
    assert run.code == 0, run.out


def test_the_task_may_ask_for_a_device_too(runner: Runner) -> None:
    task = TASK.replace("torch.randn(40)", "torch.randn(40, device='cuda')")
    write(runner, CUDA.format(kind="cuda", factor=2), task)
    run = runner.run("--verify-dir=ops", "--verify-device=cpu")
    assert run.code == 0, run.out

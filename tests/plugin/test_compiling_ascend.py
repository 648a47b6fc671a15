"""Compiling for Ascend NPUs with the real compilers, where an environment that has them is named.

TRITONVERIFY_ASCEND_PYTHON is the interpreter of such an environment; `make test-ascend-compile`
makes one. Elsewhere these tests are skipped.
"""

from __future__ import annotations

import json
import os
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.runs import Run, Runner

_VARIABLE = "TRITONVERIFY_ASCEND_PYTHON"
pytestmark = pytest.mark.skipif(
    _VARIABLE not in os.environ, reason=f"{_VARIABLE} names no environment with triton-ascend"
)

_TASK = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return x * 2

    def get_inputs():
        return [torch.randn(1000)]

    def get_init_inputs():
        return []
"""

_IMPLEMENTATION = """
    import torch
    import torch_npu
    import triton
    import triton.language as tl

    @triton.jit
    def scale_kernel(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * 2, mask=at < n)

    @triton.jit
    def multiply_kernel(x, out, SIDE: tl.constexpr):
        at = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
        tile = tl.load(x + at, mask=at < 0, other=0.0)
        tl.store(out + at, tl.dot(tile, tile), mask=at < 0)

    @triton.jit
    def skipping_kernel(x, n, BLOCK: tl.constexpr):
        for start in range(0, n, BLOCK):
            if start < 0:
                continue
            at = start + tl.arange(0, BLOCK)
            tl.store(x + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            x = x.npu()
            out, n = torch.empty_like(x), x.numel()
            scale_kernel[(1,)](x, out, n, BLOCK=1024)
            scale_kernel[(1,)](x, out, n, BLOCK=65536)
            multiply_kernel[(1,)](x, out, SIDE=32)
            skipping_kernel[(1,)](out, n, BLOCK=256)
            return out
"""


def compile_pair(runner: Runner, *args: str) -> tuple[Run, list[dict[str, Any]]]:
    folder = runner.path / "ops"
    folder.mkdir(exist_ok=True)
    (folder / "op_torch.py").write_text(textwrap.dedent(_TASK))
    (folder / "op_triton_ascend_impl.py").write_text(textwrap.dedent(_IMPLEMENTATION))
    run = runner.run(
        "--verify-dir=ops",
        f"--verify-ascend-python={os.environ[_VARIABLE]}",
        *(args or ("--verify-compile=Ascend910B4",)),
    )
    result = json.loads((folder / "verify_result.json").read_text())
    assert (result["passed_cases"], result["total_cases"]) == (1, 1)
    kernels: list[dict[str, Any]] = result["compile"]["kernels"]
    return run, kernels


def test_kernels_go_through_the_whole_pipeline(runner: Runner) -> None:
    run, kernels = compile_pair(runner, "--verify-compile=Ascend910B4,cuda:90")
    assert run.code == 1
    assert {kernel["target"] for kernel in kernels} == {"Ascend910B4", "cuda:90"}
    small, large, tile, skipping = kernels[:4]
    assert (small["compiles"], small["stage"], small["mix_mode"]) == (True, "hivm", "aiv")
    assert (large["error"]["subkind"], large["memory_space"]) == ("ub_overflow", "ub")
    assert large["memory_bits"] > large["memory_bits_available"] == 1572864
    assert (tile["compiles"], tile["mix_mode"]) == (True, "mix")
    assert skipping["error"]["subkind"] == "unsupported_op"
    source = (runner.path / "ops/op_triton_ascend_impl.py").read_text().splitlines()
    assert source[skipping["error"]["line"] - 1].strip() == "continue"
    assert "requires 2097152 bits while 1572864 bits available" in run.out
    assert "compiling for Ascend910B4 by triton-ascend 3.2.0" in run.out


def test_an_unknown_chip_lists_the_known_ones(runner: Runner) -> None:
    (runner.path / "ops").mkdir()
    python = f"--verify-ascend-python={os.environ[_VARIABLE]}"
    run = runner.run("--verify-dir=ops", "--verify-compile=Ascend911", python)
    assert run.code == 4
    assert "Ascend910B1, Ascend910B2, Ascend910B3, Ascend910B4, Ascend910B4-1" in run.err


@pytest.mark.parametrize(
    ("does", "subkind"), [("kill -SEGV $$", "crash"), ("sleep 600", "timeout")]
)
def test_a_compiler_that_crashes_or_hangs_is_told(
    does: str, subkind: str, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = runner.path / "bin" / "bishengir-compile"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\n[ "$1" = --help ] && echo "  =Ascend910B4" && exit\n{does}\n')
    command.chmod(0o700)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    limit = "--verify-compile-timeout=10"
    run, kernels = compile_pair(runner, "--verify-compile=Ascend910B4", limit)
    assert run.code == 1
    # That one is refused before.
    found = [kernel["error"]["subkind"] for kernel in kernels]
    assert found == [subkind, subkind, subkind, "unsupported_op"]

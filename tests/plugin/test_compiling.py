"""`--verify-compile`: the kernels that the cases launch, compiled for devices that aren't here."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import jsonschema

from pytest_tritonverify.execution import landlock
from pytest_tritonverify.results import result_file
from tests.support.pairs import LEAVES, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

_TASK = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return x * 2

    def get_input_groups():
        return [[torch.randn(n)] for n in (512, 512, 37)]

    def get_init_inputs():
        return []
"""

# Every kernel is right on the interpreter. What goes wrong does so in a compiler.
_IMPLEMENTATION = """
    import os
    import torch
    import triton
    import triton.language as tl

    try:
        open(os.path.join(os.path.dirname(__file__), "written"), "w").close()
    except PermissionError:
        pass
    # Asks for a device when it is imported.
    MEMORY = triton.runtime.driver.active.utils.get_device_properties(0)["max_shared_mem"]
    FACTOR = tl.constexpr(0)

    @triton.jit
    def plain_kernel(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.static_assert(FACTOR == 2)
        tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * FACTOR, mask=at < n)

    def make(factor):
        @triton.jit
        def inner_kernel(x, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.static_assert(factor == 1)
            tl.store(x + at, tl.load(x + at, mask=at < n, other=0.0) * factor, mask=at < n)
        return inner_kernel

    @triton.jit
    def skipping_kernel(x, n, BLOCK: tl.constexpr):
        for start in range(0, n, BLOCK):
            if start < 0:
                continue
            at = start + tl.arange(0, BLOCK)
            tl.store(x + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)

    SMALL, LARGE = triton.Config({"SIZE": 64}), triton.Config({"SIZE": 1 << 16}, num_warps=32)

    @triton.autotune([SMALL, LARGE], key=[])
    @triton.heuristics({"TWICE": lambda given: 2 * given["SIZE"]})
    @triton.jit
    def tuned_kernel(x, n, SIZE: tl.constexpr, TWICE: tl.constexpr):
        # A gather holds all of its source in shared memory.
        tl.static_assert(TWICE == 2 * SIZE)
        at = tl.arange(0, SIZE)
        found = tl.gather(tl.load(x + at, mask=at < n, other=0.0), SIZE - 1 - at, 0)
        tl.store(x + n + at, found, mask=at < 0)

    def named(_):
        os.abort()

    @triton.jit(repr=named)
    def crashing_kernel(x):
        tl.store(x + tl.arange(0, 16), 0.0, mask=tl.arange(0, 16) < 0)

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            global FACTOR
            FACTOR = tl.constexpr(2)
            out, n = torch.empty_like(x), x.numel()
            grid = (triton.cdiv(n, 128),)
            plain_kernel[grid](x, out, n, BLOCK=128)
            if n == 512:
                make(tl.constexpr(1))[grid](out, n, BLOCK=128, num_warps=2)
            else:
                skipping_kernel[(1,)](out, n, BLOCK=256)
                tuned_kernel[(1,)](out, n)
                crashing_kernel[(1,)](out)
            return out
"""


def write(runner: Runner, task: str, implementation: str) -> None:
    folder = runner.path / "ops"
    folder.mkdir()
    (folder / "op_torch.py").write_text(textwrap.dedent(task))
    (folder / "op_triton_ascend_impl.py").write_text(textwrap.dedent(implementation))


def section(runner: Runner) -> dict[str, Any]:
    """The pair's result, which its schema accepts."""
    found: dict[str, Any] = json.loads((runner.path / "ops/verify_result.json").read_text())
    jsonschema.validate(found, json.loads(result_file.SCHEMA_PATH.read_text()))
    return found


def test_kernels_are_compiled_and_their_failures_told(runner: Runner) -> None:
    write(runner, _TASK, _IMPLEMENTATION)
    wanted = "--verify-compile=cuda:90,hip:gfx942"
    run = runner.run("--verify-dir=ops", wanted, "--verify-compile-all-configs")
    assert run.code == 1
    assert list(run.by_name.values()) == ["passed"] * 3 + ["failed"]
    # What compiles is kept from the pair's folder, as what runs is.
    assert (runner.path / "ops" / "written").exists() == (landlock.version() == 0)
    assert list(run.by_name)[-1] == "compile"
    result = section(runner)
    assert (result["passed_cases"], result["total_cases"], result["failures"]) == (3, 3, [])
    compiled = result["compile"]
    assert (compiled["status"], compiled["error_type"]) == ("failed", "CompilationError")
    assert compiled["unknown_cases"] == {}
    by_target: dict[str, list[dict[str, Any]]] = {"cuda:90": [], "hip:gfx942": []}
    for kernel in compiled["kernels"]:
        by_target[kernel["target"]].append(kernel)
    for kernels in by_target.values():
        found = [
            (
                kernel["kernel"],
                kernel["cases"],
                kernel["stage"],
                kernel["error"] and kernel["error"]["subkind"],
            )
            for kernel in kernels
        ]
        # Twice 512 is one specialisation; 16 does not divide 37.
        assert found == [
            ("plain_kernel", [1, 2], "binary", None),
            ("inner_kernel", [1, 2], "binary", None),
            ("plain_kernel", [3], "binary", None),
            ("skipping_kernel", [3], None, "unsupported_op"),
            ("tuned_kernel", [3], "binary", None),
            ("tuned_kernel", [3], "binary", "out_of_resources"),
            ("crashing_kernel", [3], None, "crash"),
        ]
    skipping = by_target["cuda:90"][3]
    source = (runner.path / "ops/op_triton_ascend_impl.py").read_text().splitlines()
    assert source[skipping["error"]["line"] - 1].strip() == "continue"
    assert "unsupported AST node type: Continue" in skipping["error"]["words"]
    first = by_target["cuda:90"][0]
    assert first["registers"] > 0
    assert first["spilled_bytes"] == 0
    assert by_target["hip:gfx942"][0]["scalar_registers"] > 0
    assert by_target["hip:gfx942"][0]["shared_bytes_available"] == 65536
    assert "unsupported_op: unsupported AST node type: Continue" in run.out
    assert "kernels that compile: 4 of 7 for cuda:90, 4 of 7 for hip:gfx942" in run.out
    assert "compiling for cuda:90, hip:gfx942 by triton " in run.out
    assert "1 CompilationError" in run.out


def test_what_can_not_run_is_not_compiled_and_says_why(runner: Runner) -> None:
    """A selected item runs the cases itself; one that never launches has nothing to compile."""
    write_pair(runner.path / "ops", cases=2, at={1: LEAVES, 2: "raise ValueError('no luck')"})
    run = runner.run("--verify-dir=ops", "--verify-compile=cuda:90", "-k", "compile", "-rs")
    assert run.by_name == {"compile": "skipped"}
    (reason,) = [line for line in run.out.splitlines() if "SKIPPED" in line]
    assert "no launch is known: case 1: SystemExit: 0" in reason
    absent = runner.run("--verify-dir=ops", "--verify-compile=Ascend910B4")
    assert absent.code == 4
    assert "make ascend-env" in absent.err

"""The items beside the cases: what they are called, when they run, and what they decide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Runner

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_input_groups():
    return [[torch.randn(40)], [torch.randn(5, 7)]]
"""

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) * 2, mask=at < n)

def launch(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out
"""
HONEST = (
    KERNEL
    + """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return launch(x)
"""
)
# The source shows it.
FALLBACK = (
    KERNEL
    + """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return launch(torch.clamp(x, min=0.0))
"""
)
# Only a run shows it.
IDLE = (
    KERNEL
    + """
class ModelNew(torch.nn.Module):
    kept = {}

    def forward(self, x):
        key = tuple(x.tolist()) if x.ndim == 1 else None
        if key is not None and key in self.kept:
            return self.kept[key]
        if x.ndim == 1:
            self.kept[key] = launch(x)
            return self.kept[key]
        return launch(x)
"""
)
FALLEN_BACK = "A-PyTorchFallback-Type3: "


def write(runner: Runner, implementation: str, task: str = TASK) -> Path:
    runner.checks = True
    folder = runner.path / "ops"
    folder.mkdir()
    (folder / "op_torch.py").write_text(task)
    (folder / "op_triton_ascend_impl.py").write_text(implementation)
    return folder / "verify_result.json"


def result(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


CASES = ["case1-float32-40", "case2-float32-5x7"]
ALL = ["degeneration", "hidden_state", *CASES, "execution"]


def test_items_stand_in_the_documented_order(runner: Runner) -> None:
    write(runner, HONEST)
    run = runner.run("--verify-dir=ops", "--collect-only", "-q")
    assert [nodeid.partition("::")[2] for nodeid in run.listed] == ALL


def test_an_honest_kernel_passes_all_of_them(runner: Runner) -> None:
    path = write(runner, HONEST)
    run = runner.run("--verify-dir=ops", fresh=True)
    assert run.code == 0, run.out
    assert run.by_name == {
        **dict.fromkeys(ALL, "passed"),
        "hidden_state": "skipped",  # no weights
    }
    content = result(path)
    assert content["passed_cases"] == 2
    assert content["degeneration"]["degeneration"]["report"]["valid"] is True
    assert content["degeneration"]["execution"]["status"] == "passed"
    launches = [
        case["launches"] for case in content["degeneration"]["execution"]["report"]["cases"]
    ]
    assert [[launch["kernel"] for launch in of_case] for of_case in launches] == [
        ["relu_kernel"]
    ] * 2
    assert content["hidden_state"]["status"] == "skipped"


def test_source_that_falls_back_fails_at_once(runner: Runner) -> None:
    path = write(runner, FALLBACK)
    run = runner.run("--verify-dir=ops")
    assert run.code == 1
    outcomes = run.by_name
    assert [outcomes[name] for name in ("degeneration", *CASES)] == ["failed"] * 3
    assert [outcomes[name] for name in ("hidden_state", "execution")] == ["skipped"] * 2
    assert "clamp" in run.out
    assert "^" in run.out  # the caret below the source line
    content = result(path)
    assert (content["passed_cases"], content["total_cases"]) == (0, 2)
    assert {f["error_type"] for f in content["failures"]} == {"PyTorchFallback"}
    assert all(f["error_msg"].startswith(FALLEN_BACK) for f in content["failures"])
    assert {case["phase"] for case in content["cases"]} == {"degeneration"}


@pytest.mark.parametrize("selection", ["case1", "hidden_state or case"])
def test_the_static_check_counts_in_any_selection(runner: Runner, selection: str) -> None:
    write(runner, FALLBACK)
    run = runner.run("--verify-dir=ops", "-k", selection)
    assert run.code == 1
    assert "A-PyTorchFallback-Type3" in run.out
    assert run.by_name["case1-float32-40"] == "failed"


def test_partial_allows_torch_beside_a_kernel_that_works(runner: Runner) -> None:
    path = write(runner, FALLBACK)
    run = runner.run("--verify-dir=ops", "--verify-degeneration=partial")
    assert run.code == 0, run.out
    content = result(path)
    assert content["passed_cases"] == 2
    execution = content["degeneration"]["execution"]
    assert execution["status"] == "passed"
    assert "torch_compute" in [finding["code"] for finding in execution["report"]["findings"]]


def test_a_check_that_is_off_has_no_item(runner: Runner) -> None:
    path = write(runner, HONEST)
    off = [f"--verify-{check}=off" for check in ("degeneration", "hidden-state", "execution")]
    run = runner.run("--verify-dir=ops", *off)
    assert run.code == 0, run.out
    assert list(run.by_name) == CASES
    content = result(path)
    assert [check["status"] for check in content["degeneration"].values()] == [None, None]
    assert content["hidden_state"] is None


def test_what_is_only_reported_fails_nothing_and_stays_on_record(runner: Runner) -> None:
    path = write(runner, FALLBACK)
    run = runner.run("--verify-dir=ops", "--verify-degeneration=warn", "--verify-execution=warn")
    assert run.code == 0, run.out
    content = result(path)
    assert content["passed_cases"] == 2
    sections = content["degeneration"]
    assert [sections[name]["status"] for name in ("degeneration", "execution")] == ["warned"] * 2
    assert all("PyTorchFallback" in sections[name]["message"] for name in sections)
    assert "warning: op (triton_ascend_impl), degeneration: " in run.out
    assert "warning: op (triton_ascend_impl), execution: " in run.out


def test_a_kernel_that_idles_passes_no_case_though_its_values_are_right(runner: Runner) -> None:
    path = write(runner, IDLE)
    run = runner.run("--verify-dir=ops", "--verify-degeneration=off")
    assert run.code == 1
    assert [run.by_name[name] for name in CASES] == ["passed"] * 2
    assert run.by_name["execution"] == "failed"
    content = result(path)
    assert content["passed_cases"] == 0
    assert [case["status"] for case in content["cases"]] == ["passed"] * 2
    assert {f["error_type"] for f in content["failures"]} == {"PyTorchFallback"}


def test_the_checks_can_be_run_alone(runner: Runner) -> None:
    path = write(runner, HONEST)
    run = runner.run("ops/op_triton_ascend_impl.py::degeneration")
    assert (run.code, run.by_name) == (0, {"degeneration": "passed"})
    run = runner.run("ops/op_triton_ascend_impl.py::execution")
    assert (run.code, run.by_name) == (0, {"execution": "passed"})
    assert not path.exists()


def test_processes_of_xdist_share_a_pair(runner: Runner) -> None:
    path = write(runner, FALLBACK)
    run = runner.run("--verify-dir=ops", "-n", "2", "--dist=load", plugins=("xdist",))
    assert run.code == 1
    assert result(path)["passed_cases"] == 0

    (path.parent / "op_triton_ascend_impl.py").write_text(HONEST)
    run = runner.run("--verify-dir=ops", "-n", "2", "--dist=load", plugins=("xdist",))
    assert run.code == 0, run.out
    content = result(path)
    assert content["passed_cases"] == 2
    assert content["degeneration"]["execution"]["status"] == "passed"


WEIGHTS_TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(40))

    def forward(self, x):
        return x * self.scale

def get_input_groups():
    return [[torch.randn(3, 40)], [torch.zeros(2, 40)]]
"""
WEIGHTS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, s_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + tl.program_id(0) * cols + at, mask=inside, other=0.0)
    s = tl.load(s_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + tl.program_id(0) * cols + at, x * s, mask=inside)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.{draw}(40))

    def forward(self, x):
        out = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, self.scale, out, x.shape[1], BLOCK=64)
        return out
"""


@pytest.mark.parametrize("selection", [[], ["-k", "case"], ["-k", "case1"]])
def test_other_weights_fail_the_first_case_alone(runner: Runner, selection: list[str]) -> None:
    path = write(runner, WEIGHTS.format(draw="rand"), WEIGHTS_TASK)
    run = runner.run("--verify-dir=ops", *selection)
    assert run.code == 1
    outcomes = run.by_name
    assert outcomes["case1-float32-3x40"] == "failed"
    assert outcomes.get("case2-float32-2x40", "passed") == "passed"
    assert outcomes.get("hidden_state", "failed") == "failed"
    assert "HiddenStateMismatch: `scale` of ModelNew" in run.out
    if not selection:
        content = result(path)
        assert content["passed_cases"] == 1
        assert [f["error_type"] for f in content["failures"]] == ["HiddenStateMismatch"]
        assert content["hidden_state"]["status"] == "failed"
        assert content["hidden_state"]["mismatches"][0]["name"] == "scale"


def test_equal_weights_pass(runner: Runner) -> None:
    path = write(runner, WEIGHTS.format(draw="randn"), WEIGHTS_TASK)
    run = runner.run("--verify-dir=ops", "--verify-determinism")
    assert run.code == 0, run.out
    assert set(run.by_name.values()) == {"passed"}
    assert result(path)["hidden_state"]["compared"] == 1

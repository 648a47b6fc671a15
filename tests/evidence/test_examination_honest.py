"""Honest implementations of every kind pass the examination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.examining import TWICE, examined, implementation, notes

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host


def task(forward: str, inputs: str, init: str = "pass", groups: str = "") -> str:
    """Return the source of a task."""
    return f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, *args):
        {forward}

def get_inputs():
    return [{inputs}]
{groups}
"""


HONEST = {
    "prologue_and_epilogue": (
        TWICE,
        implementation("return twice(x.contiguous().to(torch.float64)).to(x.dtype).view(5, 24)"),
    ),
    "several_launches": (
        task("return args[0] * 8", "torch.randn(70)"),
        implementation("a = torch.zeros_like(x); twice(x, a); return twice(twice(a))"),
    ),
    "atomics": (
        task("return args[0].sum().reshape(1)", "torch.randn(200)"),
        implementation(
            "o = torch.zeros(1, device=x.device); total[(4,)](x, o, 200, B=64); return o",
            """
            @triton.jit
            def total(x, o, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                tl.atomic_add(o, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))
            """,
        ),
    ),
    "in_place_and_nothing_returned": (
        task("args[0].mul_(2)", "torch.randn(70)"),
        implementation("twice(x, x)"),
    ),
    "in_place_and_returned": (
        task("return args[0].mul_(2)", "torch.randn(70)"),
        implementation("return twice(x, x)"),
    ),
    "in_place_without_an_effect": (
        task("return args[0].relu_()", "torch.rand(70)"),
        implementation(
            "relu[(2,)](x, 70, B=64); return x",
            """
            @triton.jit
            def relu(x, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                tl.store(x + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
            """,
        ),
    ),
    "zeros_into_zeros": (
        task("return args[0] * 0", "torch.randn(70)"),
        implementation("o = torch.zeros_like(x); scale[(2,)](x, o, 70, 0, B=64); return o"),
    ),
    "views_of_outputs": (
        task("y = args[0] * 2; return y.t(), y[1:]", "torch.randn(6, 6)"),
        implementation("y = twice(x); return y.t(), y[1:]"),
    ),
    "an_input_among_the_outputs": (
        task("return args[0] * 2, args[0]", "torch.randn(70)"),
        implementation("return twice(x), x"),
    ),
    "outputs_that_are_no_tensors": (
        task("return args[0] * 2, 3, None, 'mean', 0.5", "torch.randn(70)"),
        implementation("return twice(x), 3, None, 'mean', 0.5"),
    ),
    "empty_inputs": (
        task("return args[0] * 2", "torch.randn(0, 5)"),
        implementation("return twice(x)"),
    ),
    "a_stored_output": (
        task(
            "return args[0] * 2, self.w",
            "torch.randn(70)",
            "self.w = torch.nn.Parameter(torch.randn(3))",
        ),
        implementation("""
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.randn(3))
            def forward(self, x):
                return twice(x), self.w
        """),
    ),
    "views_of_inputs_beside": (
        task("x = args[0]; return x * 2, x[3:9], {'t': x.view(7, 10).t()}", "torch.randn(70)"),
        implementation("return twice(x), x[3:9], {'t': x.view(7, 10).t()}"),
    ),
    "weights_made_in_init_and_lazily": (
        task("return args[0] * 2", "torch.randn(70)"),
        implementation(
            """
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.full((1, 70), 3.0).exp().log() - 1)
                self.cached = None
            def forward(self, x):
                if self.cached is None:
                    self.cached = (self.w.t().contiguous().float() * 1.0).round()
                o = torch.empty_like(x)
                times[(2,)](x, self.cached, o, 70, B=64)
                return o
            """,
            """
            @triton.jit
            def times(x, w, o, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                m = i < n
                tl.store(o + i, tl.load(x + i, mask=m) * tl.load(w + i, mask=m), mask=m)
            """,
        ),
    ),
    "tables_from_the_host": (
        task(
            "return args[0] * 2",
            "torch.randn(70), torch.tensor([64, 6]), torch.tensor(2)",
        ),
        implementation(
            """
            def forward(self, x, lengths, blocks):
                starts = [0]
                for length in lengths.tolist():
                    starts.append(starts[-1] + length)
                table = torch.tensor(starts, dtype=torch.int32, device=x.device)
                factors = torch.from_numpy(np.array([2.0, 2.0], dtype=np.float32)).to(x.device)
                o = torch.empty_like(x)
                pieces[(blocks.item(),)](x, table, factors, ONE.to(x.device), o, B=64)
                return o
            """,
            """
            import numpy as np
            ONE = torch.tensor([1.0])

            @triton.jit
            def pieces(x, table, factors, one, o, B: tl.constexpr):
                p = tl.program_id(0)
                start, end = tl.load(table + p), tl.load(table + p + 1)
                i = start + tl.arange(0, B)
                f = tl.load(factors + p) * tl.load(one)
                tl.store(o + i, tl.load(x + i, mask=i < end) * f, mask=i < end)
            """,
        ),
    ),
    "whole_numbers_alone": (
        task("return args[0] * 2", "torch.randint(0, 50, (70,))"),
        implementation("return twice(x)"),
    ),
    "whole_numbers_alone_and_a_table": (
        task("return args[0].repeat_interleave(2)", "torch.randint(0, 50, (30,))"),
        implementation(
            "values = [v for v in x.tolist() for _ in (0, 1)]\n"
            "table = torch.tensor(values, device=x.device)\n"
            "o = torch.empty_like(table); copy[(1,)](table, o, 60, B=64); return o"
        ),
    ),
    "random_numbers": (
        task("return args[0] * 2 * torch.rand_like(args[0])", "torch.randn(70)"),
        implementation(
            "r = torch.rand_like(x); o = torch.empty_like(x)\n"
            "both[(2,)](x, r, o, 70, B=64); return o",
            """
            @triton.jit
            def both(x, r, o, n, B: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                m = i < n
                tl.store(o + i, tl.load(x + i, mask=m) * 2 * tl.load(r + i, mask=m), mask=m)
            """,
        ),
    ),
    "tuned": (
        TWICE,
        implementation(
            "o = torch.empty_like(x); tuned[lambda m: (triton.cdiv(120, m['B']),)](x, o, 120)\n"
            "return o",
            """
            @triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
            @triton.heuristics({"E": lambda args: args["n"] % args["B"] == 0})
            @triton.jit
            def tuned(x, o, n, B: tl.constexpr, E: tl.constexpr):
                i = tl.program_id(0) * B + tl.arange(0, B)
                tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
            """,
        ),
    ),
    "decorated_inherited_and_without_gradients": (
        TWICE,
        implementation(
            """
            @torch.no_grad()
            def forward(self, x):
                return super().forward(x)
            """,
            """
            class Base(torch.nn.Module):
                def forward(self, x):
                    return twice(x)
            """,
        ).replace("class ModelNew(torch.nn.Module)", "class ModelNew(Base)"),
    ),
    "inference_mode": (
        TWICE,
        implementation(
            "with torch.inference_mode():\n    return twice(x.reshape(-1)).reshape(5, 24)"
        ),
    ),
    "an_autograd_function": (
        TWICE,
        implementation(
            "return Twice.apply(x)",
            """
            class Twice(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return twice(x)
            """,
        ),
    ),
    "a_buffer_that_is_kept": (
        task(
            "return args[0] * 2",
            "torch.ones(70)",
            groups="get_input_groups = lambda: [get_inputs()] * 2",
        ),
        implementation(
            "return twice(x, KEPT.setdefault(x.shape, torch.empty_like(x)))", "KEPT = {}"
        ),
    ),
    "parts_put_together": (
        TWICE,
        implementation("return torch.cat([twice(x[:2]), twice(x[2:].contiguous())])"),
    ),
    "a_loop_until_the_kernel_says_so": (
        task("return args[0] * 2", "torch.randn(70)"),
        implementation(
            "o = torch.empty_like(x)\n"
            "flag = torch.zeros(1, dtype=torch.int32, device=x.device)\n"
            "while not flag.item():\n"
            "    step[(1,)](x, o, flag, 70, B=128)\n"
            "return o",
            """
            @triton.jit
            def step(x, o, flag, n, B: tl.constexpr):
                i = tl.arange(0, B)
                tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
                tl.store(flag, 1)
            """,
        ),
    ),
    "a_length_from_a_kernel": (
        task("return args[0][args[0] > 0]", "torch.randn(70)"),
        implementation(
            "o = torch.empty_like(x)\n"
            "n = torch.empty(1, dtype=torch.int32, device=x.device)\n"
            "keep[(1,)](x, o, n, 70, B=128)\n"
            "return o[:n.item()].clone()",
            """
            @triton.jit
            def keep(x, o, count, n, B: tl.constexpr):
                i = tl.arange(0, B)
                v = tl.load(x + i, mask=i < n, other=0.0)
                at = tl.cumsum((v > 0).to(tl.int32), 0) - 1
                tl.store(o + at, v, mask=v > 0)
                tl.store(count, tl.sum((v > 0).to(tl.int32)))
            """,
        ),
    ),
    "sorted_inputs": (
        task("return torch.nn.functional.layer_norm(args[0], (64,))", "torch.arange(64.0)"),
        implementation(
            "o = torch.empty_like(x); norm[(1,)](x, o, N=64); return o",
            """
            @triton.jit
            def norm(x, o, N: tl.constexpr):
                i = tl.arange(0, N)
                v = tl.load(x + i)
                v = v - tl.sum(v) / N
                tl.store(o + i, v / tl.sqrt(tl.sum(v * v) / N + 1e-5))
            """,
        ),
    ),
    "a_count_of_batches": (
        task("return args[0] * 2", "torch.randn(70)"),
        implementation("""
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(70)
            def forward(self, x):
                self.norm.num_batches_tracked.add_(1)
                return twice(x)
        """),
    ),
    "a_shared_expanded_input": (
        task("return args[0] * 2", "torch.randn(1, 24).expand(5, 24)"),
        implementation("return twice(x.contiguous())"),
    ),
    "low_precision": (
        task("return args[0] * 2", "torch.randn(70).to(torch.bfloat16)"),
        implementation("return twice(x)"),
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_it_passes(host: Host, tmp_path: Path, name: str) -> None:
    source_of_task, source = HONEST[name]
    cases = 2 if "groups = " in source_of_task else 1
    report = examined(host, tmp_path, source, source_of_task, cases)
    assert report.passed, report.message()
    assert all(case.examined for case in report.cases)


def test_notes_tell_what_torch_did(host: Host, tmp_path: Path) -> None:
    reports = {
        name: examined(host, tmp_path / name, HONEST[name][1], HONEST[name][0])
        for name in ("parts_put_together", "random_numbers", "tables_from_the_host")
    }
    assert notes(reports["parts_put_together"]) == {"moving_in_torch"}
    assert notes(reports["random_numbers"]) == {"random_in_torch"}
    assert notes(reports["tables_from_the_host"]) == {"host_constant"}
    weights = examined(
        host,
        tmp_path / "w",
        HONEST["weights_made_in_init_and_lazily"][1],
        HONEST["weights_made_in_init_and_lazily"][0],
    )
    assert notes(weights) == {"prepared_weights"}


def test_cases_are_summed_up(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, HONEST["several_launches"][1], HONEST["several_launches"][0])
    (case,) = report.to_json()["cases"]
    (told,) = case["launches"]
    assert told == {
        "kernel": "scale",
        "file": "op_triton_ascend_impl.py",
        "launches": 3,
        "programs": 6,
    }
    assert case["operators"] == {}

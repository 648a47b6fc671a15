"""--verify-strict from the command line to the result file, and the warning without it."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.pairs import WrittenPair, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

# Each case is another operator on the same input.
_TASK = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(1e-7)

    def forward(self, x, kind):
        if kind == 1:
            return (x.float() * self.scale).to(torch.float32)
        if kind == 3:
            return x.argmax(-1)
        if kind == 5:
            half = x.bfloat16()
            if half.dtype != torch.bfloat16:
                raise TypeError("made for bfloat16 alone")
            return half * 2.0
        return x * 2.0


def get_input_groups():
    return [[torch.randn(16, 16), kind] for kind in range(1, 7)]


def get_init_inputs():
    return []
"""

_IMPLEMENTATION = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, x * factor, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x, kind):
        out = torch.empty_like(x)
        factor = {1: 0.0}.get(kind, 2.0)
        scale_kernel[(1,)](x, out, factor, x.numel(), BLOCK=256)
        if kind == 2:
            return out.double()
        if kind == 3:
            return x.argmax(-1) + 1
        if kind == 4:
            x += 1
        if kind == 5:
            return x.bfloat16() * 2.0
        return out
"""


@pytest.fixture
def pair(runner: Runner) -> WrittenPair:
    folder = runner.path / "ops"
    folder.mkdir()
    found = WrittenPair(folder / "many_torch.py", folder / "many_triton_ascend_impl.py")
    found.task.write_text(textwrap.dedent(_TASK))
    found.implementation.write_text(textwrap.dedent(_IMPLEMENTATION))
    return found


def test_the_standard_warns_where_the_strict_rule_fails(runner: Runner, pair: WrittenPair) -> None:
    schema = json.loads(SCHEMA_PATH.read_text("utf-8"))
    run = runner.run("--verify-dir=ops")
    assert run.code == 0
    result = pair.result()
    jsonschema.validate(result, schema)
    assert result["strictness"] is None
    warnings = [[w["code"] for w in case["warnings"]] for case in result["cases"]]
    assert warnings == [
        ["non_discriminating"],
        ["dtype_cast"],
        ["index_by_quantisation_rule"],
        ["input_mutated"],
        ["non_discriminating"],
        [],
    ]
    assert "it would accept zeros, a permutation, golden * 0.99, row 15 blanked" in run.out
    assert all(output["strictness"] is None for c in result["cases"] for output in c["outputs"])

    run = runner.run("--verify-dir=ops", "--verify-strict", "--verify-strict-limit=bias_errors=5")
    assert run.code == 1
    assert "strict: more is asked for than the standard does (bias_errors=5)" in run.out
    result = pair.result()
    jsonschema.validate(result, schema)
    assert result["strictness"]["limits"]["bias_errors"] == 5.0
    assert error_types(result) == {
        1: "StrictnessError",
        2: "StrictnessError",
        3: "StrictnessError",
        4: "InputMutation",
        5: "StrictnessError",
    }
    texts = {entry["case_idx"]: entry["error_msg"] for entry in result["failures"]}
    assert "gate `elements`: " in texts[1]
    assert "`dtype_cast`: " in texts[2]
    assert "`index_by_quantisation_rule`: " in texts[3]
    assert texts[4].startswith("InputMutation: the implementation changes input[0]")
    # Nothing more precise is to be had of a reference that insists on its dtype.
    assert "`non_discriminating`: golden * 0.99 would pass" in texts[5]
    assert "not applied: in float64 the reference fails: TypeError: made for bfloat16" in texts[5]
    scrutiny = {c["case_idx"]: c["outputs"][0]["strictness"] for c in result["cases"]}
    # The reference says float32 of itself, and is run in float64 all the same.
    assert [scrutiny[case]["golden"] for case in (1, 2, 6)] == ["float64"] * 3
    assert scrutiny[5]["golden"] == "reference"
    assert [gate["holds"] for gate in scrutiny[6]["gates"]] == [True] * 5
    assert scrutiny[6]["null_candidates"] == []


def test_impossible_thresholds_are_usage_errors(runner: Runner) -> None:
    write_pair(runner.path / "ops", cases=1)
    run = runner.run("--verify-dir=ops", "--verify-strict-limit=error_ratio=0")
    assert run.code == 4
    assert "--verify-strict-limit: error_ratio=0: the value must be at least 1" in run.err

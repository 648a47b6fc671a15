"""The strict rule on whole outputs: what it compares with, and what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_tritonverify.accuracy import (
    Caution,
    OutputVerdict,
    Rules,
    infer_input_type,
    judge_outputs,
)
from pytest_tritonverify.accuracy.dtypes import _KINDS
from pytest_tritonverify.assurance import Strict, assured, weak_cases
from pytest_tritonverify.strictness.limits import StrictLimits
from pytest_tritonverify.strictness.scrutiny import objections, scrutinise, weaknesses

FLOATS = infer_input_type([torch.zeros(1)])


def verdict_on(golden: Any, actual: Any, **rules: bool) -> OutputVerdict:
    (output,) = judge_outputs(golden, actual, input_type=FLOATS, rules=Rules(**rules)).outputs
    return output


@pytest.fixture
def exact() -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(64, 48, dtype=torch.float64)


def test_the_golden_is_the_most_precise_there_is(exact: torch.Tensor) -> None:
    golden = exact.float()
    verdict = verdict_on(golden, golden)
    for precise, kind, why in (
        (("float64", exact), "float64", ""),
        ("it raised", "reference", "it raised"),
        (("float64", exact.float()), "reference", "in float64 it returns torch.float32"),
        (("float64", exact[:3]), "reference", "returns no such tensor"),
        (("float64", exact + 1), "reference", "is not what its model computes in float64"),
    ):
        found = scrutinise(verdict, golden, golden, precise)
        assert found is not None
        assert (found.golden, why in found.missing) == (kind, True)
        applied = {gate.name for gate in found.gates if gate.holds is not None}
        assert ("bias" in applied) is (kind == "float64")
        assert found.broken == ()
    half = exact.bfloat16()
    found = scrutinise(verdict_on(half, half), half, half, ("float32", exact.float()))
    assert found is not None
    assert found.golden == "float32"
    assert found.nulls == ()


def test_without_a_precise_golden_the_case_may_show_nothing(exact: torch.Tensor) -> None:
    golden = exact.bfloat16()
    verdict = verdict_on(golden, golden)
    found = scrutinise(verdict, golden, golden, "in float64 the reference fails: ValueError")
    assert found is not None
    assert found.nulls == ("golden * 0.99",)
    (text,) = objections(verdict, found)
    assert text.startswith("`non_discriminating`: golden * 0.99 would pass the standard and every")
    assert "not applied: in float64 the reference fails: ValueError" in text
    assert found.to_json()["null_candidates"] == ["golden * 0.99"]


def test_what_no_tolerance_judges_is_left_alone(exact: torch.Tensor) -> None:
    for golden, rules in (
        (exact.bool(), {}),
        (exact.float(), {"non_compute": True}),
        (torch.arange(5), {"exact_int": True}),
        (torch.zeros(0, 4), {}),
    ):
        assert scrutinise(verdict_on(golden, golden, **rules), golden, golden, "") is None
    failed = verdict_on(exact, exact + 5)
    assert scrutinise(failed, exact, exact + 5, "") is None


def strictly(golden: Any, actual: Any, exact: Any, **limits: float) -> Any:
    outputs = judge_outputs(golden, actual, input_type=FLOATS, rules=Rules()).outputs
    values = {"output": (golden, actual)}
    strict = Strict(StrictLimits(**limits), "float64", {"outputs": exact, "changed": {}})
    return assured(outputs, values, [c for o in outputs for c in o.cautions], strict)


def test_a_broken_gate_fails_the_output_and_says_which(exact: torch.Tensor) -> None:
    golden = exact.float()
    actual = exact.half().float()
    found = strictly(golden, actual, exact)
    (output,) = found.outputs
    assert (output.passed, output.error_type, found.error_type) == (
        False,
        "StrictnessError",
        "StrictnessError",
    )
    assert output.message.startswith(
        "output (torch.float32, shape [64, 48]) passes the accuracy standard but not the strict "
        "rule: gate `error_ratio`: the root mean square error against the float64 golden is "
    )
    assert "times that of the reference" in output.message
    assert "at most 16 times is allowed" in output.message
    assert found.messages == (output.message,)
    assert output.metrics["category"] == "eco_open_source"
    assert strictly(golden, golden.clone(), exact).error_type is None
    assert strictly(golden, actual, exact, error_ratio=1e6, bias_roundoffs=1e6).error_type is None


def test_casts_and_indices_are_failures(exact: torch.Tensor) -> None:
    found = strictly(exact.half(), exact.float(), exact)
    assert found.error_type == "StrictnessError"
    assert "`dtype_cast`: output: the output has dtype torch.float32" in found.messages[0]
    indices = torch.tensor([4, 900, 17])
    found = strictly(indices, indices + 1, indices)
    assert "`index_by_quantisation_rule`: output: differences of exactly 1" in found.messages[0]
    assert strictly(indices, indices.clone(), indices).error_type is None


def test_a_changed_input_is_a_failure_of_its_own(exact: torch.Tensor) -> None:
    golden = exact.float()
    outputs = judge_outputs(golden, golden, input_type=FLOATS, rules=Rules()).outputs
    caution = Caution("input_mutated", "the implementation changes input[0]")
    strict = Strict(StrictLimits(), None, None, "none")
    found = assured(outputs, {"output": (golden, golden)}, [caution], strict)
    assert found.error_type == "InputMutation"
    assert found.messages == ("InputMutation: the implementation changes input[0]",)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", sorted(str(d).removeprefix("torch.") for d in _KINDS))
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (9, 10), (2, 9, 8)])
def test_every_dtype_can_be_looked_at(name: str, shape: tuple[int, ...]) -> None:
    golden = torch.ones(shape).to(getattr(torch, name))
    outputs = judge_outputs(golden, golden, input_type=FLOATS, rules=Rules()).outputs
    assert outputs[0].passed
    found = weaknesses(outputs[0], golden)
    assert not {"a permutation"} & set(found)
    seen = scrutinise(outputs[0], golden, golden, "unknown")
    if seen is not None:
        assert seen.broken == ()
        assert seen.weak == found
    assert (seen is None) is (not golden.numel() or golden.dtype == torch.bool)


def test_a_golden_that_is_zero_but_for_rounding_can_be_met() -> None:
    torch.manual_seed(0)
    x = torch.full((4, 1000), 1 / 3) + torch.arange(4).reshape(4, 1)
    exact = torch.zeros(4, 1000, dtype=torch.float64)
    golden = x - x.sum(-1, keepdim=True) / 1000
    noise = float(golden.square().mean().sqrt())
    assert 0 < noise < 1e-6
    for actual in (golden, torch.zeros_like(golden), -golden, golden * 5):
        found = strictly(golden, actual, exact)
        assert found.error_type is None, found.messages
        assert found.cautions == ()
    assert strictly(golden, golden + 20 * noise, exact).error_type == "StrictnessError"


def test_labels_of_two_classes_show_nothing() -> None:
    labels = torch.tensor([0, 1, 1, 0])
    found = strictly(labels, labels.clone(), labels)
    assert found.error_type == "StrictnessError"
    assert "zeros would pass" in found.messages[0]


def test_the_warning_names_who_would_pass(exact: torch.Tensor) -> None:
    golden = (exact.softmax(-1) / 1e6).float()
    outputs = judge_outputs(golden, golden, input_type=FLOATS, rules=Rules()).outputs
    (caution,) = weak_cases(outputs, {"output": (golden, golden)})
    assert caution.code == "non_discriminating"
    assert caution.message == (
        "output: the accuracy standard can't tell a right output from a wrong one here: it would "
        "accept zeros, a permutation, golden * 0.99, row 63 blanked and column 47 blanked"
    )
    # All of them break a gate: the strict rule needs no warning.
    assert strictly(golden, golden.clone(), exact.softmax(-1) / 1e6).error_type is None
    failing = judge_outputs(golden, golden + 1, input_type=FLOATS, rules=Rules()).outputs
    assert weak_cases(failing, {"output": (golden, golden + 1)}) == ()

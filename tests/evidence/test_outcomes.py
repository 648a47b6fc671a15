"""Outcomes by their bits, and what a golden is like."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from pytest_tritonverify import outcomes
from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.wire import WireError


def digests(tree: Any) -> dict[str, str]:
    packed = tensors.pack(tree, keep_layout=False)
    try:
        return outcomes.digests(packed.spec, packed.fd)
    finally:
        os.close(packed.fd)


def result(outputs: Any, **changed: Any) -> dict[str, Any]:
    return {"outputs": outputs, "changed": changed}


def test_digests_tell_bits_types_and_shapes_apart() -> None:
    x = torch.tensor([[0.0, 1.0, float("nan")]])
    same = digests(result([x, {"k": x.clone()}], **{"input[0]": x}))
    assert set(same) == {"output[0]", "output[1]['k']", "input[0]"}
    assert len(set(same.values())) == 1
    others = [x.t().contiguous(), x.double(), -x, x.nan_to_num()]
    assert len({digests(result(y))["output"] for y in [x, *others]}) == 1 + len(others)
    # Strides are no value.
    assert digests(result(x.t()))["output"] == digests(result(x.t().contiguous()))["output"]


@pytest.mark.parametrize("tree", [3, {"changed": {}}, {"outputs": 1}, result(1, x=3)])
def test_what_is_no_result_is_refused(tree: Any) -> None:
    with pytest.raises(WireError):
        digests(tree)


def test_facts_of_a_golden() -> None:
    x = torch.randn(3, 4)
    call = {"args": [x, 2], "kwargs": {}}
    golden = [x * 2, x.reshape(-1), torch.empty(0), torch.ones(5), x.argmax(), "text"]
    other = [x * 3, x.reshape(-1), torch.empty(0), torch.ones(5), x.argmax() + 1, "text"]
    facts = outcomes.golden_facts(call, result(golden), result(other), result(golden), fixed=False)
    assert {path: fact.trivial for path, fact in facts.items()} == {
        "output[0]": None,
        "output[1]": "it does not depend on the inputs",
        "output[2]": "it is empty",
        "output[3]": "it does not depend on the inputs",
        "output[4]": "all its elements are equal",
    }
    alone = outcomes.golden_facts(call, result(golden), None, result(golden), fixed=False)
    assert alone["output[0]"].trivial is None
    assert alone["output[0]"].depends is None
    assert alone["output[1]"].trivial == "it equals an input"
    fixed = outcomes.golden_facts(call, result(golden), None, result(golden), fixed=True)
    assert fixed["output[0]"].trivial == "it does not depend on the inputs"


def test_views_of_inputs_are_no_work_beside_other_outputs() -> None:
    x = torch.randn(3, 4)
    call = {"args": [x], "kwargs": {}}
    seen = frozenset({"output[0]"})
    golden = result([x[:2], x * 2])
    facts = outcomes.golden_facts(call, golden, None, golden, fixed=False, views=seen)
    assert [fact.trivial for fact in facts.values()] == ["it is a view of an input", None]
    alone = result([x[:2]])
    facts = outcomes.golden_facts(call, alone, None, alone, fixed=False, views=seen)
    assert facts["output[0]"].trivial is None


def test_rounding_is_no_dependence() -> None:
    x = torch.randn(100)
    call = {"args": [x], "kwargs": {}}
    close = result(x * (1 + 1e-4))
    facts = outcomes.golden_facts(call, result(x), close, close, fixed=False)
    assert facts["output"].depends is False
    whole = outcomes.golden_facts(
        call,
        result(torch.arange(9)),
        result(torch.arange(9) + torch.eye(3).long()[0].repeat(3)),
        result(torch.arange(9)),
        fixed=False,
    )
    assert whole["output"].depends is True


@pytest.mark.parametrize(
    ("actual", "alike"),
    [
        (lambda x: x, True),
        (lambda x: x.half() * 1.05, True),
        (lambda x: x.double() + 0.01, True),
        (torch.zeros_like, False),
        (lambda x: torch.full_like(x, float("nan")), False),
        (lambda x: x[:50], False),
        (lambda x: x.flip(0), False),
        (lambda x: torch.where(torch.arange(100) < 97, x, float("nan")), True),
    ],
)
def test_what_resembles_a_golden(actual: Any, *, alike: bool) -> None:
    x = torch.linspace(-1, 1, 100)
    facts = outcomes.golden_facts({}, result(x), None, result(actual(x)), fixed=False)
    assert facts["output"].resembled is alike
    missing = outcomes.golden_facts({}, result(x), None, result([x, x]), fixed=False)
    assert not missing["output"].resembled


@pytest.mark.parametrize("name", ["bits8", "bits16", "float4_e2m1fn_x2"])
def test_what_torch_cannot_compute_with_goes_by_its_bits(name: str) -> None:
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this torch has no {name}")
    bits = torch.arange(16, dtype=torch.uint8)
    x, other = bits.view(dtype), bits.flip(0).view(dtype)
    facts = outcomes.golden_facts({}, result(x), result(other), result(x), result(x), fixed=False)
    found = facts["output"]
    assert (found.depends, found.resembled, found.followed) == (True, True, False)
    plain = outcomes.golden_facts({}, result(bits), None, result(x), fixed=False)
    assert not plain["output"].resembled
    first, second = (tensors.pack(result(y), keep_layout=False) for y in (x, other))
    try:
        (difference,) = outcomes.differences((first.spec, first.fd), (second.spec, second.fd))
    finally:
        os.close(first.fd)
        os.close(second.fd)
    assert (difference["elements"], difference["total"]) == (x.numel(), x.numel())
    assert difference["max_abs_diff"] is None

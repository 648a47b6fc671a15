"""Output trees: what agrees, what doesn't, and what the message says."""

from __future__ import annotations

import collections
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs

ONE = torch.ones(2)
TWO = torch.full((3,), 2.0)


class Point(NamedTuple):
    """A named tuple as models return them."""

    x: object
    y: object


@dataclass
class Record:
    """A dataclass as models return them."""

    x: object
    y: object = None


@dataclass
class OtherRecord:
    """Another class with the same fields: implementations can't import the task's classes."""

    x: object
    y: object = None


def judge(golden: object, actual: object, **rules: bool) -> OutputsVerdict:
    inputs = infer_input_type([torch.zeros(1)])
    return judge_outputs(golden, actual, input_type=inputs, rules=Rules(**rules))


@pytest.mark.parametrize(
    ("golden", "actual", "paths"),
    [
        (ONE, ONE, ["output"]),
        (ONE, [ONE], ["output"]),
        ((ONE,), ONE, ["output[0]"]),
        ([ONE, TWO], (ONE, TWO), ["output[0]", "output[1]"]),
        (Point(ONE, TWO), (ONE, TWO), ["output[0]", "output[1]"]),
        (torch.tensor([3.0, 1.0]).sort(), [torch.tensor([1.0, 3.0]), torch.tensor([1, 0])], None),
        ({"x": ONE, "y": [TWO, 1]}, {"y": (TWO, 1), "x": ONE}, None),
        (collections.OrderedDict(x=ONE), {"x": ONE}, ["output['x']"]),
        (Record(ONE, TWO), OtherRecord(ONE, TWO), ["output.x", "output.y"]),
        (Record(ONE), Record(ONE), ["output.x", "output.y"]),
        ((ONE, None), [ONE, None], ["output[0]", "output[1]"]),
        ((ONE, "sum"), (ONE, "sum"), ["output[0]", "output[1]"]),
        ((ONE, []), (ONE, ()), ["output[0]", "output[1]"]),
        (torch.Size([2, 3]), [2, 3], ["output[0]", "output[1]"]),
        (2.5, 2.5, ["output"]),
        (2, torch.tensor(2), ["output"]),
        ([torch.tensor(1.5)], 1.5, ["output[0]"]),
        (True, torch.ones((), dtype=torch.bool), ["output"]),
        (1j, 1j, ["output"]),
        (math.nan, math.nan, ["output"]),
    ],
)
def test_agreeing_trees(golden: object, actual: object, paths: list[str] | None) -> None:
    verdict = judge(golden, actual)
    assert verdict.passed, verdict.message
    assert verdict.error_type is None
    assert verdict.metrics is None
    assert verdict.failures == ()
    if paths is not None:
        assert [output.path for output in verdict.outputs] == paths


@pytest.mark.parametrize(
    ("golden", "actual", "words"),
    [
        ((ONE, TWO), (ONE,), ["expected a tuple of 2, got a tuple of 1", "missing: output[1]"]),
        ((ONE,), (ONE, TWO), ["got a tuple of 2", "unexpected: output[1]"]),
        ((ONE, TWO), ONE, ["expected a tuple of 2", "got a tensor of shape [2]"]),
        (torch.stack((ONE, ONE)), [ONE, ONE], ["shape [2, 2]", "got a list of 2"]),
        ({"y": ONE}, {"z": ONE}, ["missing: output['y']", "unexpected: output['z']"]),
        ({"y": ONE}, [ONE], ["expected a dict with keys ['y']", "got a list of 1"]),
        ({1: ONE}, {"1": ONE}, ["missing: output[1]", "unexpected: output['1']"]),
        (None, ONE, ["expected None", "got a tensor"]),
        (ONE, None, ["expected a tensor", "got None"]),
        ([None], None, ["expected a list of 1", "got None"]),
        (ONE, "lol", ["expected a tensor", "got str 'lol'"]),
        ("a", "b", ["expected str 'a', got str 'b'"]),
        ("a", ["a"], ["got a list of 1"]),
        (
            Record(ONE),
            {"x": ONE, "y": None},
            ["expected a dataclass Record with fields ['x', 'y']"],
        ),
        (3, [3, 3], ["expected int 3", "got a list of 2"]),
        (ONE, [[ONE]], ["expected a tensor", "got a list of 1"]),
        ([ONE, [ONE]], [ONE, ONE], ["output[1] does not match: expected a list of 1"]),
        (object(), object(), ["an object of type builtins.object", "can't be judged"]),
        (ONE, {1, 2}, ["implementation's output", "builtins.set"]),
        (b"x", b"x", ["builtins.bytes"]),
    ],
)
def test_disagreeing_trees(golden: object, actual: object, words: list[str]) -> None:
    verdict = judge(golden, actual)
    assert not verdict.passed
    assert verdict.error_type == "AssertionError"
    assert verdict.metrics is None
    for word in words:
        assert word in verdict.message


@pytest.mark.parametrize(
    ("golden", "actual", "error_type"),
    [
        (1.0, 2.0, "AccuracyError"),
        (1, 3, "AccuracyError"),
        (True, False, "AccuracyError"),
        (1j, 2j, "AccuracyError"),
        (True, 1, "AssertionError"),
        (1, 1.0, "AssertionError"),
        (1.0, 1 + 0j, "AssertionError"),
        (torch.tensor(1.0), 1, "AssertionError"),
        (1, torch.tensor([1]), "AssertionError"),
        (ONE.sum(), 123.0, "AccuracyError"),
    ],
)
def test_numbers_are_judged_as_tensors_without_dimensions(
    golden: object, actual: object, error_type: str
) -> None:
    assert judge(golden, actual).error_type == error_type


def test_the_goldens_dtype_rules_between_numbers_and_tensors() -> None:
    verdict = judge(torch.tensor(1.5, dtype=torch.float16), 1.5)
    assert verdict.outputs[0].dtype == "torch.float16"
    assert verdict.outputs[0].category == "eco_open_source"
    assert [caution.code for caution in verdict.cautions] == ["dtype_cast"]
    assert judge(1.5, torch.tensor(1.5)).outputs[0].dtype == "torch.float64"
    assert judge(1.5, 1.5).cautions == ()


def test_every_output_is_judged_and_every_failure_listed() -> None:
    golden = {"a": ONE, "b": [TWO, TWO], "c": torch.arange(3)}
    actual = {"a": ONE + 1, "b": [TWO, TWO[:2]], "c": torch.arange(3) + 5}
    verdict = judge(golden, actual)
    assert [output.path for output in verdict.failures] == [
        "output['a']",
        "output['b'][1]",
        "output['c']",
    ]
    assert [output.passed for output in verdict.outputs] == [False, True, False, False]
    assert verdict.error_type == "AccuracyError"
    assert verdict.metrics is verdict.outputs[0].metrics
    first, *rest = verdict.message.splitlines()
    assert first.startswith("3 of 4 outputs failed; first: output['a'] (torch.float32, shape [2])")
    for path in ("output['a']", "output['b'][1]", "output['c']"):
        assert any(line.startswith(path) for line in rest)


def test_members_on_both_sides_are_judged_beside_a_missing_one() -> None:
    verdict = judge((ONE, TWO, ONE), (ONE + 1, TWO))
    assert [output.path for output in verdict.outputs] == ["output", "output[0]", "output[1]"]
    assert [output.passed for output in verdict.outputs] == [False, False, True]
    assert verdict.error_type == "AssertionError"
    assert verdict.metrics is None


@pytest.mark.parametrize("nothing", [None, [], {}, (None, None)])
def test_nothing_to_compare_passes_with_a_warning(nothing: object) -> None:
    verdict = judge(nothing, nothing)
    assert verdict.passed
    assert [caution.code for caution in verdict.cautions] == ["nothing_compared"]
    assert verdict.outputs[0].dtype is None
    assert verdict.outputs[0].shape is None


def test_text_alone_was_compared() -> None:
    assert judge("x", "x").cautions == ()


def test_a_container_that_holds_itself_is_refused() -> None:
    golden: list[Any] = [ONE]
    golden.append(golden)
    verdict = judge(golden, golden)
    assert verdict.error_type == "AssertionError"
    assert "levels deep" in verdict.message


def test_long_descriptions_are_cut() -> None:
    verdict = judge({f"key{number}": number for number in range(500)}, "x" * 5000)
    assert len(verdict.message) < 500
    verdict = judge(list(range(500)), [])
    assert "and 490 more" in verdict.message


def test_bitwise_rules_apply_to_numbers_too() -> None:
    assert judge((1.5, 2, True), (1.5, 2, True), non_compute=True).passed
    assert judge(0.0, -0.0, non_compute=True).error_type == "AccuracyError"
    assert judge(1.5, torch.tensor(1.5), non_compute=True).error_type == "AssertionError"

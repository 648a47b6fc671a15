"""What is checked before any rule: refusals, shapes, kinds, dtypes, NaN and infinity."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])

FORMATS = """
    float64 float32 float16 bfloat16
    float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
"""
FLOATS = [name for name in FORMATS.split() if hasattr(torch, name)]


def judge(golden: object, actual: object, **rules: bool) -> OutputsVerdict:
    return judge_outputs(golden, actual, input_type=FLOAT_INPUTS, rules=Rules(**rules))


@pytest.mark.parametrize(
    ("golden", "actual"),
    [((2, 3), (3, 2)), ((8,), (1,)), ((6,), (2, 3)), ((), (1,)), ((0, 3), (3, 0)), ((4,), (5,))],
)
@pytest.mark.parametrize("non_compute", [False, True])
def test_true_shapes_have_to_be_equal(
    golden: tuple[int, ...], actual: tuple[int, ...], *, non_compute: bool
) -> None:
    verdict = judge(torch.zeros(golden), torch.zeros(actual), non_compute=non_compute)
    assert verdict.error_type == "AssertionError"
    assert verdict.metrics is None
    assert f"expected {list(golden)}, got {list(actual)}" in verdict.message
    assert verdict.outputs[0].category is None
    assert verdict.outputs[0].shape == golden


KINDS: dict[str, torch.Tensor] = {
    "floating point": torch.ones(2),
    "integer": torch.ones(2, dtype=torch.int64),
    "boolean": torch.ones(2, dtype=torch.bool),
    "complex": torch.ones(2, dtype=torch.complex64),
}


@pytest.mark.parametrize("golden", KINDS)
@pytest.mark.parametrize("actual", KINDS)
def test_a_change_of_kind_fails(golden: str, actual: str) -> None:
    verdict = judge(KINDS[golden], KINDS[actual])
    if golden == actual:
        assert verdict.passed
        return
    assert verdict.error_type == "AssertionError"
    assert f"expected {golden}" in verdict.message
    assert f"got {actual}" in verdict.message
    empty = judge(KINDS[golden][:0], KINDS[actual][:0])
    assert empty.error_type == "AssertionError"


def test_a_float_of_another_width_is_cast_with_a_warning() -> None:
    golden = torch.tensor([1.0, 2.0], dtype=torch.float16)
    verdict = judge(golden, torch.tensor([1.0001, 2.0]))
    assert verdict.passed
    assert [caution.code for caution in verdict.cautions] == ["dtype_cast"]
    assert "output: " in verdict.cautions[0].message
    assert verdict.outputs[0].dtype == "torch.float16"
    assert verdict.outputs[0].metrics["max_abs_diff"] == 0.0


def test_infinities_are_compared_before_the_cast() -> None:
    golden = torch.tensor([math.inf], dtype=torch.float16)
    verdict = judge(golden, torch.tensor([80000.0]))
    assert verdict.error_type == "AssertionError"
    assert [caution.code for caution in verdict.cautions] == ["dtype_cast"]


def test_equal_bits_of_two_float8_formats_are_not_equal_values() -> None:
    # 16 in one format, 128 in the other.
    bits = torch.full((4,), 0x58, dtype=torch.uint8)
    verdict = judge(bits.view(torch.float8_e4m3fn), bits.view(torch.float8_e5m2))
    assert verdict.error_type == "AccuracyError"


@pytest.mark.parametrize("name", [*FLOATS, "complex64", "int64", "bool"])
def test_empty_outputs_pass(name: str) -> None:
    golden = torch.empty(0, 3, dtype=getattr(torch, name))
    lines: list[str] = []
    verdict = judge_outputs(
        golden, golden.clone(), input_type=FLOAT_INPUTS, rules=Rules(), log=lines.append
    )
    assert verdict.passed
    assert verdict.cautions == ()
    assert verdict.outputs[0].category is not None
    assert lines[-1] == "输出为空张量(numel=0),通过"


def test_nan_in_other_places_fails_with_counts_and_positions() -> None:
    golden = torch.ones(4, 10)
    actual = golden.clone()
    actual[0, 5] = actual[0, 9] = actual[3, 2] = math.nan
    verdict = judge(golden, actual)
    assert verdict.error_type == "AssertionError"
    assert verdict.metrics is None
    assert "golden has 0 NaN, implementation 3; first at [0, 5]" in verdict.message
    assert "[3, 2] (expected 1.0, got nan)" in verdict.message


def test_infinities_need_the_same_places_and_signs() -> None:
    golden = torch.tensor([math.inf, 1.0, -math.inf, math.inf])
    verdict = judge(golden, torch.tensor([math.inf, 1.0, math.inf, 3.0]))
    assert verdict.error_type == "AssertionError"
    assert "differ at 2 of 4 elements" in verdict.message
    assert "golden has 2 +Inf and 1 -Inf, implementation 2 +Inf and 0 -Inf" in verdict.message
    assert "first at [2] (expected -inf, got inf), [3] (expected inf, got 3.0)" in verdict.message


def test_nan_is_named_before_infinity_and_both_are_named() -> None:
    verdict = judge(torch.tensor([math.nan, math.inf]), torch.tensor([1.0, 1.0]))
    first, second = verdict.message.splitlines()
    assert "NaN positions" in first
    assert "Inf positions" in second


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_complex_parts_have_non_finite_values_of_their_own(part: str, value: float) -> None:
    golden = torch.tensor([1 + 1j, 2 + 2j])
    actual = golden.clone()
    getattr(actual, part)[1] = value
    verdict = judge(golden, actual)
    assert verdict.error_type == "AssertionError"
    assert f"first at [1].{part} (" in verdict.message
    assert judge(actual, actual.clone()).passed
    assert judge(actual, actual.clone()).outputs[0].metrics["total_finite"] == 3


@pytest.mark.parametrize("name", FLOATS)
def test_matching_non_finite_values_pass_in_every_format(name: str) -> None:
    golden = torch.tensor([1.0, math.nan, math.inf, -math.inf]).to(getattr(torch, name))
    verdict = judge(golden, golden.clone())
    assert verdict.passed
    finite = int(golden.double().isfinite().sum())
    assert verdict.outputs[0].metrics["total_finite"] == finite


@pytest.mark.parametrize("name", FLOATS)
def test_an_output_without_finite_elements_passes_with_a_warning(name: str) -> None:
    golden = torch.full((3,), math.nan).to(getattr(torch, name))
    lines: list[str] = []
    verdict = judge_outputs(
        golden, golden.clone(), input_type=FLOAT_INPUTS, rules=Rules(), log=lines.append
    )
    assert verdict.passed
    assert [caution.code for caution in verdict.cautions] == ["nothing_finite"]
    assert verdict.outputs[0].metrics["matched_ratio"] is None
    assert lines[-1] == "警告: 所有值都是非有限值(size=3),跳过精度检查"


SPECIAL = st.sampled_from([1.0, 1.0, 1.0, math.nan, math.inf, -math.inf])


@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(SPECIAL, SPECIAL), min_size=1, max_size=40))
def test_counts_of_non_finite_values_agree_with_python(pairs: list[tuple[float, float]]) -> None:
    golden, actual = torch.tensor(pairs).unbind(1)
    verdict = judge(golden, actual)
    nan = [math.isnan(left) != math.isnan(right) for left, right in pairs]
    infinite = [
        (left if math.isinf(left) else None) != (right if math.isinf(right) else None)
        for left, right in pairs
    ]
    assert verdict.passed is not (any(nan) or any(infinite))
    counts = [sum(math.isnan(side) for side in column) for column in zip(*pairs, strict=True)]
    if any(nan):
        assert f"NaN positions differ at {sum(nan)} of {len(pairs)}" in verdict.message
        assert f"golden has {counts[0]} NaN, implementation {counts[1]};" in verdict.message
    if any(infinite):
        assert f"signs differ at {sum(infinite)} of {len(pairs)}" in verdict.message


class Subclass(torch.Tensor):
    """A tensor that answers every comparison itself."""

    @classmethod
    def __torch_function__(cls, *_args: Any, **_kwargs: Any) -> Any:
        return True


def raw(name: str) -> torch.Tensor:
    return torch.zeros(2, dtype=torch.uint8).view(getattr(torch, name))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(2).as_subclass(Subclass), "tensor subclass"),
        (torch.eye(2).to_sparse(), "torch.sparse_coo"),
        (torch.empty(2, device="meta"), "meta tensor"),
        (raw("bits8"), "torch.bits8"),
    ],
    ids=["subclass", "sparse", "meta", "bits"],
)
def test_what_cannot_be_judged_is_refused(value: torch.Tensor, words: str) -> None:
    plain = torch.zeros(2)
    for verdict, side in ((judge(value, plain), "the golden"), (judge(plain, value), "the output")):
        assert verdict.error_type == "AssertionError"
        assert words in verdict.message
        assert side in verdict.message
    assert judge(value, None).error_type == "AssertionError"


def test_packed_formats_are_refused_except_bit_for_bit() -> None:
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4")
    packed = raw("float4_e2m1fn_x2")
    assert judge(packed, packed.clone()).error_type == "AssertionError"
    assert judge(packed, packed.clone(), non_compute=True).passed


@pytest.mark.filterwarnings("ignore:.*quantize:UserWarning", "ignore:.*deprecated")
def test_quantised_tensors_are_refused() -> None:
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for non_compute in (False, True):
        verdict = judge(quantised, quantised, non_compute=non_compute)
        assert verdict.error_type == "AssertionError"
        assert "quantised" in verdict.message


def test_parameters_and_tensors_that_require_grad_are_plain_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    assert judge(parameter, torch.ones(3, requires_grad=True)).passed
    assert not judge(parameter, torch.zeros(3)).passed

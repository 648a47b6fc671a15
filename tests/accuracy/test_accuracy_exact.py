"""Integers, booleans and bits."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.accuracy import OutputsVerdict, Rules, infer_input_type, judge_outputs

FLOAT_INPUTS = infer_input_type([torch.zeros(1)])
INT_INPUTS = infer_input_type([torch.zeros(1, dtype=torch.int32)])
NO_INPUTS = infer_input_type([])

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
INTEGERS = [name for name in RANGES if hasattr(torch, name)]
INDEX_LIKE = {"int32", "int64", "uint32", "uint64"}


def judge(
    golden: object, actual: object, inputs: object = INT_INPUTS, **rules: bool
) -> OutputsVerdict:
    kind = {id(FLOAT_INPUTS): FLOAT_INPUTS, id(NO_INPUTS): NO_INPUTS}.get(id(inputs), INT_INPUTS)
    return judge_outputs(golden, actual, input_type=kind, rules=Rules(**rules))


def integers(values: list[int], name: str) -> torch.Tensor:
    """Make an integer tensor; torch.tensor alone doesn't take every unsigned value."""
    low, high = RANGES[name]
    size = (high - low).bit_length() // 8
    signed = [
        value - (1 << 8 * size) if value > (1 << 8 * size - 1) - 1 else value for value in values
    ]
    wrapped = torch.tensor(
        signed, dtype={1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    )
    return wrapped.view(getattr(torch, name))


@st.composite
def integer_pairs(draw: st.DrawFn) -> tuple[str, list[int], str, list[int]]:
    """Draw two vectors, often equal, off by one or at the ends of their ranges."""
    left = draw(st.sampled_from(INTEGERS))
    right = draw(st.sampled_from([left, left, *INTEGERS]))
    size = draw(st.integers(1, 50))
    (low, high), (least, most) = RANGES[left], RANGES[right]
    golden = draw(
        st.lists(
            st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, low + 1, high - 1])),
            min_size=size,
            max_size=size,
        )
    )
    step = st.one_of(
        st.just(0), st.integers(-2, 2), st.sampled_from([most - low, least - high, 2**32, -(2**32)])
    )
    steps = draw(st.lists(step, min_size=size, max_size=size))
    actual = [min(max(value + by, least), most) for value, by in zip(golden, steps, strict=True)]
    return left, golden, right, actual


@settings(max_examples=200, deadline=None)
@given(pair=integer_pairs(), inputs=st.sampled_from(["float", "int", "none"]), exact=st.booleans())
def test_integers_agree_with_python(
    pair: tuple[str, list[int], str, list[int]], inputs: str, *, exact: bool
) -> None:
    left, golden, right, actual = pair
    quantised = inputs == "float" and not (exact and left in INDEX_LIKE)
    tolerance = 1 if quantised else 0
    differences = [abs(got - expected) for expected, got in zip(golden, actual, strict=True)]
    violations = sum(difference > tolerance for difference in differences)
    verdict = judge_outputs(
        integers(golden, left),
        integers(actual, right),
        input_type={"float": FLOAT_INPUTS, "int": INT_INPUTS, "none": NO_INPUTS}[inputs],
        rules=Rules(exact_int=exact),
    )
    assert verdict.passed is (violations == 0)
    assert verdict.error_type == ("AccuracyError" if violations else None)
    output = verdict.outputs[0]
    category = "quant_fp_to_int" if quantised else "integer_compute"
    assert output.category == category
    assert list(output.metrics.items()) == [
        ("category", category),
        ("dtype", f"torch.{left}"),
        ("violation_count", violations),
        ("total_finite", len(golden)),
        ("max_abs_diff", max(differences)),
        ("tolerance", tolerance),
    ]
    codes = [caution.code for caution in verdict.cautions]
    assert ("integer_width" in codes) is (left != right)
    index_rule = quantised and left in INDEX_LIKE and not violations and max(differences) == 1
    assert ("index_by_quantisation_rule" in codes) is index_rule
    if violations:
        worst = max(range(len(golden)), key=lambda at: differences[at])
        assert f"difference {differences[worst]}," in verdict.message
        assert f"expected {golden[worst]}," in verdict.message


@pytest.mark.parametrize(
    ("left", "right"), [("int64", "uint64"), ("uint64", "int64"), ("uint64", "int8")]
)
def test_signed_and_unsigned_are_compared_by_value(left: str, right: str) -> None:
    if not hasattr(torch, "uint64"):
        pytest.skip("this torch has no uint64")
    # The same bits, and yet 2**64 apart.
    same_bits = judge(integers([2**64 - 1], "uint64"), integers([-1], "int64"))
    assert same_bits.metrics is not None
    assert same_bits.metrics["max_abs_diff"] == 2**64
    low, high = RANGES[left][0], RANGES[right][1]
    verdict = judge(integers([low], left), integers([high], right))
    assert verdict.metrics is not None
    assert verdict.metrics["max_abs_diff"] == high - low
    assert judge(integers([7], left), integers([7], right)).passed


def test_the_widest_difference_needs_65_bits() -> None:
    if not hasattr(torch, "uint64"):
        pytest.skip("this torch has no uint64")
    golden, actual = integers([-(2**63)], "int64"), integers([2**64 - 1], "uint64")
    for verdict in (judge(golden, actual), judge(actual, golden)):
        assert verdict.metrics is not None
        assert verdict.metrics["max_abs_diff"] == 2**64 - 1 + 2**63


def test_quantised_outputs_carry_no_index_warning() -> None:
    golden = torch.tensor([3, 4], dtype=torch.int8)
    verdict = judge(golden, golden + 1, FLOAT_INPUTS)
    assert verdict.passed
    assert verdict.cautions == ()
    assert judge(golden, golden + 1, FLOAT_INPUTS, exact_int=True).passed


def one_sided(golden: torch.Tensor, actual: torch.Tensor) -> list[str]:
    verdict = judge(golden, actual, FLOAT_INPUTS)
    assert verdict.passed
    return [c.message for c in verdict.cautions if c.code == "one_sided_rounding"]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint8])
def test_truncation_instead_of_rounding_is_told_with_its_share(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    exact = 20 * torch.randn(40, 50, generator=generator).clamp(-4, 4)
    if dtype == torch.uint8:
        exact = exact.abs()
    golden, truncated = exact.round().to(dtype), exact.to(dtype)
    differing = int((golden != truncated).sum())
    (text,) = one_sided(golden, truncated)
    assert f"{differing} of 2000 elements ({differing / 20:.1f} %)" in text
    assert "all towards zero" in text
    for direction, other in (("downwards", exact.floor()), ("upwards", exact.ceil())):
        if dtype != torch.uint8:
            assert f"all {direction}" in one_sided(golden, other.to(dtype))[0]
    # Rounding that falls to either side, and a few ties, are what the rule is for.
    noisy = (exact + torch.rand(40, 50, generator=generator) - 0.5).round().to(dtype)
    assert one_sided(golden, (noisy.int() - golden.int()).clamp(-1, 1).to(dtype) + golden) == []
    few = golden.clone()
    few.view(-1)[:100] = truncated.view(-1)[:100]
    assert one_sided(golden, few) == []


def test_without_tensor_inputs_integers_are_exact() -> None:
    golden = torch.tensor([3])
    assert judge(golden, golden.clone(), NO_INPUTS).passed
    assert not judge(golden, golden + 1, NO_INPUTS).passed


def test_one_wrong_boolean_fails() -> None:
    golden = torch.zeros(4, 5, dtype=torch.bool)
    actual = golden.clone()
    actual[2, 3] = True
    verdict = judge(golden, actual)
    assert verdict.error_type == "AccuracyError"
    assert list((verdict.metrics or {}).items()) == [
        ("category", "bool_output"),
        ("dtype", "torch.bool"),
        ("violation_count", 1),
        ("total_finite", 20),
    ]
    assert "[2, 3]: got True, expected False" in verdict.message
    assert judge(golden, golden.clone(), FLOAT_INPUTS).outputs[0].category == "bool_output"


def bits_tensor(name: str) -> torch.Tensor:
    """Make 32 elements of a dtype from fixed bytes."""
    dtype = getattr(torch, name)
    raw = (
        torch.arange(dtype.itemsize * 32, dtype=torch.int64).mul(37).remainder(251).to(torch.uint8)
    )
    if name == "bool":
        return raw > 100
    return raw.view(dtype)


ALL_DTYPES = sorted(
    name
    for name in dir(torch)
    if isinstance(getattr(torch, name), torch.dtype)
    and str(getattr(torch, name)) == f"torch.{name}"
    and not name.startswith(("qint", "quint"))
)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("name", ALL_DTYPES)
def test_every_dtype_is_compared_bit_for_bit(name: str) -> None:
    golden = bits_tensor(name)
    twin = bits_tensor(name)
    verdict = judge(golden, twin, non_compute=True)
    assert verdict.passed
    assert list(verdict.outputs[0].metrics.items()) == [
        ("category", "non_compute"),
        ("dtype", f"torch.{name}"),
        ("violation_count", 0),
        ("total_elements", 32),
    ]
    raw = twin.view(torch.uint8)
    raw[-1] ^= 1
    verdict = judge(golden, twin, non_compute=True)
    assert verdict.error_type == "AccuracyError"
    assert (verdict.metrics or {})["violation_count"] == 1
    assert "[31]: got" in verdict.message


def test_nan_payloads_and_the_sign_of_zero_count_as_bits_only() -> None:
    payload = struct.unpack("f", struct.pack("I", 0x7FC00001))[0]
    golden = torch.tensor([0.0, math.nan])
    assert judge(golden, golden.clone(), non_compute=True).passed
    verdict = judge(golden, torch.tensor([-0.0, payload]), non_compute=True)
    assert (verdict.metrics or {})["violation_count"] == 2
    assert "[0]: got -0.0 (0x80000000), expected 0.0 (0x00000000)" in verdict.message
    assert "(0x7fc00001)" in verdict.message
    assert judge(golden, torch.tensor([-0.0, payload])).passed


def test_bits_of_strided_and_conjugate_views_are_those_of_their_values() -> None:
    values = torch.randn(6, 4, dtype=torch.complex64)
    assert judge(values.t(), values.t().contiguous(), non_compute=True).passed
    assert judge(values.conj(), values.conj().resolve_conj(), non_compute=True).passed
    assert not judge(values.conj(), values, non_compute=True).passed


@pytest.mark.parametrize("other", [torch.float64, torch.float16, torch.int32])
def test_bits_of_another_dtype_never_agree(other: torch.dtype) -> None:
    verdict = judge(torch.zeros(2), torch.zeros(2, dtype=other), non_compute=True)
    assert verdict.error_type == "AssertionError"
    assert f"expected torch.float32, got {other}" in verdict.message
    empty = judge(torch.zeros(0), torch.zeros(0, dtype=other), non_compute=True)
    assert empty.error_type == "AssertionError"


@pytest.mark.parametrize("inputs", [INT_INPUTS, FLOAT_INPUTS])
def test_python_integers_beyond_64_bits_are_exact(inputs: object) -> None:
    tolerance = 1 if inputs is FLOAT_INPUTS else 0
    big = 2**70
    assert judge(big, big, inputs).passed
    assert judge(big, big + tolerance, inputs).passed
    verdict = judge(big, big + 1 + tolerance, inputs)
    assert (verdict.metrics or {})["max_abs_diff"] == 1 + tolerance
    assert (verdict.metrics or {})["dtype"] == "int"
    assert judge(2**63 - 1, 2**63, inputs).passed is (tolerance == 1)
    assert judge(big, torch.tensor(5), inputs).metrics is not None
    assert judge(-(2**64), torch.tensor(-(2**63)), inputs).error_type == "AccuracyError"
    assert judge(big, 1.0, inputs).error_type == "AssertionError"


def test_python_integers_under_bitwise_rules() -> None:
    assert judge(2**70, 2**70, non_compute=True).passed
    verdict = judge(3, 2**70, non_compute=True)
    assert verdict.error_type == "AccuracyError"
    assert list(verdict.metrics or {}) == ["category", "dtype", "violation_count", "total_elements"]
    assert judge(2**70, torch.tensor(1), non_compute=True).error_type == "AssertionError"

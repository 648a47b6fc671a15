from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.interpreter import (
    atomics,
    formats,
    launching,
    libdevice,
    lowprecision,
    masked_lanes,
    names,
    repairs,
    rewriting,
)
from pytest_tritonverify.interpreter.formats import BFLOAT16, CARRIERS
from tests.support.lowprecision import assert_same_bits, finite_values, rounded

POSITIVE: list[float] = [v for v in finite_values(torch.bfloat16).tolist() if v >= 0]
TORCH = {
    "bf16": torch.bfloat16,
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}


def nearest_bfloat16(exact: Fraction) -> float:
    """Round by looking for the neighbours: an index is the bit pattern of a magnitude."""
    magnitude = abs(exact)
    above = bisect_left(POSITIVE, magnitude)
    if above == 0 or POSITIVE[above] == magnitude:
        index = above
    else:
        up, down = Fraction(POSITIVE[above]) - magnitude, magnitude - Fraction(POSITIVE[above - 1])
        index = above if up < down or (up == down and above % 2 == 0) else above - 1
    return POSITIVE[index] * (-1 if exact < 0 else 1)


def carried(*values: float) -> tuple[formats.Array, ...]:
    return tuple(np.array([v], np.float32).astype(BFLOAT16) for v in values)


def fma(x: float, y: float, z: float) -> float:
    with np.errstate(all="ignore"):  # as in a worker
        return float(formats.fused_multiply_add(*carried(x, y, z))[0])


moderate = st.builds(
    lambda significand, exponent, sign: math.ldexp(significand, exponent) * sign,
    st.integers(128, 255),
    st.integers(-50, 50),
    st.sampled_from([1, -1]),
)


@given(moderate, moderate, moderate)
def test_fma_rounds_the_exact_result_once(x: float, y: float, z: float) -> None:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    assert fma(x, y, z) == nearest_bfloat16(exact)


def test_fma_sees_what_lies_beyond_float64() -> None:
    # The product lies half way between two numbers of bfloat16: z decides, however small it is.
    x, y = 1 + 2.0**-7, 1.5
    low, high = 1.5078125, 1.515625
    assert x * y == (low + high) / 2
    assert fma(x, y, -(2.0**-100)) == low
    assert fma(x, y, 2.0**-100) == high
    assert fma(x, -y, 2.0**-100) == -low
    assert fma(x, y, 0.0) == nearest_bfloat16(Fraction(x * y)) == high


def test_fma_of_infinities() -> None:
    assert fma(float("inf"), 1.0, 1.0) == float("inf")
    assert fma(-3e38, 2.0, 1.0) == float("-inf")
    assert np.isnan(fma(float("inf"), 0.0, 1.0))


@given(st.floats(width=32), st.sampled_from(sorted(CARRIERS)))
def test_conversion_is_torchs(value: float, name: str) -> None:
    got = formats.convert(np.array([value], np.float32), CARRIERS[name])
    wanted = rounded(torch.tensor([value]), TORCH[name])
    bits = torch.uint8 if wanted.itemsize == 1 else torch.int16
    raw = torch.from_numpy(got.view(np.uint8 if wanted.itemsize == 1 else np.int16))
    assert_same_bits(raw.view(bits).view(TORCH[name]), wanted)


def test_largest_values() -> None:
    for name, dtype in CARRIERS.items():
        assert formats.largest(dtype) == torch.finfo(TORCH[name]).max
    assert formats.largest(np.dtype(np.float16)) == 65504


@given(st.lists(st.integers(0, 5), max_size=40))
def test_lanes_that_share_an_address_take_turns_in_order(addresses: list[int]) -> None:
    rounds = atomics._turns(np.array(addresses, np.uint64))
    order = [int(lane) for lanes in rounds for lane in lanes]
    assert sorted(order) == list(range(len(addresses)))
    for lanes in rounds:
        assert len({addresses[lane] for lane in lanes}) == len(lanes)
    for address in set(addresses):
        mine = [lane for lane in order if addresses[lane] == address]
        assert mine == sorted(mine)


def test_a_version_without_the_hooks_is_left_alone() -> None:
    bare: Any = SimpleNamespace()
    assert "InterpreterBuilder" in str(lowprecision.obstacle(bare))
    assert "InterpreterBuilder" in str(masked_lanes.obstacle(bare))
    hooks = ("InterpreterBuilder", "ReduceOps", "ScanOps", "TensorHandle", "_get_np_dtype")
    partial: Any = SimpleNamespace(**{name: object() for name in hooks})
    assert "binary_op" in str(lowprecision.obstacle(partial))
    assert "create_masked_load" in str(masked_lanes.obstacle(partial))
    assert "FunctionRewriter" in str(rewriting.obstacle(bare))
    assert "_implicit_cvt" in str(launching.obstacle(bare))
    assert "_patch_lang" in str(names.obstacle(bare))
    assert "create_extern_elementwise" in str(libdevice.obstacle(partial))
    for repair in (repairs.type_comparisons, repairs.accept_precisions, repairs.reduce_nan):
        assert not repair(bare)

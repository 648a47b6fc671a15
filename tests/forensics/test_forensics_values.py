"""What failing elements hold: non-finite values, ends of ranges, integers, other outputs."""

from __future__ import annotations

import math

import pytest
import torch

from pytest_tritonverify.forensics import (
    Diagnosis,
    FailedOutput,
    LaunchFacts,
    MaskedLoad,
    diagnose,
    render,
)
from pytest_tritonverify.forensics.failing import failing_by

NAN, INF = math.nan, math.inf


def randn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def explained(
    golden: torch.Tensor,
    actual: torch.Tensor,
    inputs: tuple[torch.Tensor, ...] = (),
    others: tuple[torch.Tensor, ...] = (),
    launches: tuple[LaunchFacts, ...] = (),
    masked: tuple[MaskedLoad, ...] | None = None,
) -> Diagnosis:
    failing = failing_by(None, golden.dtype)
    return diagnose(FailedOutput(golden, actual, failing, others, inputs, launches, masked))


def test_rows_of_nan_with_a_load_that_left_lanes_undefined_name_the_load() -> None:
    golden, actual = randn(20, 50), torch.full((20, 50), NAN)
    found = explained(golden, actual, masked=(MaskedLoad("k.py", 12, 280),))
    assert (found.code, found.confidence) == ("masked_lanes", "clear")
    assert any("k.py:12 left 280 lanes" in fact for fact in found.evidence)


def test_rows_of_nan_are_unwritten_where_no_lane_was_undefined() -> None:
    found = explained(randn(20, 50), torch.full((20, 50), NAN), masked=())
    assert (found.code, found.confidence) == ("uninitialised", "clear")


def test_a_reduction_of_undefined_lanes_is_named_by_block_and_row() -> None:
    launch = LaunchFacts("total", "k.py", 3, (64,), {"BLOCK_N": 128})
    x = randn(64, 100)
    found = explained(x.sum(1), torch.full((64,), NAN), (x,), launches=(launch,))
    assert (found.code, found.confidence) == ("masked_lanes", "likely")
    assert any("BLOCK_N=128: 28 lanes are masked" in fact for fact in found.evidence)


def test_undefined_lanes_in_a_tail_show_by_what_they_are_filled_with() -> None:
    golden = randn(1000)
    actual = golden.clone()
    largest = torch.finfo(torch.float32).max
    actual[990:] = torch.tensor([NAN, largest, NAN, -largest] * 3)[:10]
    assert explained(golden, actual, masked=(MaskedLoad("k.py", 1, 10),)).code == "masked_lanes"
    assert explained(golden, actual).code == "masked_lanes"


def test_a_load_that_strays_is_named_where_no_lane_was_undefined() -> None:
    golden, place = randn(1000), "k.py:12: load of 10 lanes, up to 40 bytes beyond the end of x"
    tail = golden.clone()
    largest = torch.finfo(torch.float32).max
    tail[990:] = torch.tensor([NAN, largest, NAN, -largest] * 3)[:10]
    rows = -torch.full((20, 50), NAN)
    for expected, actual in ((golden, tail), (randn(20, 50), rows)):
        found = diagnose(
            FailedOutput(
                expected,
                actual,
                failing_by(None, expected.dtype),
                masked_loads=(),
                stray_reads=(place,),
            )
        )
        assert (found.code, found.confidence) == ("stray_read", "clear")
        assert place in found.evidence
    assert explained(golden, tail, masked=()).code != "masked_lanes"


@pytest.mark.parametrize("masked", [None, (MaskedLoad("k.py", 1, 10),)])
def test_a_maximum_of_undefined_lanes_is_the_largest_number(
    masked: tuple[MaskedLoad, ...] | None,
) -> None:
    x = randn(60, 100)
    found = explained(x.amax(1), torch.full((60,), torch.finfo(x.dtype).max), (x,), masked=masked)
    assert (found.code, found.confidence) == ("masked_lanes", "clear" if masked else "likely")


def test_a_maximum_of_undefined_integer_lanes_is_the_largest_one() -> None:
    x = (randn(60, 100) * 100).to(torch.int32)
    actual = torch.full((60,), torch.iinfo(x.dtype).max, dtype=x.dtype)
    load = MaskedLoad("k.py", 1, 10)
    assert explained(x.amax(1), actual, (x,), masked=(load,)).code == "masked_lanes"
    assert explained(x.amax(1), actual, (x,), masked=()).code == "uninitialised"


def test_computed_nan_in_whole_rows_spread_in_their_reduction() -> None:
    golden = randn(100, 40)
    actual = golden.clone()
    actual[[3, 17, 50, 51]] = -torch.tensor(NAN)
    found = explained(golden, actual, masked=())
    assert (found.code, found.confidence) == ("masked_lanes", "likely")
    assert found.region["indices"] == [3, 17, 50, 51]


def test_computed_nan_in_random_places_is_unclear() -> None:
    golden = randn(3000)
    actual = torch.where(golden > 1.5, -torch.tensor(NAN), golden)
    assert explained(golden, actual, masked=()).code == "unclear"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_unwritten_memory_is_known_by_its_bits_in_other_formats(dtype: torch.dtype) -> None:
    golden = randn(1000).to(dtype)
    actual = golden.clone()
    actual[900:] = NAN
    found = explained(golden, actual)
    assert found.code == "tail_unwritten"
    assert any("very bits" in fact for fact in found.evidence)


def test_nan_that_is_lost_on_the_way() -> None:
    x = randn(60, 30)
    x[::7, 3] = NAN
    golden, actual = x.amax(1), x.nan_to_num(nan=-INF).amax(1)
    assert explained(golden, actual, (x,)).code == "nan_dropped"


def test_infinity_where_a_half_overflows() -> None:
    x = randn(2000) * 40000
    found = explained(x, x.half().float())
    assert (found.code, found.confidence) == ("overflow_to_infinity", "clear")
    assert any("65504" in fact for fact in found.evidence)


def test_infinity_that_an_input_explains() -> None:
    x = randn(500) * 60
    golden = torch.log1p(x.double().exp()).float()
    found = explained(golden, torch.log1p(x.exp()), (x,))
    assert (found.code, found.confidence) == ("overflow_to_infinity", "clear")


def test_infinity_from_a_division_by_zero_is_no_overflow() -> None:
    x = randn(500)
    x[::9] = 0
    found = explained(1 / (x.abs() + 1e-3), 1 / x.abs(), (x,))
    assert (found.code, found.confidence) == ("division_by_zero", "clear")


def test_values_that_stop_at_the_end_of_a_range() -> None:
    x = (randn(400) * 200).round().to(torch.int32)
    found = explained(x, x.clamp(-128, 127))
    assert (found.code, found.confidence) == ("saturated", "clear")
    assert "127" in (found.cause or "")


def test_saturation_where_the_golden_is_infinite() -> None:
    golden = torch.where(randn(300) > 1, INF, 1.0)
    actual = golden.clamp(max=65504)
    assert explained(golden, actual).code == "saturated"


def test_one_saturated_element_where_the_golden_is_infinite() -> None:
    golden = randn(300).half()
    golden[7] = INF
    assert explained(golden, golden.clamp(max=65504)).code == "saturated"


def test_an_infinity_of_the_wrong_sign() -> None:
    golden = randn(300)
    golden[[7, 9]] = torch.tensor([INF, -INF])
    actual = torch.where(golden.isinf(), -golden, golden)
    assert explained(golden, actual).code == "sign_flipped"


def test_zeros_that_were_divided_by_an_infinity_have_signs() -> None:
    x = randn(8, 64).half() * 200
    golden = (x.float() / x.float().norm(dim=1, keepdim=True)).half()
    actual = x / x.square().sum(dim=1, keepdim=True).sqrt()
    assert explained(golden, actual, (x,)).code == "overflow_to_infinity"


@pytest.mark.parametrize(("name", "sign"), [("amax", -1), ("amin", 1)])
def test_masked_lanes_that_win_a_maximum(name: str, sign: int) -> None:
    x = (randn(30, 20) * 0.1).abs() * sign
    x[5] *= -1
    reduced = getattr(x, name)(1)
    lanes = getattr(torch.cat((x, torch.zeros(30, 12)), 1), name)(1)
    found = explained(reduced, lanes, (x,))
    assert (found.code, found.confidence) == ("masked_lanes", "clear")
    assert "infinity" in (found.cause or "")


def test_division_that_truncates_by_a_constant() -> None:
    x = torch.arange(-150, 0, dtype=torch.int32)
    found = explained(x // 7, torch.div(x, 7, rounding_mode="trunc"), (x,))
    assert (found.code, found.confidence) == ("truncation", "clear")
    assert "input 0 / 7, truncated" in found.evidence[1]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_integers_that_wrap(bits: int) -> None:
    generator = torch.Generator().manual_seed(bits)
    golden = torch.randint(0, 1 << (bits + 2), (300,), generator=generator)
    half = 1 << (bits - 1)
    found = explained(golden, (golden + half) % (1 << bits) - half)
    assert (found.code, found.confidence) == ("integer_wrap", "clear")
    assert f"in {bits} bits" in (found.cause or "")


def test_unsigned_integers_that_wrap() -> None:
    golden = torch.arange(100, 1500, 3)
    assert explained(golden, golden % 256).code == "integer_wrap"


def test_division_that_truncates_in_whole_floats() -> None:
    x = (randn(600) * 50).round()
    found = explained(torch.floor(x / 7), torch.trunc(x / 7))
    assert (found.code, found.confidence) == ("truncation", "clear")


def test_conversion_that_cuts_off_the_fraction() -> None:
    x = randn(600) * 50
    found = explained(x.round().to(torch.int32), x.trunc().to(torch.int32))
    assert (found.code, found.confidence) == ("truncation", "clear")


def test_off_by_one_among_few_values_is_unclear() -> None:
    generator = torch.Generator().manual_seed(0)
    golden = torch.randint(0, 3, (40,), generator=generator)
    assert explained(golden, (golden + 1) % 3).code == "unclear"


def test_values_of_another_output() -> None:
    x = randn(50, 20)
    found = explained(x.amax(1), x.mean(1), others=(x.amin(1), x.mean(1)))
    assert (found.code, found.confidence) == ("swapped_outputs", "clear")
    assert found.evidence == ("the values agree with the golden of other output 1",)


def test_one_number_that_is_a_sum_instead_of_a_mean() -> None:
    x = randn(32, 64)
    found = explained(x.square().mean(), x.square().sum(), (x,))
    assert (found.code, found.confidence) == ("constant_factor", "likely")
    assert "2048" in found.evidence[0]


def test_one_wrong_number_is_unclear() -> None:
    assert explained(torch.tensor(1.5), torch.tensor(2.7), (randn(32, 64),)).code == "unclear"


def test_a_factor_that_applies_to_negative_values_only() -> None:
    x = randn(3000)
    golden = torch.where(x > 0, x, 0.5 * x)
    actual = torch.where(x > 0, x, 0.1 * x)
    found = explained(golden, actual)
    assert (found.code, found.confidence) == ("constant_factor", "likely")


def test_a_sign_that_is_lost() -> None:
    x = randn(3000)
    found = explained(x, x.abs())
    assert (found.code, found.confidence) == ("sign_flipped", "likely")
    assert "where the golden is negative only" in found.evidence[1]


def test_inverted_booleans() -> None:
    golden = randn(300) > 0.3
    assert explained(golden, ~golden).code == "sign_flipped"


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_a_reduction_along_another_axis(name: str) -> None:
    x = randn(24, 24, 5)
    golden, actual = getattr(x, name)(0), getattr(x, name)(1)
    found = explained(golden, actual, (randn(3), x))
    assert (found.code, found.confidence) == ("wrong_reduction_axis", "clear")
    assert "input 1 along axis 1; the golden is that along axis 0" in found.evidence[0]


def test_a_reduction_whose_output_has_another_length() -> None:
    x = randn(40, 90)
    found = explained(x.sum(1), x.sum(0)[:40], (x,))
    assert found.code == "wrong_reduction_axis"


def test_argmax_along_another_axis() -> None:
    x = randn(50, 50)
    assert explained(x.argmax(1), x.argmax(0), (x,)).code == "wrong_reduction_axis"


def test_inputs_rounded_to_bfloat16_show_by_the_signs_of_errors() -> None:
    x = randn(4000)
    golden = x.double().mul(3).add(0.1).float()
    actual = x.bfloat16().double().mul(3).add(0.1).float()
    found = explained(golden, actual, (x,))
    assert (found.code, found.confidence) == ("half_precision", "likely")
    assert "bfloat16" in (found.cause or "")


def test_small_noise_is_no_rounding() -> None:
    x = randn(4000)
    noise = randn(4000, seed=2) * 2**-8
    assert explained(x, x * (1 + noise), (x,)).code == "unclear"


def test_a_matrix_product_that_is_right_but_for_noise_is_unclear() -> None:
    a, b = randn(40, 64), randn(64, 50, seed=2)
    noise = randn(40, 50, seed=3) * 0.01
    assert explained(a @ b, a @ b + noise, (a, b)).code == "unclear"


def test_values_of_a_neighbouring_block() -> None:
    golden = randn(4096)
    actual = golden.clone()
    actual[1024:1280] = golden[768:1024]
    launch = LaunchFacts("copy", "k.py", 3, (16,), {"BLOCK": 256})
    found = explained(golden, actual, launches=(launch,))
    assert (found.code, found.confidence) == ("one_block", "clear")
    assert "program id, 4," in (found.cause or "")
    assert "sampled failing elements agree with the golden so moved" in found.evidence[-1]


def test_a_fault_is_named_beside_rounding_that_fails_some_elements() -> None:
    golden = randn(100, 64)
    actual = golden + 2**-9 * (randn(100, 64, seed=5) > 2)
    actual[:, 48:] += 7
    launch = LaunchFacts("k", None, None, (100,), {"BLOCK": 48})
    found = explained(golden, actual, launches=(launch,))
    assert (found.code, found.confidence) == ("tail_wrong", "likely")
    assert found.region["start"] == 48
    assert "further elements fail by far less" in found.evidence[-1]


def test_the_grid_that_is_too_small_is_named() -> None:
    golden = randn(5000)
    actual = golden.clone()
    actual[3 * 1024 :] = NAN
    launch = LaunchFacts("add", "k.py", 9, (3,), {"BLOCK": 1024})
    found = explained(golden, actual, launches=(launch,))
    assert (found.code, found.confidence) == ("tail_unwritten", "clear")
    assert "add ran 3 programs of 1024 elements: they cover 3072 of 5000" in found.evidence
    assert render(found)[0].startswith("where: the last 1928 of 5000 elements (3072 to 4999)")


def test_nothing_fails() -> None:
    found = explained(randn(10), randn(10))
    assert (found.code, found.cause, found.confidence) == ("unclear", None, None)
    assert found.region["kind"] == "none"
    assert render(found)[-1].startswith("cause: unclear")

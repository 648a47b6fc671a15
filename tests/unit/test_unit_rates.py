"""Rates and their exact confidence intervals, against sums of exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.rates import Rate


def at_most(count: int, of: int, rate: float) -> float:
    """The probability of at most `count` among `of`, without rounding on the way."""
    p = Fraction(rate)
    terms = (math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(count + 1))
    return float(sum(terms, Fraction(0)))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_the_ends_are_where_the_tails_hold_a_fortieth(data: st.DataObject) -> None:
    of = data.draw(st.integers(1, 30))
    count = data.draw(st.integers(0, of))
    low, high = Rate(count, of).interval
    assert 0 <= low <= count / of <= high <= 1
    if count:
        assert 1 - at_most(count - 1, of, low) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0
    if count < of:
        assert at_most(count, of, high) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1


@pytest.mark.parametrize("of", [1, 3, 50, 10_000])
def test_no_failure_at_all_has_a_closed_form(of: int) -> None:
    low, high = Rate(0, of).interval
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / of), rel=1e-9)
    low, whole = Rate(of, of).interval
    assert low == pytest.approx(1 - high, rel=1e-9)
    assert whole == 1


def test_figures_for_people_and_for_programs() -> None:
    assert str(Rate(3, 50)) == "3 of 50 (6.0 %, 95 % confidence interval 1.3 % to 16.5 %)"
    told = Rate(3, 50).to_json("failure")
    assert told["failure_rate"] == 0.06
    assert told["failure_rate_ci95"] == [
        pytest.approx(0.01255, abs=1e-5),
        pytest.approx(0.16548, abs=1e-5),
    ]

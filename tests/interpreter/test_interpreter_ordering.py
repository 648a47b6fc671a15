"""The order in which programs of a grid run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.interpreter import ordering

KINDS = (ordering.REVERSED, ordering.SHUFFLED)


@given(st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 50))
def test_every_program_has_one_place_and_keeps_it(kind: str, seed: int, count: int) -> None:
    places = ordering.places((kind, seed), count)
    assert sorted(places) == list(range(count))
    assert places == ordering.places((kind, seed), count)

"""P0 to P2 as functions of two inventories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.probe.inventory import Facts, Inventory
from pytest_tritonverify.probe.matching import Told, hidden_state, match


def _facts(bits: str, shape: tuple[int, ...] = (3,), **more: Any) -> Facts:
    """Facts of a tensor whose digest is a word; a matrix's transpose is `bits` reversed."""
    transposed = bits[::-1] if len(shape) == 2 else None
    return Facts(more.pop("dtype", "float32"), shape, bits, transposed, **more)


def _told(
    built: dict[str, Facts],
    ran: dict[str, Facts] | None = None,
    sequences: dict[str, int | None] | None = None,
) -> Told:
    return Told(
        Inventory(built, sequences or {}),
        None if ran is None else Inventory(ran, sequences or {}),
    )


A, B = _facts("ab"), _facts("cd")
LOOSE = replace(A, registered=False)


def test_p0_no_tensors_no_state() -> None:
    assert hidden_state(_told({}, {})) == []


def test_p0_what_follows_from_inputs_is_no_state() -> None:
    of_input = replace(A, registered=False, volatile="input")
    fresh = replace(B, volatile="fresh")
    unknown = replace(B, volatile="unknown")
    assert hidden_state(_told({"f": fresh}, {"f": fresh, "x": of_input, "u": unknown})) == ["u"]


def test_p1_same_name_same_bits() -> None:
    found = match(_told({"w": A}), _told({"w": A, "more": B}))
    assert found.compared == ("w",)
    assert found.settled


@pytest.mark.parametrize(
    "other",
    [
        B,
        _facts("ab", (1, 3)),
        _facts("ab", dtype="float16"),
        _facts("cd", (4,)),
    ],
    ids=["values", "shape", "dtype", "size"],
)
def test_p1_same_name_other_bits(other: Facts) -> None:
    found = match(_told({"w": A}), _told({"w": other}))
    (mismatch,) = found.mismatches
    assert (mismatch.name, mismatch.reference, mismatch.implementation) == ("w", A, other)
    assert not found.missing


def test_p1_accepts_transposed_matrices_and_nothing_else_transposed() -> None:
    ours, theirs = _facts("ab", (2, 3)), _facts("ba", (3, 2))
    assert match(_told({"w": ours}), _told({"w": theirs})).compared == ("w",)
    same_shape = match(_told({"w": ours}), _told({"w": _facts("ba", (2, 3))}))
    assert same_shape.mismatches
    square = match(_told({"w": _facts("ab", (2, 2))}), _told({"w": _facts("ba", (2, 2))}))
    assert square.compared == ("w",)
    # Two vectors are never transposes of each other.
    flat = match(_told({"w": _facts("ab", (3,))}), _told({"w": _facts("ba", (3,))}))
    assert flat.mismatches


def test_p1_goes_by_name_though_all_values_are_there() -> None:
    found = match(_told({"scale": A, "shift": B}), _told({"shift": A, "scale": B}))
    assert [(m.name, m.holds, m.held_as) for m in found.mismatches] == [
        ("scale", "shift", "shift"),
        ("shift", "scale", "scale"),
    ]


def test_p1_one_of_several_names_of_a_shared_tensor_counts_too() -> None:
    found = match(_told({"a": A, "b": A}), _told({"a": A, "b": B}))
    assert [m.name for m in found.mismatches] == ["b"]


def test_p1_random_plain_attributes_count_and_fixed_ones_do_not() -> None:
    theirs = _told({"w": replace(B, registered=False)})
    drawn = match(_told({"w": replace(LOOSE, drawn=True)}), theirs)
    assert drawn.mismatches
    for known in (False, None):
        fixed = match(_told({"w": replace(LOOSE, drawn=known)}), theirs)
        assert not fixed.mismatches
        assert [m.namesake for m in fixed.missing] == [replace(B, registered=False)]


def test_p1_a_tensor_without_bits_decides_nothing() -> None:
    opaque = Facts("float32", (3,), None)
    found = match(_told({"w": A, "v": opaque}), _told({"w": opaque, "v": A}))
    assert found.passed_over == {"w": "opaque", "v": "opaque"}
    assert found.settled


def test_p2_any_name_will_do() -> None:
    found = match(_told({"gain": A}), _told({"weight": replace(A, registered=False)}))
    assert found.matched == {"gain": "weight"}
    assert found.settled


def test_p2_transposed_matrices_will_do() -> None:
    found = match(_told({"w": _facts("ab", (2, 3))}), _told({"wt": _facts("ba", (3, 2))}))
    assert found.matched == {"w": "wt"}


def test_p2_is_asked_of_every_tensor_without_namesake() -> None:
    found = match(_told({"a": A, "b": B, "c": _facts("ef")}), _told({"a": A, "x": B}))
    assert found.compared == ("a",)
    assert found.matched == {"b": "x"}
    assert [m.name for m in found.missing] == ["c"]


def test_p2_names_the_same_bits_in_another_shape() -> None:
    found = match(_told({"w": A}), _told({"x": _facts("ab", (1, 3))}))
    (missing,) = found.missing
    assert missing.reshaped == "x"


@pytest.mark.parametrize(
    ("ours", "theirs"), [(3, 2), (3, None), (None, 3)], ids=["shorter", "unordered", "ordered"]
)
def test_positions_count_only_in_sequences_of_one_length(
    ours: int | None, theirs: int | None
) -> None:
    names = {"layers.1.weight": A}
    found = match(
        _told(names, sequences={"layers": ours}),
        _told({"layers.1.weight": B, "layers.0.weight": A}, sequences={"layers": theirs}),
    )
    assert found.not_positional == ("layers.1.weight",)
    assert found.matched == {"layers.1.weight": "layers.0.weight"}
    same = match(
        _told(names, sequences={"layers": 3}),
        _told({"layers.1.weight": B, "layers.0.weight": A}, sequences={"layers": 3}),
    )
    assert [m.name for m in same.mismatches] == ["layers.1.weight"]


def test_positions_in_the_model_itself_and_in_nested_sequences() -> None:
    top = match(_told({"1.w": A}, sequences={"": 2}), _told({"1.w": B}, sequences={"": 3}))
    assert top.not_positional == ("1.w",)
    inner = match(
        _told({"a.0.1.w": A}, sequences={"a": 2, "a.0": 2}),
        _told({"a.0.1.w": B}, sequences={"a": 2, "a.0": 4}),
    )
    assert inner.not_positional == ("a.0.1.w",)


def test_statistics_that_only_a_run_changed_fail_nobody() -> None:
    ours = _told({"mean": A}, {"mean": B})
    # Neither an implementation that keeps them, nor one that only makes them when it runs.
    assert match(ours, _told({"mean": A})).settled
    assert match(ours, _told({"mean": A}, {"mean": _facts("ef")})).settled
    assert match(ours, _told({}, {"mean": B})).settled
    late = match(ours, _told({}, {"mean": _facts("ef")}))
    assert late.passed_over == {"mean": "run"}
    assert match(ours, _told({"mean": B})).mismatches


def test_weights_that_a_forward_makes() -> None:
    ours = _told({}, {"w": replace(LOOSE, drawn=True)})
    assert match(ours, _told({})).missing
    assert match(ours, _told({}, {"w": LOOSE})).compared == ("w",)
    assert match(ours, _told({"w": A})).compared == ("w",)
    (mismatch,) = match(ours, _told({}, {"w": replace(B, registered=False)})).mismatches
    assert mismatch.late_reference
    assert mismatch.late_implementation
    # A placeholder that the forward fills in.
    assert match(ours, _told({"w": B}, {"w": A})).compared == ("w",)


@pytest.mark.parametrize("why", ["input", "fresh", "unknown"])
def test_values_that_say_nothing_fail_nobody(why: str) -> None:
    found = match(_told({}, {"w": replace(LOOSE, volatile=why)}), _told({}, {"w": B}))
    assert found.passed_over == {"w": why}
    assert found.settled


_FACTS = st.builds(
    _facts,
    st.sampled_from(["ab", "ba", "cc"]),
    st.sampled_from([(2, 3), (3, 2), (6,)]),
    dtype=st.sampled_from(["float32", "int32"]),
    registered=st.booleans(),
    drawn=st.sampled_from([True, False, None]),
)
_SIDES = st.dictionaries(st.sampled_from("pqrst"), _FACTS, max_size=5)


def _equal(ours: Facts, theirs: Facts) -> bool:
    if ours.dtype != theirs.dtype:
        return False
    straight = ours.shape == theirs.shape and ours.digest == theirs.digest
    turned = len(ours.shape) == 2 and ours.shape == theirs.shape[::-1]
    return straight or (turned and ours.digest == (theirs.digest or "")[::-1])


@given(_SIDES, _SIDES)
def test_against_the_rules_spelled_out(ours: dict[str, Facts], theirs: dict[str, Facts]) -> None:
    found = match(_told(ours), _told(theirs))
    by_name = {n for n, f in ours.items() if n in theirs and _equal(f, theirs[n])}
    hard = {
        n for n, f in ours.items() if n in theirs and n not in by_name and (f.registered or f.drawn)
    }
    rest = set(ours) - by_name - hard
    held = {n for n in rest if any(_equal(ours[n], other) for other in theirs.values())}
    assert set(found.compared) == by_name
    assert {m.name for m in found.mismatches} == hard
    assert set(found.matched) == held
    assert {m.name for m in found.missing} == rest - held
    assert all(_equal(ours[name], theirs[other]) for name, other in found.matched.items())
    assert found.settled == (not hard and rest == held)

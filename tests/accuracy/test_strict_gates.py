"""The gates beyond the standard against a slow oracle: Python floats, element by element."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.strictness import gates
from pytest_tritonverify.strictness.formats import format_of
from pytest_tritonverify.strictness.limits import StrictLimits
from pytest_tritonverify.strictness.measuring import Measured, Reference, measure, size_up
from pytest_tritonverify.strictness.pieces import pieces, wide
from pytest_tritonverify.strictness.slices import SliceTally

# Typed anew: rtol, atol, limit of a single element, u, smallest subnormal, error ratio, bias.
ROWS: dict[str, tuple[float, float, float, float, float, float, float]] = {
    "float32": (2**-10, 2**-16, 1e-2, 2**-24, 2**-149, 16.0, 4.0),
    "float16": (2**-9, 2**-9, 1e-1, 2**-11, 2**-24, 4.0, 0.25),
    "bfloat16": (2**-6, 2**-6, 1.0, 2**-8, 2**-133, 4.0, 0.25),
    "float64": (2**-13, 1e-3, 1e-3, 2**-53, 2**-1074, 16.0, 4.0),
}
LIMITS = StrictLimits(slice_elements=2)


@dataclass(frozen=True)
class Expected:
    """What the oracle says."""

    matched: int
    judged: int
    severity: float
    error: float
    own_error: float
    bias: float
    own_bias: float
    base: float
    bias_limit: float
    slices: dict[str, tuple[int, int]]


def oracle(
    shape: tuple[int, ...], own: list[float], exact: list[float], got: list[float], name: str
) -> Expected:
    rtol, atol, limit, u, subnormal, ratio, offset = ROWS[name]
    kept = [
        at for at in range(len(own)) if all(math.isfinite(side[at]) for side in (own, exact, got))
    ]
    # The golden's size leaves out only what is not finite in a golden.
    sized = [at for at in range(len(own)) if math.isfinite(own[at]) and math.isfinite(exact[at])]
    count = len(kept)
    rms = math.sqrt(math.fsum(exact[at] ** 2 for at in sized) / len(sized)) if sized else 0.0
    greatest = max((abs(exact[at]) for at in sized), default=0.0)
    magnitude = math.fsum(abs(exact[at]) for at in sized)
    own_squares = math.fsum((own[at] - exact[at]) ** 2 for at in sized)
    scaled = max(min(atol, rms * rtol), subnormal)
    scaled += ratio * math.sqrt(own_squares / max(len(sized), 1))
    cap = min(limit, 64 * u * greatest + scaled)
    failing, severity = [], 0.0
    for at in kept:
        error, reference = abs(got[at] - exact[at]), abs(own[at] - exact[at])
        tolerance = scaled + rtol * abs(exact[at])
        if error > tolerance + reference:
            failing.append(at)
        severity = max(severity, error / (max(cap, 4 * tolerance) + reference))
    indices = list(itertools.product(*(range(extent) for extent in shape)))
    slices: dict[str, tuple[int, int]] = {}
    for at in kept:
        for axis in range(len(shape)):
            names = [":"] * len(shape)
            names[axis] = str(indices[at][axis])
            slices.setdefault(f"[{', '.join(names)}]", (0, 0))
        slices.setdefault(f"[{', '.join(map(str, indices[at][:-1]))}, :]", (0, 0))
    for name_ in slices:
        where = name_.strip("[]").split(", ")
        inside = [
            at
            for at in kept
            if all(part in (":", str(i)) for part, i in zip(where, indices[at], strict=True))
        ]
        slices[name_] = sum(at in failing for at in inside), len(inside)

    def squares(side: list[float]) -> float:
        return math.sqrt(math.fsum((side[at] - exact[at]) ** 2 for at in kept) / max(count, 1))

    def signed(side: list[float]) -> float:
        if not magnitude:
            return 0.0
        errors = ((side[at] - exact[at]) * math.copysign(exact[at] != 0, exact[at]) for at in kept)
        return math.fsum(errors) / magnitude

    base = max(squares(own), 0.58 * u * rms, 0.3 * subnormal)
    scatter = base * math.sqrt(count) / magnitude if magnitude else 0.0
    return Expected(
        matched=count - len(failing),
        judged=count,
        severity=severity,
        error=squares(got),
        own_error=squares(own),
        bias=signed(got),
        own_bias=signed(own),
        base=base,
        bias_limit=max(ratio * abs(signed(own)), 4 * scatter + offset * u),
        slices=slices,
    )


@st.composite
def outputs(draw: st.DrawFn) -> tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw a format, a precise golden, the reference's output and an implementation's."""
    name = draw(st.sampled_from(sorted(ROWS)))
    dtype = getattr(torch, name)
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=3)))
    count = math.prod(shape)
    scale = draw(st.sampled_from([1e-6, 1e-2, 1.0, 300.0]))
    numbers = st.floats(-1, 1).map(lambda number: round(number, 12))
    exact = [scale * x for x in draw(st.lists(numbers, min_size=count, max_size=count))]
    noise = st.sampled_from([0.0, 0.0, 0.0, 1e-7, 1e-3, -1e-2, 1.0, math.inf, math.nan])
    wrong = draw(st.lists(noise, min_size=count, max_size=count))
    precise = torch.tensor(exact, dtype=torch.float64).reshape(shape)
    own = precise.to(dtype)
    actual = (own.double() + scale * torch.tensor(wrong, dtype=torch.float64).reshape(shape)).to(
        dtype
    )
    return name, precise, own, actual


@settings(max_examples=80, deadline=None)
@given(outputs())
def test_gates_agree_with_the_oracle(
    drawn: tuple[str, torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    name, precise, own, actual = drawn
    reference = Reference(own, precise)
    golden = size_up(reference)
    measured = measure(reference, golden, actual, LIMITS)
    shape = tuple(own.shape)
    left, middle, right = (side.double().flatten().tolist() for side in (own, precise, actual))
    expected = oracle(shape, left, middle, right, name)
    assert (measured.judged, measured.matched) == (expected.judged, expected.matched)
    assert measured.error == pytest.approx(expected.error, rel=1e-9, abs=1e-300)
    assert measured.own_error == pytest.approx(expected.own_error, rel=1e-9, abs=1e-300)
    assert measured.bias == pytest.approx(expected.bias, rel=1e-6, abs=1e-12)
    assert measured.own_bias == pytest.approx(expected.own_bias, rel=1e-6, abs=1e-12)
    severity = measured.worst.severity if measured.worst else 0.0
    assert severity == pytest.approx(expected.severity, rel=1e-9)
    shares = {s: f / n for s, (f, n) in expected.slices.items() if n >= LIMITS.slice_elements}
    worst = measured.worst_slice
    assert (worst.share if worst else 0.0) == pytest.approx(max(shares.values(), default=0.0))
    if worst is not None:
        assert expected.slices[worst.name] == (worst.failing, worst.judged)

    verdicts = {gate.name: gate for gate in gates.judge(measured, LIMITS)}
    matched = expected.matched >= Fraction(99, 100) * expected.judged
    assert verdicts["elements"].holds is matched
    assert verdicts["slices"].holds is (max(shares.values(), default=0.0) <= 0.1)
    assume(abs(expected.severity - 1) > 1e-9)
    assert verdicts["cap"].holds is (expected.severity <= 1)
    assume(expected.base > 0)
    ratio = expected.error / expected.base
    allowed = ROWS[name][5]
    assume(abs(ratio - allowed) > 1e-6 * allowed)
    assert verdicts["error_ratio"].holds is (ratio <= allowed)
    assume(abs(abs(expected.bias) - expected.bias_limit) > 1e-6 * expected.bias_limit + 1e-12)
    if any(precise.flatten().tolist()):
        assert verdicts["bias"].holds is (abs(expected.bias) <= expected.bias_limit)


@settings(max_examples=50, deadline=None)
@given(outputs(), st.booleans())
def test_the_references_own_output_passes_every_gate(
    drawn: tuple[str, torch.Tensor, torch.Tensor, torch.Tensor], known: bool
) -> None:
    _, precise, _, own = drawn
    # However wrong the reference is.
    reference = Reference(own, precise) if known else Reference(own, own, "nothing else is known")
    measured = measure(reference, size_up(reference), own.clone(), LIMITS)
    for limits in (StrictLimits(), StrictLimits(error_ratio=1, error_ratio_low=1, bias_errors=0)):
        verdicts = gates.judge(measured, limits)
        assert all(gate.holds is not False for gate in verdicts), verdicts
        applied = {gate.name for gate in verdicts if gate.holds is not None}
        assert applied == {g.__name__ for g in gates.GATES} - (
            set() if known else {"error_ratio", "bias"}
        )


def judged(
    golden: torch.Tensor, precise: torch.Tensor, actual: torch.Tensor, **limits: Any
) -> dict[str, bool | None]:
    reference = Reference(golden, precise)
    chosen = StrictLimits(**limits)
    measured = measure(reference, size_up(reference), actual, chosen)
    return {gate.name: gate.holds for gate in gates.judge(measured, chosen)}


def broken(
    golden: torch.Tensor, precise: torch.Tensor, actual: torch.Tensor, **limits: Any
) -> set[str]:
    return {name for name, holds in judged(golden, precise, actual, **limits).items() if not holds}


@pytest.fixture
def normal() -> torch.Tensor:
    torch.manual_seed(5)
    return torch.randn(128, 100, dtype=torch.float64)


def test_each_gate_finds_what_it_is_there_for(normal: torch.Tensor) -> None:
    golden = normal.half()
    shaken = golden.clone()
    shaken.view(-1)[::71] *= 1.02
    assert {"elements"} < broken(golden, normal, shaken) < {"elements", "error_ratio", "bias", ""}
    row = golden.clone()
    row[-1] = 0
    assert {"slices", "cap", "error_ratio"} <= broken(golden, normal, row)
    single = golden.clone()
    single[3, 7] += 0.2
    assert "cap" in broken(golden, normal, single)
    assert "slices" not in broken(golden, normal, single)
    scaled = (normal.bfloat16().float() * 0.99).bfloat16()
    assert "bias" in broken(normal.bfloat16(), normal, scaled)
    inside = normal.half().float()
    assert "error_ratio" in broken(normal.float(), normal, inside)


def test_each_threshold_can_be_set(normal: torch.Tensor) -> None:
    golden = normal.half()
    # A reference without an error of its own, which nothing is scaled with.
    exact = golden.double()
    row = golden.clone()
    row[-1] = 0
    loose = {"slice_failing": 1.0, "error_ratio_low": 1e6, "cap_tolerances": 1e6}
    loose["bias_roundoffs_low"] = 1e6
    assert broken(golden, exact, row, **loose) == set()
    assert broken(golden, exact, row, **loose, matched_ratio=1.0) == {"elements"}
    assert broken(golden, exact, row, **(loose | {"slice_failing": 0.5})) == {"slices"}
    assert broken(golden, exact, row, **(loose | {"cap_tolerances": 4.0})) == {"cap"}
    few = {"slice_failing": 0.5, "slice_elements": 1e6}
    assert broken(golden, exact, row, **(loose | few)) == set()
    scaled = (golden.float() * 0.99).half()
    unbiased = {"bias_roundoffs_low": 100.0, "error_ratio_low": 1e6}
    assert "bias" in broken(golden, normal, scaled)
    assert "bias" not in broken(golden, normal, scaled, **unbiased)
    inside = normal.half().float()
    assert broken(normal.float(), normal, inside, error_ratio=1e5) == set()
    assert "cap" in broken(normal.float(), normal, row.float(), cap_roundoffs=0.0)


def test_outputs_below_the_standards_tolerance_are_judged(normal: torch.Tensor) -> None:
    tiny = normal * 1e-7
    golden = tiny.float()
    assert broken(golden, tiny, torch.zeros_like(golden)) >= {"elements", "cap", "error_ratio"}
    assert broken(golden, tiny, golden * (1 + 2**-23)) == set()


def test_subnormal_outputs_are_not_asked_for_more_than_they_can_say() -> None:
    exact = torch.linspace(-5, 5, 401, dtype=torch.float64).reshape(1, -1) * 2**-24
    golden = exact.half()
    truncated = (exact / 2**-24).trunc().mul(2**-24).half()
    assert broken(golden, exact, golden) == set()
    assert "elements" not in broken(golden, exact, truncated)


def test_complex_outputs_are_judged_by_their_parts() -> None:
    torch.manual_seed(1)
    exact = torch.randn(40, 30, dtype=torch.complex128)
    golden = exact.to(torch.complex64)
    assert broken(golden, exact, golden.clone()) == set()
    wrong = golden.clone()
    wrong[:, 4] = wrong[:, 4].conj()
    assert {"slices", "cap", "error_ratio"} <= broken(golden, exact, wrong)
    assert broken(golden, exact, golden.conj().resolve_conj().conj()) == set()


def test_elements_without_a_value_count_for_nothing(normal: torch.Tensor) -> None:
    golden, exact = normal.float(), normal.clone()
    for side in (golden, exact):
        side[:, 20:] = -math.inf
        side[5, :3] = math.nan
    actual = golden.clone()
    assert broken(golden, exact, actual) == set()
    actual[7, :5] += 1.0
    reference = Reference(golden, exact)
    measured = measure(reference, size_up(reference), actual, StrictLimits())
    assert measured.worst_slice is not None
    assert (measured.worst_slice.name, measured.worst_slice.judged) == ("[7, :]", 20)
    nothing = torch.full((4, 9), math.nan)
    assert set(judged(nothing, nothing.double(), nothing).values()) == {True}


def test_huge_numbers_do_not_overflow() -> None:
    torch.manual_seed(0)
    golden = torch.randn(20, 20, dtype=torch.float64) * 1e307
    reference = Reference(golden, golden, "none")
    size = size_up(reference)
    assert size.rms == pytest.approx(float((golden / 1e307).square().mean().sqrt()) * 1e307)
    measured: Measured = measure(reference, size, -golden, StrictLimits())
    assert math.isfinite(measured.error)
    assert measured.matched < 10


SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


@settings(max_examples=50, deadline=None)
@given(SHAPES, st.sampled_from([2, 4, 6, 10, 64]), st.booleans(), st.booleans())
def test_pieces_cover_every_number_once_in_order(
    shape: tuple[int, ...], size: int, complex_: bool, strided: bool
) -> None:
    count = math.prod(shape)
    values = torch.arange(count, dtype=torch.float32).reshape(shape)
    if complex_:
        values = torch.complex(values, values + 0.5)
    other = values.flip(0).contiguous().flip(0)
    if strided:
        other = other.transpose(0, -1).contiguous().transpose(0, -1)
    flat = (torch.view_as_real(values) if complex_ else values).flatten()
    at = 0
    for start, (left, right) in pieces((values, other), size):
        assert start == at
        assert 0 < left.numel() <= max(size, 2)
        assert torch.equal(left, right)
        assert torch.equal(left, flat[start : start + left.numel()])
        at += left.numel()
    assert at == flat.numel()
    assert wide(flat).dtype == torch.float64


@settings(max_examples=80, deadline=None)
@given(st.data(), SHAPES, st.sampled_from([2, 6, 10, 64]), st.integers(1, 4))
def test_the_worst_slice_does_not_depend_on_the_pieces(
    data: st.DataObject, shape: tuple[int, ...], size: int, fewest: int
) -> None:
    count = math.prod(shape)
    state = st.sampled_from(["ok", "fail", "skip"])
    states = data.draw(st.lists(state, min_size=count, max_size=count))
    tally = SliceTally(shape, 1, StrictLimits(slice_elements=fewest))
    for start, (piece,) in pieces((torch.zeros(shape),), size):
        inside = range(start, start + piece.numel())
        failing, skipped = (
            torch.tensor([at for at in inside if states[at] == wanted], dtype=torch.int64)
            for wanted in ("fail", "skip")
        )
        tally.add(failing, skipped, start, piece.numel())
    shares: dict[object, tuple[int, int, int]] = {}
    indices = list(itertools.product(*(range(extent) for extent in shape)))
    for at, index in enumerate(indices):
        keys: list[tuple[object, ...]] = [(axis, index[axis]) for axis in range(len(shape))]
        for key in [*keys, ("row", index[:-1])] if len(shape) > 1 else []:
            fails, judged_, every = shares.get(key, (0, 0, 0))
            shares[key] = (
                fails + (states[at] == "fail"),
                judged_ + (states[at] != "skip"),
                every + 1,
            )
    found = [f / n for f, n, _ in shares.values() if n >= fewest]
    worst = tally.finish()
    single = [shape[axis] == 1 for axis in range(len(shape))]
    if not any(single):
        assert (worst.share if worst else 0.0) == pytest.approx(max(found, default=0.0))
    elif worst is not None:
        assert worst.share <= max(found)


def test_formats_are_those_of_the_tables() -> None:
    for name, (rtol, atol, limit, u, subnormal, *_) in ROWS.items():
        form = format_of(getattr(torch, name))
        assert (form.rtol, form.atol, form.cap) == (rtol, atol, limit)
        assert (form.roundoff, form.subnormal) == (u, subnormal)
        assert form.narrow is (name in ("float16", "bfloat16"))

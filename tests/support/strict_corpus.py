"""A corpus of wrong and honest outputs, and how the standard and the strict rule judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.strictness.formats import format_of
from pytest_tritonverify.strictness.scrutiny import scrutinise
from tests.support.strict_operators import OPERATORS, Operator, half_accumulator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_FLOATS = infer_input_type([torch.zeros(1)])
_TILE = 16
# Below so many unit roundoffs of the golden's size an output is as right as any.
_RIGHT = 1.0


@dataclass(frozen=True)
class Sample:
    """An output of the corpus; `right` says what a rule should say of it."""

    operator: str
    dtype: torch.dtype
    kind: str
    right: bool
    golden: Tensor
    precise: Tensor
    actual: Tensor


@dataclass(frozen=True)
class Outcome:
    """How a sample was judged: accepted by the standard, and by the strict rule."""

    sample: Sample
    standard: bool
    strict: bool
    warned: bool
    gates: tuple[str, ...]


def faults(golden: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield outputs that are wrong whatever the operator is."""
    wide = golden.float()
    yield "zeros", torch.zeros_like(golden)
    yield "mean everywhere", torch.full_like(golden, float(wide.mean()))
    yield "permuted", golden.flatten()[torch.randperm(golden.numel())].view_as(golden)
    yield "rolled by one", golden.roll(1, -1)
    yield "x 0.99", (wide * 0.99).to(golden.dtype)
    yield "noise of 1 %", (wide * (1 + 0.01 * torch.randn_like(wide))).to(golden.dtype)
    if golden.dim() == 1:
        yield "tail unwritten", _blanked(golden, (slice(-max(1, golden.numel() // 128), None),))
        return
    yield "last row unwritten", _blanked(golden, (-1,) * (golden.dim() - 1))
    yield "last column unwritten", _blanked(golden, (..., -1))
    yield "one tile unwritten", _blanked(golden, (..., slice(_TILE, 2 * _TILE), slice(0, _TILE)))
    if golden.dim() > 2:
        yield "one slice unwritten", _blanked(golden, (..., 3, slice(None), slice(None)))


def _blanked(golden: Tensor, index: tuple[Any, ...]) -> Tensor:
    out = golden.clone()
    out[index] = 0
    return out


def corpus(seed: int, operators: Iterable[Operator] = OPERATORS) -> Iterator[Sample]:
    """Generate all samples of a seed."""
    for operator in operators:
        torch.manual_seed(seed)
        inputs = operator.inputs()
        for dtype in DTYPES:
            given = tuple(value.to(dtype) for value in inputs)
            precise = operator.compute(*(value.double() for value in given))
            golden = operator.compute(*given)
            for right, outputs in (
                (True, _honest(operator, given, golden, precise)),
                (False, _wrong(operator, given, golden)),
            ):
                for kind, actual in outputs:
                    yield Sample(
                        operator.name, dtype, kind, right, golden, precise, actual.to(dtype)
                    )


def _honest(
    operator: Operator, given: tuple[Tensor, ...], golden: Tensor, precise: Tensor
) -> Iterator[tuple[str, Tensor]]:
    narrow = golden.dtype != torch.float32
    # A kernel computes in float32 whatever it loads.
    loaded = tuple(value.float() for value in given)
    yield "the reference itself", golden
    yield "float64, rounded", precise
    if narrow:
        yield "float32 inside", operator.compute(*loaded)
    for name, compute in operator.honest:
        yield f"reordered: {name}", compute(*loaded)
        if narrow:
            yield f"half precision throughout: {name}", compute(*given)


def _wrong(
    operator: Operator, given: tuple[Tensor, ...], golden: Tensor
) -> Iterator[tuple[str, Tensor]]:
    yield from faults(golden)
    for name, compute in operator.wrong:
        yield f"wrong algorithm: {name}", compute(*(value.float() for value in given))
    if golden.dtype == torch.float32:
        for low in (torch.float16, torch.bfloat16):
            inside = operator.compute(*(value.to(low) for value in given))
            yield "float32 task in half precision", inside
    if operator.name == "matmul" and golden.dtype != torch.bfloat16:
        yield "wrong algorithm: half-precision accumulator", half_accumulator(given[0], given[1])


def is_crude(sample: Sample) -> bool:
    """Tell whether every intermediate result was rounded to half precision."""
    return "throughout" in sample.kind


def is_real(sample: Sample) -> bool:
    """Tell whether a wrong output is wrong: beyond what rounding explains."""
    if sample.right:
        return True
    exact, own = sample.precise, sample.golden.double()
    differs = sample.actual.double() - own
    if not bool(torch.isfinite(differs).all()) or not bool(differs.any()):
        return bool(differs.any())
    changed = differs[differs != 0]
    form = format_of(sample.dtype)
    error = float(changed.square().mean().sqrt())
    reference = float((own - exact).square().mean().sqrt())
    size = float(exact.square().mean().sqrt())
    return error > _RIGHT * max(form.roundoff * size, reference, form.subnormal)


def judge(sample: Sample) -> Outcome:
    """Judge a sample by both rules."""
    verdict = judge_outputs(sample.golden, sample.actual, input_type=_FLOATS, rules=Rules())
    if not verdict.passed:
        return Outcome(sample, standard=False, strict=False, warned=False, gates=())
    (output,) = verdict.outputs
    found = scrutinise(output, sample.golden, sample.actual, ("float64", sample.precise))
    assert found is not None
    broken = tuple(gate.name for gate in found.broken)
    return Outcome(sample, standard=True, strict=not broken, warned=bool(found.nulls), gates=broken)

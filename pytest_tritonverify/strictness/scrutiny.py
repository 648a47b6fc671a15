"""One output, scrutinised: the gates, and the null candidates that pass like the output itself."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.accuracy.prechecks import detached, value_of
from pytest_tritonverify.strictness import gates
from pytest_tritonverify.strictness.formats import format_of
from pytest_tritonverify.strictness.limits import NULL_ERRORS, StrictLimits
from pytest_tritonverify.strictness.measuring import Reference, measure, size_up
from pytest_tritonverify.strictness.nulls import (
    FLOAT_CATEGORIES,
    accepted_floats,
    accepted_integers,
)

if TYPE_CHECKING:
    import torch

    from pytest_tritonverify.accuracy.verdict import OutputVerdict
    from pytest_tritonverify.strictness.gates import Gate

NON_DISCRIMINATING = "non_discriminating"
FLOAT64 = "float64"
FLOAT32 = "float32"
REFERENCE = "reference"


@dataclass(frozen=True)
class Scrutiny:
    """What was found about an output that the standard has accepted.

    Attributes:
        golden: What the gates compared with: `float64` or `float32`, the precision that the
            reference was run with, or `reference`, its own output.
        missing: Why it was that; empty where there was a more precise one.
        gates: What each gate says; none for integers and booleans.
        nulls: Names of null candidates that pass the standard and all gates.
        weak: Names of those that pass the standard. What is as near to the precise golden as
            the reference is no wrong output: zeros where the golden is zero but for rounding.
    """

    golden: str
    missing: str
    gates: tuple[Gate, ...]
    nulls: tuple[str, ...]
    weak: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[Gate, ...]:
        """The gates that don't let the output pass."""
        return tuple(gate for gate in self.gates if gate.holds is False)

    def to_json(self) -> dict[str, object]:
        """Return the scrutiny for the result file."""
        return {
            "golden": self.golden,
            "missing": self.missing or None,
            "gates": [gate.to_json() for gate in self.gates],
            "null_candidates": list(self.nulls),
        }


def weaknesses(verdict: OutputVerdict, golden: object) -> tuple[str, ...]:
    """Return the names of the null candidates that the standard would accept for an output.

    Args:
        verdict: The standard's, on an output that it has accepted.
        golden: The reference's tensor or number.

    Returns:
        None where the rule is exact, where nothing was measured, and where no candidate is wrong.
    """
    tensor = _tensor(golden)
    if not verdict.passed or tensor is None:
        return ()
    if verdict.category in FLOAT_CATEGORIES:
        finite = verdict.metrics["total_finite"]
        assert isinstance(finite, int)  # noqa: S101 - as the metrics document it
        return tuple(null.name for null in accepted_floats(tensor, finite))
    if verdict.category == "quant_fp_to_int":
        tolerance = verdict.metrics["tolerance"]
        assert isinstance(tolerance, int)  # noqa: S101 - as above
        return tuple(accepted_integers(tensor, tolerance))
    return ()


def scrutinise(
    verdict: OutputVerdict,
    golden: object,
    actual: object,
    precise: tuple[str, object] | str,
    limits: StrictLimits | None = None,
) -> Scrutiny | None:
    """Apply the gates to an output that the standard has accepted.

    Null candidates are scored by what decides here: the standard and the gates. One that the
    standard alone accepts does no harm.

    Args:
        verdict: The standard's.
        golden: The reference's tensor or number.
        actual: The implementation's.
        precise: A precision and the reference's tensor or number computed in it; or why there
            is none.
        limits: The thresholds; the defaults where it is None.

    Returns:
        What was found; None for an output that has no rule with a tolerance, or is empty.
    """
    limits = limits or StrictLimits()
    expected, got = _tensor(golden), _tensor(actual)
    if not verdict.passed or expected is None or expected.numel() == 0:
        return None
    if verdict.category == "quant_fp_to_int":
        names = weaknesses(verdict, golden)
        return Scrutiny(REFERENCE, "", (), nulls=names, weak=names)
    if verdict.category not in FLOAT_CATEGORIES or got is None:
        return None
    kind, reference = _reference(expected, precise)
    size = size_up(reference)
    if not size.trusted:
        text = (
            f"the reference's output is not what its model computes in {kind}, so neither tells "
            "how precise the other is"
        )
        kind, reference = REFERENCE, Reference(expected, expected, text)
        size = size_up(reference)
    found = gates.judge(measure(reference, size, got, limits), limits)
    finite = verdict.metrics["total_finite"]
    assert isinstance(finite, int)  # noqa: S101 - as the metrics document it
    passing = []
    weak = accepted_floats(expected, finite)
    wrong = []
    for null in weak:
        measured = measure(reference, size, expected, limits, null.piece)
        if not reference.missing and measured.error <= NULL_ERRORS * gates.base_error(measured):
            continue
        wrong.append(null.name)
        if all(gate.holds is not False for gate in gates.judge(measured, limits)):
            passing.append(null.name)
    return Scrutiny(
        golden=kind,
        missing=reference.missing,
        gates=tuple(found),
        nulls=tuple(passing),
        weak=tuple(wrong),
    )


def _reference(golden: torch.Tensor, precise: tuple[str, object] | str) -> tuple[str, Reference]:
    """Return what to compare with: the precise golden where it is one."""
    if isinstance(precise, str):
        return REFERENCE, Reference(golden, golden, precise)
    kind, value = precise
    exact = _tensor(value)
    if exact is None or exact.shape != golden.shape:
        return REFERENCE, Reference(
            golden, golden, f"in {kind} the reference returns no such tensor"
        )
    if _precision(exact.dtype) <= _precision(golden.dtype):
        text = f"the reference has no more precise output: in {kind} it returns {exact.dtype}"
        return REFERENCE, Reference(golden, golden, text)
    return kind, Reference(golden, exact)


def _precision(dtype: torch.dtype) -> float:
    return -format_of(dtype).roundoff


def _tensor(value: object) -> torch.Tensor | None:
    return detached(value_of(value)).tensor


def describe_nulls(path: str, nulls: tuple[str, ...]) -> str:
    """Return the warning that the standard accepts null candidates for an output."""
    return (
        f"{path}: the accuracy standard can't tell a right output from a wrong one here: it would "
        f"accept {_listed(nulls)}"
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def objections(verdict: OutputVerdict, scrutiny: Scrutiny) -> list[str]:
    """Return what keeps an output from passing: one text for each broken gate, then nulls."""
    found = [f"gate `{gate.name}`: {gate.text}" for gate in scrutiny.broken]
    if scrutiny.nulls:
        text = (
            f"`{NON_DISCRIMINATING}`: {_listed(scrutiny.nulls)} would pass the standard and every "
            "gate, too, so that this case shows nothing; give it larger or more varied outputs"
        )
        if scrutiny.missing and verdict.category in FLOAT_CATEGORIES:
            text += f" (two gates were not applied: {scrutiny.missing})"
        found.append(text)
    return found


def turned_down(verdict: OutputVerdict, texts: list[str]) -> OutputVerdict:
    """Return the verdict on an output that passes the standard and nothing beyond it."""
    where = verdict.message.partition(" agrees with the golden")[0]
    head = f"{where} passes the accuracy standard but not the strict rule: {texts[0]}"
    return dataclasses.replace(
        verdict,
        passed=False,
        error_type="StrictnessError",
        message="\n".join((head, *(f"  {text}" for text in texts[1:]))),
    )

"""What is known and asked beyond the standard's verdict on a case: warnings, or failures.

Imports torch: only a judge with something to compare imports this module.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.accuracy import Caution
from pytest_tritonverify.accuracy.structure import ValuePair, pair_outputs
from pytest_tritonverify.strictness import scrutiny

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.accuracy import OutputVerdict
    from pytest_tritonverify.strictness.limits import StrictLimits

logger = logging.getLogger("pytest_tritonverify")

_FAILING_CAUTIONS = ("dtype_cast", "index_by_quantisation_rule")
STRICTNESS_ERROR = "StrictnessError"
INPUT_MUTATION = "InputMutation"


@dataclass(frozen=True)
class Strict:
    """What a strict verdict needs.

    Attributes:
        limits: the gates' thresholds.
        precision: what the more precise golden was computed in; None where there is none.
        golden: the unpacked `outputs` and `changed` of it.
        missing: why there is none.
    """

    limits: StrictLimits
    precision: str | None = None
    golden: Mapping[str, Any] | None = None
    missing: str = ""


@dataclass(frozen=True)
class Assurance:
    """What came of it.

    Attributes:
        outputs: the verdicts, some of them turned into failures.
        cautions: warnings to add.
        messages: one text for each new failure.
        error_type: the first new failure's name.
        scrutinies: what was found about outputs, for the result file, by path.
    """

    outputs: tuple[OutputVerdict, ...]
    cautions: tuple[Caution, ...] = ()
    messages: tuple[str, ...] = ()
    error_type: str | None = None
    scrutinies: dict[str, dict[str, object]] = field(default_factory=dict)


def weak_cases(
    outputs: Sequence[OutputVerdict], values: Mapping[str, tuple[Any, Any]]
) -> tuple[Caution, ...]:
    """Warn of outputs for which the standard can't tell right from wrong.

    Args:
        outputs: the verdicts; where one fails there is nothing to be said about passing.
        values: golden and actual tensor or number, by path.
    """
    if not all(output.passed for output in outputs):
        return ()
    try:
        return _weak_cases(outputs, values)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # A warning must not cost the verdict.
        logger.warning("null candidates could not be judged: %s", error, exc_info=True)
        return ()


def _weak_cases(
    outputs: Sequence[OutputVerdict], values: Mapping[str, tuple[Any, Any]]
) -> tuple[Caution, ...]:
    found = []
    for output in outputs:
        golden, _ = values.get(output.path, (None, None))
        nulls = () if golden is None else scrutiny.weaknesses(output, golden)
        if nulls:
            text = scrutiny.describe_nulls(output.path, nulls)
            found.append(Caution(scrutiny.NON_DISCRIMINATING, text))
    return tuple(found)


def assured(
    outputs: Sequence[OutputVerdict],
    values: Mapping[str, tuple[Any, Any]],
    cautions: Sequence[Caution],
    strict: Strict,
) -> Assurance:
    """Ask for more than the standard does.

    Args:
        outputs: the standard's verdicts.
        values: golden and actual tensor or number, by path.
        cautions: the warnings of the case.
        strict: the thresholds, and the more precise golden.
    """
    precise = _by_path(strict)
    found = Assurance(())
    for output in outputs:
        if output.path in values and output.passed:
            found = _with(
                found, output, values[output.path], _exact(output, precise, strict), strict
            )
        else:
            found = replace(found, outputs=(*found.outputs, output))
    if not all(output.passed for output in outputs):
        found = replace(found, cautions=())
    mutated = [caution for caution in cautions if caution.code == "input_mutated"]
    messages = [f"{INPUT_MUTATION}: {caution.message}" for caution in mutated]
    error_type = found.error_type or (INPUT_MUTATION if mutated else None)
    return replace(found, messages=(*found.messages, *messages), error_type=error_type)


def _with(
    found: Assurance,
    output: OutputVerdict,
    values: tuple[Any, Any],
    exact: tuple[str, object] | str,
    strict: Strict,
) -> Assurance:
    """Add what is to be said about one output that the standard has accepted."""
    golden, actual = values
    texts = [_as_failure(c) for c in output.cautions if c.code in _FAILING_CAUTIONS]
    seen = scrutiny.scrutinise(output, golden, actual, exact, strict.limits)
    if seen is not None:
        texts += scrutiny.objections(output, seen)
        scrutinies = found.scrutinies | {output.path: seen.to_json()}
        found = replace(found, scrutinies=scrutinies)
    if seen is not None and seen.weak:
        text = scrutiny.describe_nulls(output.path, seen.weak)
        text += "" if seen.nulls else "; the strict rule does not"
        caution = Caution(scrutiny.NON_DISCRIMINATING, text)
        found = replace(found, cautions=(*found.cautions, caution))
    if not texts:
        return replace(found, outputs=(*found.outputs, output))
    turned = scrutiny.turned_down(output, texts)
    return replace(
        found,
        outputs=(*found.outputs, turned),
        messages=(*found.messages, turned.message),
        error_type=found.error_type or STRICTNESS_ERROR,
    )


def _exact(
    output: OutputVerdict, precise: Mapping[str, Any], strict: Strict
) -> tuple[str, object] | str:
    """Return the more precise output with its precision, or why there is none."""
    if strict.precision is None:
        return strict.missing
    if output.path not in precise:
        return f"in {strict.precision} the reference has no such output"
    return strict.precision, precise[output.path]


def _as_failure(caution: Caution) -> str:
    return f"`{caution.code}`: {caution.message}"


def _by_path(strict: Strict) -> dict[str, Any]:
    """Return the precise tensors and numbers by the path of the output that they belong to."""
    if strict.golden is None:
        return {}
    outputs = strict.golden["outputs"]
    places = pair_outputs(outputs, outputs)
    found = {place.path: place.golden for place in places if isinstance(place, ValuePair)}
    found.update(strict.golden["changed"])
    return found

"""What is known and asked beyond the standard's verdict on a case: warnings, or failures.

Imports torch: only a judge with something to compare imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.accuracy import Caution
from pytest_tritonverify.accuracy.structure import ValuePair, pair_outputs
from pytest_tritonverify.strictness import scrutiny

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.accuracy import OutputVerdict
    from pytest_tritonverify.strictness.limits import StrictLimits

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
    judged, messages, scrutinies = [], [], {}
    error_type: str | None = None
    for output in outputs:
        if output.path not in values or not output.passed:
            judged.append(output)
            continue
        golden, actual = values[output.path]
        exact: Any = strict.missing
        if strict.precision is not None:
            exact = f"in {strict.precision} the reference has no such output"
            if output.path in precise:
                exact = strict.precision, precise[output.path]
        texts = [_as_failure(c) for c in output.cautions if c.code in _FAILING_CAUTIONS]
        found = scrutiny.scrutinise(output, golden, actual, exact, strict.limits)
        if found is not None:
            scrutinies[output.path] = found.to_json()
            texts += scrutiny.objections(output, found)
        if texts:
            turned = scrutiny.turned_down(output, texts)
            error_type = error_type or STRICTNESS_ERROR
            messages.append(turned.message)
            judged.append(turned)
        else:
            judged.append(output)
    for caution in cautions:
        if caution.code == "input_mutated":
            error_type = error_type or INPUT_MUTATION
            messages.append(f"{INPUT_MUTATION}: {caution.message}")
    return Assurance(tuple(judged), (), tuple(messages), error_type, scrutinies)


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

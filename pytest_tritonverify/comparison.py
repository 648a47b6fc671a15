"""Compare what an implementation returned with the golden.

Imports torch: only a judge with something to compare imports this module.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from pytest_tritonverify import finer_golden, gpu_task
from pytest_tritonverify.accuracy import (
    Caution,
    InputType,
    OutputsVerdict,
    OutputVerdict,
    Rules,
    infer_input_type,
    judge_outputs,
)
from pytest_tritonverify.accuracy.structure import ValuePair, pair_outputs
from pytest_tritonverify.assurance import Assurance, Strict, assured, weak_cases
from pytest_tritonverify.execution import running, tensors
from pytest_tritonverify.execution.wire import WireError, require_sealed
from pytest_tritonverify.explaining import Explanation, explain, spectra
from pytest_tritonverify.finer_golden import OWN
from pytest_tritonverify.reported import RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker_handle import Answer
    from pytest_tritonverify.settings import Settings
    from pytest_tritonverify.strictness.limits import StrictLimits

logger = logging.getLogger("pytest_tritonverify")

_NOTHING_KNOWN = RunFacts()
_Said = TypeVar("_Said")


@dataclass(frozen=True)
class Parcel:
    """A packed tree as it travelled: its description and its memory file."""

    spec: Message
    fd: int | None

    @classmethod
    def of(cls, answer: Answer) -> Parcel:
        """Return the result that a worker has answered.

        Raises:
            wire.WireError: there is none, or its memory could still change.
        """
        if answer.fd is not None:
            require_sealed(answer.fd)
        if "result" not in answer.message:
            raise WireError("there is no result in it")
        return cls(answer.message["result"], answer.fd)

    def open(self, *, bounded: bool = False) -> Any:
        """Map the tree privately.

        Args:
            bounded: refuse what takes long to look at, though it takes few bytes.

        Raises:
            wire.WireError: an untrusted sender described something that isn't there.
        """
        return tensors.unpack(self.spec, self.fd, bounded=bounded)


@dataclass(frozen=True)
class Finer:
    """A golden of a higher precision than the reference's own.

    Attributes:
        precision: what it was computed in.
        golden: `outputs` and `changed` of it.
    """

    precision: str
    golden: Parcel


@dataclass(frozen=True)
class Strictness:
    """What is asked for beyond the standard.

    Attributes:
        limits: thresholds of the gates.
        precision: what the more precise golden was computed in; None where there is none.
        golden: `outputs` and `changed` of it.
        missing: why there is none.
    """

    limits: StrictLimits
    precision: str | None = None
    golden: Parcel | None = None
    missing: str = ""


@dataclass(frozen=True)
class Comparison:
    """The verdict on one case: on its outputs, and on the inputs that both sides changed.

    `scrutinies` holds what was found beyond the standard, `errors` how large the errors are, by the
    output's path. `golden_precision` says what the golden was computed in.
    """

    outputs: tuple[OutputVerdict, ...]
    cautions: tuple[Caution, ...]
    error_type: str | None
    message: str
    metrics: dict[str, Any] | None
    explanations: dict[str, Explanation]
    scrutinies: dict[str, dict[str, object]] = dataclasses.field(default_factory=dict)
    golden_precision: str = OWN
    errors: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return self.error_type is None

    def entries(self) -> list[dict[str, Any]]:
        """Return the outputs' entries in a record."""
        return [self._entry(output) for output in self.outputs]

    def _entry(self, output: OutputVerdict) -> dict[str, Any]:
        explanation = self.explanations.get(output.path)
        return {
            "path": output.path,
            "passed": output.passed,
            "category": output.category,
            "dtype": output.dtype,
            "shape": list(output.shape) if output.shape is not None else None,
            "error_type": output.error_type,
            "metrics": dict(output.metrics) if output.metrics else None,
            "diagnosis": explanation.diagnosis.to_json() if explanation else None,
            "strictness": self.scrutinies.get(output.path),
            "errors": self.errors.get(output.path),
        }


def rules_of(settings: Settings, task: Path) -> Rules:
    """Return what a session's settings, and the task, say of the verdict."""
    return Rules(
        non_compute=settings.non_compute,
        exact_int=settings.exact_int,
        hf32=settings.hf32,
        stored=gpu_task.returns_stored_output(task),
    )


def compare(
    case: Parcel,
    golden: Parcel,
    actual: Parcel,
    rules: Rules,
    log: Callable[[str], None],
    facts: RunFacts = _NOTHING_KNOWN,
    strictness: Strictness | None = None,
    finer: Finer | None = None,
) -> Comparison:
    """Judge one case.

    Args:
        case: the call's arguments as they were handed to both sides.
        golden: `outputs` and `changed` of the reference.
        actual: the same of the implementation.
        rules: settings of the verdict.
        log: receives the documented log lines.
        facts: what is known of the implementation's run, for the explanation of a failure.
        strictness: what is asked for beyond the standard; None where nothing is.
        finer: a golden of a higher precision, which then decides.

    Raises:
        wire.WireError: the implementation's process sent something that is no result.
    """
    call = case.open()
    own, got = golden.open(), _result(actual.open(bounded=True))
    expected, refined = (own, False)
    if finer is not None:
        expected, refined = finer_golden.refined(own, finer.golden.open())
    values = [*call["args"], *call["kwargs"].values()]
    input_type = infer_input_type(values)
    log(input_type.log_line)
    main = judge_outputs(
        expected["outputs"], got["outputs"], input_type=input_type, rules=rules, log=log
    )
    verdicts = [main]
    mutated = _changed_on_both_sides(expected, got, call)
    for path, (wanted, found) in mutated.items():
        verdicts.append(_input_verdict(path, wanted, found, input_type, rules))
    cautions = [caution for verdict in verdicts for caution in verdict.cautions]
    if mutated:
        cautions = [caution for caution in cautions if caution.code != "nothing_compared"]
    changed = set(expected["changed"]), set(got["changed"]), set(mutated)
    cautions += [
        # Stored outputs change nothing, whatever the kernel does.
        caution
        for caution in _of_changed_inputs(*changed)
        if not (rules.stored and caution.code == "input_mutated")
    ]
    failed = [verdict for verdict in verdicts if not verdict.passed]
    outputs = tuple(output for verdict in verdicts for output in verdict.outputs)
    explanations: dict[str, Explanation] = {}
    pairs = _pairs(expected, got, call)
    if failed:
        tensors_in = [tensor for _, tensor in running.tensor_leaves(values, "")]
        explanations = _unless_it_fails(lambda: explain(outputs, pairs, tensors_in, facts))
    errors = {path: explanation.errors for path, explanation in explanations.items()}
    errors |= _unless_it_fails(lambda: spectra(outputs, pairs))
    # The gates ask by how much the reference's own output errs.
    held = _pairs(own, got, call) if refined and strictness is not None else pairs
    beyond = _beyond_the_standard(outputs, held, cautions, strictness)
    messages = [*(v.message for v in failed), *_told(explanations), *beyond.messages]
    return Comparison(
        outputs=beyond.outputs,
        cautions=(*cautions, *beyond.cautions),
        error_type=failed[0].error_type if failed else beyond.error_type,
        message="\n".join(messages),
        metrics=failed[0].metrics if failed else _first_metrics(main),
        explanations=explanations,
        scrutinies=beyond.scrutinies,
        golden_precision=finer.precision if finer is not None and refined else OWN,
        errors=errors,
    )


def _of_changed_inputs(golden: set[str], actual: set[str], compared: set[str]) -> list[Caution]:
    """Warn of inputs that one side alone changes.

    Args:
        golden: paths of those that the reference changes.
        actual: paths of those that the implementation changes.
        compared: paths of those that were judged as outputs.
    """
    cautions = []
    left_alone = ", ".join(sorted(golden - actual - compared))
    if left_alone:
        text = (
            f"the reference changes {left_alone}, which the implementation leaves alone: callers "
            "that go on with it would find other values"
        )
        cautions.append(Caution("input_not_mutated", text))
    only_here = ", ".join(sorted(actual - golden))
    if only_here:
        text = f"the implementation changes {only_here}, which the reference leaves alone"
        cautions.append(Caution("input_mutated", text))
    return cautions


def _pairs(
    expected: dict[str, Any], got: dict[str, Any], call: dict[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return golden's and implementation's value by path, for outputs and changed inputs."""
    places = pair_outputs(expected["outputs"], got["outputs"])
    pairs = {p.path: (p.golden, p.actual) for p in places if isinstance(p, ValuePair)}
    return pairs | _changed_on_both_sides(expected, got, call)


def _beyond_the_standard(
    outputs: tuple[OutputVerdict, ...],
    pairs: dict[str, tuple[Any, Any]],
    cautions: list[Caution],
    strictness: Strictness | None,
) -> Assurance:
    """Warn of what the standard can't see, or where that is asked for turn it into failures."""
    if strictness is None:
        return Assurance(outputs, weak_cases(outputs, pairs))
    golden = strictness.golden.open() if strictness.golden else None
    strict = Strict(strictness.limits, strictness.precision, golden, strictness.missing)
    return assured(outputs, pairs, cautions, strict)


def _unless_it_fails(describe: Callable[[], dict[str, _Said]]) -> dict[str, _Said]:
    """Describe outputs; a fault in the attempt must not cost the verdict."""
    try:
        return describe()
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        logger.warning("an output could not be explained: %s", error, exc_info=True)
        return {}


def _told(explanations: dict[str, Explanation]) -> list[str]:
    """Return the explanations as lines, under the output's name where there are several."""
    lines: list[str] = []
    for path, explanation in explanations.items():
        if len(explanations) > 1:
            lines.append(f"{path}:")
        lines += [f"  {line}" for line in explanation.lines()]
    return lines


def _first_metrics(verdict: OutputsVerdict) -> dict[str, Any] | None:
    return next((dict(o.metrics) for o in verdict.outputs if o.metrics), None)


def _result(tree: Any) -> dict[str, Any]:
    """Check the form of what an untrusted process sent as its result."""
    changed = tree.get("changed") if isinstance(tree, dict) else None
    if (
        not isinstance(changed, dict)
        or "outputs" not in tree
        or not all(isinstance(p, str) and isinstance(t, torch.Tensor) for p, t in changed.items())
    ):
        raise WireError("what came is no result")
    leaves = running.tensor_leaves([tree["outputs"], changed], "")
    tensors.require_modest(tensor for _, tensor in leaves)
    result: dict[str, Any] = tree
    return result


def _changed_on_both_sides(
    expected: dict[str, Any], got: dict[str, Any], call: dict[str, Any]
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return the inputs to compare as outputs: golden's and implementation's, by path.

    A reference that returns nothing speaks through the inputs that it changes; an
    implementation that left them alone is then judged by their original values.
    """
    golden, actual = expected["changed"], got["changed"]
    silent = not any(running.tensor_leaves(expected["outputs"], ""))
    original: dict[str, torch.Tensor] = {}
    if silent and golden:
        keyed = {**dict(enumerate(call["args"])), **call["kwargs"]}
        original = dict(running.tensor_leaves(keyed, "input"))
    return {
        path: (tensor, actual[path] if path in actual else original[path])
        for path, tensor in golden.items()
        if path in actual or path in original
    }


def _input_verdict(
    path: str, golden: torch.Tensor, actual: torch.Tensor, input_type: InputType, rules: Rules
) -> OutputsVerdict:
    verdict = judge_outputs(golden, actual, input_type=input_type, rules=rules)
    return dataclasses.replace(
        verdict,
        outputs=tuple(dataclasses.replace(o, path=path) for o in verdict.outputs),
        message=f"{path}, which both sides change: {verdict.message}",
    )

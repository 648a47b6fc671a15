"""The one entry point: judge all outputs of a case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tritonverify.accuracy.distances import integer_at
from pytest_tritonverify.accuracy.ecosystem import EcosystemTally
from pytest_tritonverify.accuracy.exact import (
    compare_bits,
    compare_bools,
    compare_integers,
    compare_python_integers,
)
from pytest_tritonverify.accuracy.floats import scan_floats
from pytest_tritonverify.accuracy.integer_cautions import off_by_one_cautions
from pytest_tritonverify.accuracy.limits import (
    FLOAT_FORMATS,
    cap_limits,
    eco_limits,
    npu_limits,
    row_format,
)
from pytest_tritonverify.accuracy.messages import (
    outputs_message,
    place,
    precheck_message,
    rule_message,
)
from pytest_tritonverify.accuracy.npu_benchmark import NpuBenchmarkTally
from pytest_tritonverify.accuracy.offenders import Addressing
from pytest_tritonverify.accuracy.prechecks import (
    Value,
    detached,
    dtype_cautions,
    dtype_problem,
    refusal,
    shape_problem,
    value_of,
)
from pytest_tritonverify.accuracy.routing import choose_route, route_log_lines
from pytest_tritonverify.accuracy.structure import Agreement, Disagreement, pair_outputs
from pytest_tritonverify.accuracy.verdict import Caution, Finding, OutputsVerdict, OutputVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pytest_tritonverify.accuracy.floats import FloatTally
    from pytest_tritonverify.accuracy.routing import InputType, Route
    from pytest_tritonverify.accuracy.rules import Rules
    from pytest_tritonverify.accuracy.structure import ValuePair


def judge_outputs(
    golden: object,
    actual: object,
    *,
    input_type: InputType,
    rules: Rules,
    log: Callable[[str], None] | None = None,
) -> OutputsVerdict:
    """Judge a forward's outputs against the golden ones.

    Both are trees of CPU tensors, Python numbers, str, None, lists, tuples, dicts and dataclass
    instances. Every output is judged whatever became of the others. Nothing is raised for what an
    implementation returned: that is a failing verdict.

    Args:
        golden: The reference's output.
        actual: The implementation's output.
        input_type: What the inputs are; see `infer_input_type`.
        rules: The options.
        log: Receives the documented log lines, one a call.

    Returns:
        The verdict, with one entry per output in the golden's order.
    """
    judge = _Judge(input_type, rules, log or _discard)
    places = list(pair_outputs(golden, actual))
    verdicts = [judge.place(entry) for entry in places]
    if all(isinstance(entry, Agreement) and not entry.compared for entry in places):
        text = f"{verdicts[0].path}: neither side returned anything that can be compared"
        verdicts[0] = replace(verdicts[0], cautions=(Caution("nothing_compared", text),))
    return OutputsVerdict(tuple(verdicts), outputs_message(verdicts))


def _discard(_line: str) -> None:
    """Drop a log line."""


class _Judge:
    """Judges one place at a time under fixed settings."""

    def __init__(self, input_type: InputType, rules: Rules, log: Callable[[str], None]) -> None:
        self._input_type = input_type
        self._rules = rules
        self._log = log

    def place(self, entry: ValuePair | Agreement | Disagreement) -> OutputVerdict:
        """Judge one place of the output trees."""
        if isinstance(entry, Agreement):
            return OutputVerdict(
                path=entry.path,
                passed=True,
                category=None,
                dtype=None,
                shape=None,
                error_type=None,
                message=f"{entry.path} agrees with the golden ({entry.what})",
                metrics={},
            )
        if isinstance(entry, Disagreement):
            return _rejected(entry.path, None, (entry.problem,))
        return self._values(entry.path, value_of(entry.golden), value_of(entry.actual))

    def _values(self, path: str, golden: Value, actual: Value) -> OutputVerdict:
        bits_only = self._rules.non_compute
        for side, value in (("the golden", golden), ("the output", actual)):
            reason = refusal(value, bits_only=bits_only)
            if reason is not None:
                known = None if value is golden else golden
                return _rejected(path, known, (f"{side} {reason}",))
        golden, actual = detached(golden), detached(actual)
        problem = shape_problem(golden, actual)
        problem = problem or dtype_problem(golden, actual, bits_only=bits_only)
        if problem is not None:
            return _rejected(path, golden, (problem,))
        route = choose_route(golden.dtype, golden.kind, self._input_type, self._rules)
        for line in route_log_lines(route, self._format_text(golden), self._input_type):
            self._log(line)
        cautions = dtype_cautions(path, golden, actual)
        if golden.tensor is None or actual.tensor is None:
            finding = compare_python_integers(
                _integer(golden),
                _integer(actual),
                route.tolerance,
                route.category,
                golden.dtype_text,
            )
            return _decided(path, golden, route, finding, cautions)
        if golden.tensor.numel() == 0:
            self._log("输出为空张量(numel=0),通过")
        if route.category in {"eco_open_source", "float_compute"}:
            return self._floats(path, golden, (golden.tensor, actual.tensor), route, cautions)
        finding = _exact_finding(golden.tensor, actual.tensor, route)
        cautions += off_by_one_cautions(path, golden.tensor, actual.tensor, route, finding)
        return _decided(path, golden, route, finding, cautions)

    def _format_text(self, golden: Value) -> str:
        """Return the golden's dtype as text, or the format that stands in for it."""
        name = golden.dtype_text.removeprefix("torch.")
        found = row_format(name, hf32=self._rules.hf32)
        return golden.dtype_text if found == name else found

    def _floats(
        self,
        path: str,
        golden: Value,
        tensors: tuple[torch.Tensor, torch.Tensor],
        route: Route,
        cautions: tuple[Caution, ...],
    ) -> OutputVerdict:
        expected, got = tensors
        addressing = Addressing(golden.shape, complex_parts=expected.is_complex())
        tally = tally_for(self._format_text(golden))
        nonfinite = scan_floats(expected, got, tally)
        problems = nonfinite.problems(addressing)
        if problems:
            return _rejected(path, golden, problems, cautions)
        if nonfinite.total and not nonfinite.finite:
            self._log(f"警告: 所有值都是非有限值(size={nonfinite.total}),跳过精度检查")
            text = f"{path}: no element is finite on both sides, so no accuracy was measured"
            cautions += (Caution("nothing_finite", text),)
        return _decided(path, golden, route, tally.finding(addressing), cautions)


def tally_for(dtype: torch.dtype | str) -> FloatTally:
    """Return the rule for a floating-point or complex golden, which has taken in nothing yet.

    Args:
        dtype: The golden's dtype, or the text of the format whose limits stand in for it.
    """
    name = str(dtype).removeprefix("torch.")
    limits = eco_limits(name)
    if limits is not None:
        return EcosystemTally(str(dtype), limits, FLOAT_FORMATS[name])
    return NpuBenchmarkTally(npu_limits(name), cap_limits(name))


def _exact_finding(golden: torch.Tensor, actual: torch.Tensor, route: Route) -> Finding:
    if route.category == "non_compute":
        return compare_bits(golden, actual)
    if route.category == "bool_output":
        return compare_bools(golden, actual)
    return compare_integers(golden, actual, route.tolerance, route.category)


def _integer(value: Value) -> int:
    """Return the integer that a Python int or a 0-d integer tensor holds."""
    if value.tensor is None:
        return value.integer or 0
    return integer_at(value.tensor.reshape(1), 0)


def _rejected(
    path: str,
    golden: Value | None,
    problems: Sequence[str],
    cautions: tuple[Caution, ...] = (),
) -> OutputVerdict:
    """Return the verdict on an output that a check before the rules turned down."""
    dtype = None if golden is None else golden.dtype_text
    shape = None if golden is None else golden.shape
    return OutputVerdict(
        path=path,
        passed=False,
        category=None,
        dtype=dtype,
        shape=shape,
        error_type="AssertionError",
        message=precheck_message(place(path, dtype, shape), problems),
        metrics={},
        cautions=cautions,
    )


def _decided(
    path: str, golden: Value, route: Route, finding: Finding, cautions: tuple[Caution, ...]
) -> OutputVerdict:
    """Return the verdict on an output that a rule decided."""
    where = place(path, golden.dtype_text, golden.shape)
    return OutputVerdict(
        path=path,
        passed=finding.passed,
        category=route.category,
        dtype=golden.dtype_text,
        shape=golden.shape,
        error_type=None if finding.passed else "AccuracyError",
        message=rule_message(where, route.category, finding),
        metrics=finding.metrics,
        cautions=cautions,
    )

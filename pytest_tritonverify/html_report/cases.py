"""A case as the page shows it: its verdict, its outputs, and what it costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.html_report import drawing, rules, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.html_report.drawing import Bar, HeatMap, Histogram
    from pytest_tritonverify.workflow.performance import Performance, Shape
    from pytest_tritonverify.workflow.verification import FailedCase, Verification

MOST_CASES = 300
"""Cases of one pair that are shown, failed ones first."""

_MOST_OUTPUTS = 12
_MOST_EVIDENCE = 8
_INPUTS = 160
# The lines of a picture in text, which the page draws.
_PICTURE = re.compile(r"^\s*(\|.*\||\+-+\+)$\n?|^.*\ba cell is up to .* fail$\n?", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast a case, or a pair, is.

    Attributes:
        factor: the speed-up; None where there is none.
        words: the same for people.
        times: both latencies, where they are known.
        bar: None where there is no speed-up.
    """

    factor: float | None
    words: str
    times: str
    bar: Bar | None


@dataclass(frozen=True, kw_only=True)
class Output:
    """An output of a case.

    Attributes:
        path, form: where it stands, and its dtype and shape.
        passed: the rule holds.
        route: the rule in words.
        sentence: what it has counted.
        cause: what is likely behind a failure.
        sure: the cause is clear, not only likely.
        region: where the failing elements lie.
        evidence: short facts.
        histogram, heat_map: its errors.
        sampled: how many of how many elements the two show; empty where it is all of them.
        gates: what was found beyond the standard, in words.
    """

    path: str
    form: str
    passed: bool
    route: str
    sentence: str
    cause: str
    sure: bool
    region: str
    evidence: tuple[str, ...]
    histogram: Histogram | None
    heat_map: HeatMap | None
    sampled: str
    gates: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case.

    Attributes:
        number: from 1; None for a failure that names none.
        passed: it counts as passed.
        inputs: what it was given.
        kind: the name of the failure.
        lead, message: the failure, in its first line and in the others.
        facts: where and on which side it failed, and other short facts.
        warnings: code and message of each.
        printed: the end of what the implementation printed.
        outputs: in order.
        more_outputs: how many are left out.
        speed: None where it was not measured.
        seconds: of its verification.
    """

    number: int | None
    passed: bool
    inputs: str
    kind: str = ""
    lead: str = ""
    message: str = ""
    facts: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    printed: str = ""
    outputs: tuple[Output, ...] = ()
    more_outputs: int = 0
    speed: Speed | None = None
    seconds: float | None = None

    @property
    def opens(self) -> bool:
        """Whether there is more to be seen than a line has room for."""
        more = self.warnings or self.printed or self.facts
        return not self.passed or bool(more) or len(self.outputs) > 1

    @property
    def errors(self) -> Histogram | None:
        """The first output's errors."""
        return next((o.histogram for o in self.outputs if o.histogram), None)

    @property
    def route(self) -> str:
        """The rules of its outputs, in words."""
        return ", ".join(dict.fromkeys(o.route for o in self.outputs if o.route))


def speed_of(
    factor: float | None, framework_ms: float | None, implementation_ms: float | None, span: float
) -> Speed:
    """Return how fast something is.

    Args:
        factor: the speed-up; None where there is none.
        framework_ms: the reference's latency in milliseconds.
        implementation_ms: the implementation's.
        span: as `drawing.bar` takes it.
    """
    known = framework_ms is not None and implementation_ms is not None
    return Speed(
        factor=factor,
        words="no speed-up" if factor is None else text.times(factor),
        times=f"{milliseconds(framework_ms)} → {milliseconds(implementation_ms)}" if known else "",
        bar=None if factor is None else drawing.bar(factor, span),
    )


def milliseconds(value: float | None) -> str:
    """Return a latency with three digits that count."""
    if value is None:
        return "-"
    if value >= 1000:  # noqa: PLR2004 - a second
        return f"{value / 1000:.3g} s"
    return f"{value:.3g} ms" if value >= 0.1 else f"{value * 1000:.3g} µs"  # noqa: PLR2004 - three digits


def of(
    result: Verification, report: Performance | None, span: float
) -> tuple[tuple[Case, ...], int]:
    """Return the cases of a result, in order, and how many are left out.

    Args:
        result: the verification's result.
        report: the benchmark's; None where there is none.
        span: as `drawing.bar` takes it.
    """
    failures: dict[int, FailedCase] = {}
    nameless: list[Case] = []
    for failure in result.failures:
        if failure.case_idx is None:
            nameless.append(_failed(None, failure, {}))
        else:
            failures.setdefault(failure.case_idx, failure)
    entries = result.cases
    shapes = report.shapes if report is not None else {}
    numbers = sorted({*entries, *failures, *shapes})
    bad = [n for n in numbers if result.status(n) == "fail"]
    good = [n for n in numbers if result.status(n) != "fail"]
    chosen = sorted([*bad, *good][:MOST_CASES])
    found = [
        _case(number, result, failures.get(number), shapes.get(number), span) for number in chosen
    ]
    return (*found, *nameless[:MOST_CASES]), len(numbers) - len(chosen)


def measured_alone(report: Performance, span: float) -> tuple[tuple[Case, ...], int]:
    """Return the cases of a report without a result: nothing is said of their verdicts."""
    chosen = sorted(report.shapes)[:MOST_CASES]
    found = tuple(
        Case(
            number=number,
            passed=True,
            inputs=figures.inputs_text(report.shapes[number].input_desc, _INPUTS),
            speed=_speed(report.shapes[number], span),
        )
        for number in chosen
    )
    return found, len(report.shapes) - len(chosen)


def _case(
    number: int,
    result: Verification,
    failure: FailedCase | None,
    shape: Shape | None,
    span: float,
) -> Case:
    entry = result.cases.get(number, {})
    passed = result.status(number) == "pass"
    inputs = result.input_desc(number) or (shape.input_desc if shape is not None else None)
    outputs = [o for o in _list(entry.get("outputs")) if isinstance(o, dict)]
    shown_outputs = tuple(map(_output, outputs[:_MOST_OUTPUTS]))
    base = _failed(number, failure, entry) if failure is not None else None
    message = base.message if base else ""
    if any(output.heat_map for output in shown_outputs):
        message = _PICTURE.sub("", message)
    return Case(
        number=number,
        passed=passed,
        inputs=text.shown(figures.inputs_text(inputs, _INPUTS), 2 * _INPUTS),
        kind=base.kind if base else "",
        lead=base.lead if base else "",
        message=message,
        facts=base.facts if base else _facts(entry),
        warnings=warnings_of(entry.get("warnings")),
        printed=text.shown(entry.get("output") or "").strip("\n"),
        outputs=shown_outputs,
        more_outputs=max(0, len(outputs) - _MOST_OUTPUTS),
        speed=_speed(shape, span),
        seconds=figures.number(entry.get("seconds")),
    )


def _failed(number: int | None, failure: FailedCase, entry: Mapping[str, Any]) -> Case:
    lead, _, rest = text.shown(failure.error_msg).partition("\n")
    kind = text.name(failure.error_type)
    facts = [f"phase: {text.name(failure.phase)}"] if failure.phase else []
    if failure.side:
        facts.append(f"whose: the {text.name(failure.side)}'s")
    if failure.place:
        facts.append(f"at: {text.name(failure.place)}")
    return Case(
        number=number,
        passed=False,
        inputs=text.shown(figures.inputs_text(failure.input_desc, _INPUTS), 2 * _INPUTS),
        kind=kind,
        lead=lead.removeprefix(f"{kind}: "),
        message=rest.strip("\n"),
        facts=(*facts, *_facts(entry)),
    )


def _facts(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is out of the ordinary about how a case was run."""
    facts = []
    golden = entry.get("golden_device")
    if isinstance(golden, str) and golden != "cpu":
        facts.append(f"golden computed on: {text.name(golden)}")
    standin = entry.get("standin")
    if isinstance(standin, dict):
        facts.append(f"the CPU stood in for: {text.name(standin.get('kind'))}")
    for chosen in _list(entry.get("configurations"))[:_MOST_EVIDENCE]:
        if isinstance(chosen, dict):
            kernel, name = text.name(chosen.get("kernel")), text.name(chosen.get("name"))
            facts.append(f"autotuned {kernel}: {name} of {text.name(chosen.get('count'))}")
    facts += _repeated(_dict(entry.get("stress")), _dict(entry.get("trials")))
    precision = entry.get("golden_precision")
    if isinstance(precision, str) and precision != "own":
        facts.append(f"golden computed in: {text.name(precision)}")
    if entry.get("flaky"):
        facts.append("failed, and passed when it was run again")
    return tuple(facts)


def _repeated(stress: Mapping[str, Any], trials: Mapping[str, Any]) -> list[str]:
    """Return what further runs and further inputs have shown."""
    facts = []
    runs, failed, differing = (_count(stress.get(n)) for n in ("runs", "failed", "differing"))
    if runs:
        facts.append(f"under stress: {runs:,} runs, {failed:,} failed, {differing:,} other bits")
    sets, failed = _count(trials.get("sets")), _count(trials.get("failed"))
    if sets:
        facts.append(f"inputs of {sets:,} seeds: {failed:,} failed")
    return facts


def _count(value: object) -> int:
    return int(figures.number(value) or 0) if type(value) is int else 0


def warnings_of(entries: object) -> tuple[tuple[str, str], ...]:
    """Return code and message of warnings as files hold them."""
    return tuple(
        (text.name(entry.get("code") or "warning"), text.shown(entry.get("message") or ""))
        for entry in _list(entries)
        if isinstance(entry, dict)
    )


def _output(entry: Mapping[str, Any]) -> Output:
    category, metrics = entry.get("category"), _dict(entry.get("metrics"))
    diagnosis, errors = _dict(entry.get("diagnosis")), _dict(entry.get("errors"))
    region = _dict(diagnosis.get("region")).get("text")
    evidence = [e for e in _list(diagnosis.get("evidence")) if isinstance(e, str)]
    tensor = {"type": "tensor", "shape": entry.get("shape"), "dtype": entry.get("dtype")}
    return Output(
        path=text.name(entry.get("path") or "output"),
        form=text.name(figures.inputs_text([tensor])) if entry.get("dtype") else "",
        passed=entry.get("passed") is True,
        route=rules.ROUTES.get(str(category), text.name(category or "")),
        sentence=rules.sentence(category, metrics),
        cause=text.shown(diagnosis.get("cause") or "", 600),
        sure=diagnosis.get("confidence") == "clear",
        region=text.shown(region or "", 600) if isinstance(region, str) else "",
        evidence=tuple(text.shown(e, 400) for e in evidence[:_MOST_EVIDENCE]),
        histogram=drawing.histogram(errors),
        heat_map=drawing.heat_map(errors, entry.get("shape")),
        sampled=_sampled(errors),
        gates=_gates(_dict(entry.get("strictness"))),
    )


def _sampled(errors: Mapping[str, Any]) -> str:
    total, measured = errors.get("elements"), errors.get("measured")
    if type(total) is not int or type(measured) is not int or measured >= total:
        return ""
    return f"{measured:,} of {total:,} elements"


def _gates(strictness: Mapping[str, Any]) -> str:
    parts = []
    for gate in _list(strictness.get("gates")):
        if isinstance(gate, dict):
            holds = gate.get("holds")
            word = "holds" if holds is True else "broken" if holds is False else "not applied"
            value, limit = figures.number(gate.get("value")), figures.number(gate.get("limit"))
            found = "" if value is None else f" ({value:.3g}"
            found += "" if not found else ")" if limit is None else f" of {limit:.3g})"
            parts.append(f"{text.name(gate.get('name'))} {word}{found}")
    nulls = [text.name(n) for n in _list(strictness.get("null_candidates"))]
    if nulls:
        parts.append(f"wrong outputs that would pass, too: {', '.join(nulls)}")
    return "; ".join(parts)


def _speed(shape: Shape | None, span: float) -> Speed | None:
    if shape is None:
        return None
    if not shape.measured:
        return Speed(factor=None, words="failed when measured", times="", bar=None)
    return speed_of(shape.speedup, shape.framework_ms, shape.implementation_ms, span)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

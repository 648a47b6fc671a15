"""What the page shows, ready to be laid out: all texts fit to be shown, all figures in words."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.html_report import cases, drawing, kernels, text
from pytest_tritonverify.html_report.subjects import checks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.html_report.cases import Case, Speed
    from pytest_tritonverify.html_report.drawing import Chart
    from pytest_tritonverify.html_report.kernels import Compiled
    from pytest_tritonverify.html_report.subjects import Subject

_MOST_IN_STRIP = 40
_CHECKS = {
    "degeneration": "kernels by the source",
    "execution": "kernels at run time",
    "hidden_state": "weights and buffers",
    "compile": "kernels compiled for other devices",
}
# Of sections that don't name their failure.
_KINDS = {"hidden_state": "HiddenStateMismatch"}


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check that concerns a pair as a whole.

    Attributes:
        name, about: its name, and what it is about.
        status, message: what it found.
        kind: the name of the failure; empty where there is none.
    """

    name: str
    about: str
    status: str
    message: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair.

    Attributes:
        number: from 1, in the page's order.
        op, impl, place: its names, and where its files lie.
        apart: what tells it apart from pairs of the same names; empty where there are none.
        status: `passed`, `failed`, or `unjudged` where there is no verification.
        passed, total: its cases, by the verification alone.
        kinds: names of failures, and how many cases failed so; 0 for those of checks.
        strip: paths of passed and failed cases, ten units wide each; None where they are too many.
        checks, compiled, cases, notes: see there.
        more_cases: how many are left out.
        speed: None where it was not measured.
        warnings: code, message, and whose it is.
        seconds: of its verification.
        environment: which one of the page's it is of.
        words: what a search looks at.
    """

    number: int
    op: str
    impl: str
    place: str
    apart: str
    status: str
    passed: int
    total: int
    kinds: tuple[tuple[str, int], ...]
    strip: tuple[str, str] | None
    checks: tuple[Check, ...]
    compiled: Compiled | None
    cases: tuple[Case, ...]
    more_cases: int
    speed: Speed | None
    warnings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    seconds: float
    environment: int
    words: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What pairs were judged with: names and values, and how many pairs."""

    rows: tuple[tuple[str, str], ...]
    pairs: int
    title: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """The whole page.

    Attributes:
        title: its heading.
        subtitle: where and when, as far as that is one for all.
        pairs: in order: what failed, then what passed.
        counts: pairs by status, and cases passed and in all.
        kinds: names of failures, how many cases failed so, and in how many pairs.
        warnings: codes, how many pairs have them, and one message.
        speed: what was measured, in words; empty where nothing was.
        chart: speed-ups of all pairs.
        environments: most pairs first.
    """

    title: str
    subtitle: str
    pairs: tuple[Pair, ...]
    counts: Mapping[str, int]
    kinds: tuple[tuple[str, int, int], ...]
    warnings: tuple[tuple[str, int, str], ...]
    speed: str
    chart: Chart | None
    environments: tuple[Environment, ...]


@dataclass
class _Environments:
    """Environments that were met, each once, by what they say but for when and about whom."""

    known: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[tuple[str, str], ...]] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    times: list[str] = field(default_factory=list)

    def number(self, content: Mapping[str, Any]) -> int:
        found = content.get("environment")
        sections = dict(found) if isinstance(found, dict) else {}
        when = sections.pop("timestamp", None)
        if isinstance(when, str):
            self.times.append(text.name(when))
        sections.pop("cmdline", None)
        key = json.dumps(sections, sort_keys=True, default=str)
        place = self.known.setdefault(key, len(self.known))
        if place == len(self.rows):
            self.rows.append(tuple(_rows("", sections)))
        self.counts[place] += 1
        return place


def _rows(prefix: str, section: object) -> list[tuple[str, str]]:
    if isinstance(section, dict):
        return [
            row
            for key, value in section.items()
            for row in _rows(f"{prefix}.{key}" if prefix else str(key), value)
        ]
    if isinstance(section, list):
        section = ", ".join(map(str, section))
    shown = {None: "none", True: "yes", False: "no"}.get(section, section)  # type: ignore[call-overload]  # any JSON value
    return [(text.name(prefix), text.shown(shown, 400))]


def page(subjects: Sequence[Subject]) -> Page:
    """Return the page about some pairs."""
    speedups = [
        speedup
        for subject in subjects
        if subject.performance is not None
        for speedup in (
            subject.performance.speedup,
            *(shape.speedup for shape in subject.performance.shapes.values()),
        )
        if speedup is not None
    ]
    span = drawing.span_of(speedups)
    environments = _Environments()
    ordered = sorted(subjects, key=lambda one: _RANK[_status(one)])
    pairs = tuple(
        _pair(number, subject, apart, span, environments)
        for number, (subject, apart) in enumerate(zip(ordered, _apart(ordered), strict=True), 1)
    )
    measured = [
        (pair.number, f"{pair.op} ({pair.impl})", pair.speed.factor)
        for pair in pairs
        if pair.speed is not None and pair.speed.factor is not None
    ]
    found = Counter(pair.status for pair in pairs)
    return Page(
        title="Triton verification",
        subtitle=_subtitle(environments),
        pairs=pairs,
        counts={
            **{status: found[status] for status in _RANK},
            "pairs": len(pairs),
            "cases_passed": sum(pair.passed for pair in pairs),
            "cases": sum(pair.total for pair in pairs),
            "warned": sum(bool(pair.warnings) for pair in pairs),
        },
        kinds=_kinds(pairs),
        warnings=_warnings(pairs),
        speed=_speed_words([factor for _, _, factor in measured]),
        chart=drawing.chart(measured),
        environments=_listed(environments),
    )


_RANK = {"failed": 0, "unjudged": 1, "passed": 2}


def _status(subject: Subject) -> str:
    if subject.failed:
        return "failed"
    if subject.verification is None:
        return "unjudged"
    return "passed" if subject.verification.all_passed else "failed"


def _apart(subjects: Sequence[Subject]) -> list[str]:
    """Return for each of several pairs of the same names the part of its place that differs."""
    names = Counter((subject.op, subject.impl) for subject in subjects)
    places = [subject.place for subject in subjects]
    try:
        common = len(os.path.commonpath(places)) if len(places) > 1 else 0
    except ValueError:
        # Some are relative and some are not.
        common = 0
    return [
        subject.place[common:].strip(os.sep) if names[subject.op, subject.impl] > 1 else ""
        for subject in subjects
    ]


def _pair(
    number: int, subject: Subject, apart: str, span: float, environments: _Environments
) -> Pair:
    result, report = subject.verification, subject.performance
    shown: tuple[Case, ...] = ()
    more = 0
    content: Mapping[str, Any] = {}
    if result is not None:
        shown, more = cases.of(result, report, span)
        content = result.content
    elif report is not None:
        shown, more = cases.measured_alone(report, span)
        content = report.content
    checks = _checks(content)
    kinds = Counter(text.name(f.error_type) for f in result.failures) if result else Counter()
    # Not every check that fails makes cases fail.
    kinds.update({check.kind: 0 for check in checks if check.kind})
    op, impl, place = text.name(subject.op), text.name(subject.impl), text.name(subject.place)
    warnings = _pair_warnings(content, shown, checks, report.content if report else {})
    words = " ".join((op, impl, place, *kinds, *(code for code, _, _ in warnings)))
    return Pair(
        number=number,
        op=op,
        impl=impl,
        place=place,
        apart=text.name(apart),
        status=_status(subject),
        passed=result.passed if result else 0,
        total=result.total if result else 0,
        kinds=tuple(kinds.most_common()),
        strip=drawing.strip([case.passed for case in shown])
        if result and not more and 1 <= len(shown) <= _MOST_IN_STRIP
        else None,
        checks=checks,
        compiled=kernels.of(content),
        cases=shown,
        more_cases=more,
        speed=cases.speed_of(report.speedup, report.framework_ms, report.latency_ms, span)
        if report
        else None,
        warnings=warnings,
        notes=tuple(text.shown(note) for note in subject.notes),
        seconds=sum(case.seconds or 0.0 for case in shown),
        environment=environments.number(content) if content else -1,
        # As the page's script does with what is looked for.
        words=words.lower(),
    )


def _checks(content: Mapping[str, Any]) -> tuple[Check, ...]:
    found = checks_of(content)
    return tuple(
        Check(
            name=name,
            about=about,
            status=text.name(entry["status"]),
            message=text.shown(entry.get("message") or entry.get("reason") or ""),
            kind=_kind(name, entry) if entry["status"] == "failed" else "",
        )
        for name, about in _CHECKS.items()
        if isinstance(entry := found.get(name), dict) and isinstance(entry.get("status"), str)
    )


def _kind(name: str, entry: Mapping[str, Any]) -> str:
    """Return the name of a check's failure."""
    kind = entry.get("error_type") or _KINDS.get(name) or (entry.get("report") or {})
    return text.name(kind) if isinstance(kind, str) else ""


def _pair_warnings(
    content: Mapping[str, Any],
    shown: Sequence[Case],
    checks: Sequence[Check],
    report: Mapping[str, Any],
) -> tuple[tuple[str, str, str], ...]:
    """Return every distinct warning of a pair once, with whose it is."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in shown:
        for warning in case.warnings:
            found.setdefault(warning, []).append(str(case.number))
    listed = [
        (code, message, f"case {', '.join(numbers[:12])}{'…' if len(numbers) > 12 else ''}")  # noqa: PLR2004 - a line
        for (code, message), numbers in found.items()
    ]
    listed += [
        (check.name, check.message.partition("\n")[0], check.about)
        for check in checks
        if check.status == "warned"
    ]
    hidden = content.get("hidden_state")
    of_state = cases.warnings_of(hidden.get("warnings")) if isinstance(hidden, dict) else ()
    listed += [(code, message, _CHECKS["hidden_state"]) for code, message in of_state]
    listed += [(code, message, "benchmark") for code, message in _told(report)]
    return (*listed, *_of_measurements(report))


def _told(report: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(cases.warnings_of(report.get("warnings"))))


def _of_measurements(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return each kind of warning about measurements once: their figures differ case by case."""
    shapes = report.get("per_shape_results")
    numbers: dict[str, list[int]] = {}
    messages: dict[str, str] = {}
    for shape in shapes if isinstance(shapes, list) else ():
        if isinstance(shape, dict):
            for code, message in cases.warnings_of(shape.get("warnings")):
                numbers.setdefault(code, []).append(shape["case_idx"])
                messages.setdefault(code, message)
    return [
        (code, messages[code], f"benchmark of case {text.name(figures.numbers_text(found))}")
        for code, found in numbers.items()
    ]


def _kinds(pairs: Sequence[Pair]) -> tuple[tuple[str, int, int], ...]:
    of_cases: Counter[str] = Counter()
    of_pairs: Counter[str] = Counter()
    for pair in pairs:
        for kind, count in pair.kinds:
            of_cases[kind] += count
            of_pairs[kind] += 1
    found = sorted(of_pairs, key=lambda kind: -max(of_cases[kind], of_pairs[kind]))
    return tuple((kind, of_cases[kind], of_pairs[kind]) for kind in found[:12])


def _warnings(pairs: Sequence[Pair]) -> tuple[tuple[str, int, str], ...]:
    counts: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for pair in pairs:
        for code in dict.fromkeys(code for code, _, _ in pair.warnings):
            counts[code] += 1
        for code, message, _ in pair.warnings:
            messages.setdefault(code, text.shown(message, 300))
    return tuple((code, count, messages[code]) for code, count in counts.most_common(20))


def _speed_words(factors: Sequence[float]) -> str:
    if not factors:
        return ""
    faster = sum(factor > 1 for factor in factors)
    middle = sorted(factors)[len(factors) // 2]
    return (
        f"{faster:,} of {text.plural(len(factors), 'measured pair')} faster than the reference; "
        f"the middle one {text.times(middle)}"
    )


def _listed(environments: _Environments) -> tuple[Environment, ...]:
    return tuple(
        Environment(
            rows=environments.rows[place], pairs=count, title=_named(environments.rows[place])
        )
        for place, count in environments.counts.most_common()
    )


def _named(rows: Sequence[tuple[str, str]]) -> str:
    known = dict(rows)
    device = known.get("device.npu_name") or known.get("device.name") or ""
    device = device if device != "none" else known.get("device.name", "")
    parts = [known.get("device.backend", ""), device]
    parts += [
        f"{name} {known[key]}"
        for name, key in (("triton", "triton.version"), ("torch", "torch.version"))
        if known.get(key, "none") != "none"
    ]
    return " · ".join(part for part in parts if part)


def _subtitle(environments: _Environments) -> str:
    times = sorted(environments.times)
    when = times[0].replace("T", " ") if times else ""
    if len(environments.rows) > 1:
        return " · ".join(part for part in ("several environments", when) if part)
    where = _named(environments.rows[0]) if environments.rows else ""
    return " · ".join(part for part in (where, when) if part)

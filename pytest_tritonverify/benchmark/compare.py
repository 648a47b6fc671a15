"""Compare two benchmark reports of one operator, case by case and as a whole.

A verdict is a word and its reasons. It is reached from the implementations' latencies, since both
were measured on the same device; the documented `speedup_vs_baseline` stands beside it.

- SAME: the confidence interval of the ratio lies within `MARGIN` of 1.
- FASTER, SLOWER: it lies beyond the margin, on the one or the other side. Where a measurement is
  noisy the margin is as wide as its noise.
- UNCLEAR: neither, or there is nothing to compare. No verdict is forced.

An interval holds what varies within a process. From one process to the next more varies
(placement in memory, clocks, temperature), so an interval that misses 1 by less than the margin
is no difference.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify.benchmark import aggregate, report_view, stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.benchmark.report_view import SideView

Verdict = Literal["SAME", "FASTER", "SLOWER", "UNCLEAR"]

MARGIN = 0.02
"""Relative difference of latencies below which two implementations are called the same: what
repeated runs of one and the same differ by."""


class ComparisonError(ValueError):
    """Reports that can't be compared; the text is for the user."""


@dataclass(frozen=True)
class Reason:
    """Why a verdict is what it is.

    Attributes:
        code: for programs.
        message: for people.
    """

    code: str
    message: str

    def to_json(self) -> dict[str, str]:
        """Return the reason as builtins."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case in both reports.

    Attributes:
        case_idx: its number.
        label: its name.
        before_ms, after_ms: latencies of the implementations; None where there is none.
        ratio: the former over the latter: above 1 the second report's implementation is faster.
        interval: confidence interval of the ratio.
        margin: what lies within it is no difference.
        noisy: a measurement of it is.
        verdict: a word.
        reasons: for the verdict.
        changed: it could be measured in one report only.
        resampled: ratios behind the interval.
    """

    case_idx: int
    label: str
    before_ms: float | None
    after_ms: float | None
    ratio: float | None
    interval: stats.Interval | None
    margin: float
    noisy: bool
    verdict: Verdict
    reasons: tuple[Reason, ...]
    changed: bool
    resampled: tuple[float, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Return the row as builtins."""
        return {
            "case_idx": self.case_idx,
            "name": self.label,
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
            "ratio": self.ratio,
            "ratio_ci95": self.interval.to_json() if self.interval else None,
            "verdict": self.verdict,
            "reasons": [reason.to_json() for reason in self.reasons],
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two reports compared.

    Attributes:
        op_name: the operator.
        before, after: what the reports are called.
        rows: the cases, by number.
        ratio: geometric mean of their ratios; None where there is none.
        interval: confidence interval of it.
        verdict: a word.
        reasons: for the verdict.
        before_speedup, after_speedup: the reports' `speedup_vs_torch`.
        speedup_vs_baseline: the latter over the former, None where that would mislead.
        warnings: what else differs, in sentences.
    """

    op_name: str
    before: str
    after: str
    rows: tuple[Row, ...]
    ratio: float | None
    interval: stats.Interval | None
    verdict: Verdict
    reasons: tuple[Reason, ...]
    before_speedup: float | None
    after_speedup: float | None
    speedup_vs_baseline: float | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as builtins."""
        return {
            "op_name": self.op_name,
            "before": self.before,
            "after": self.after,
            "verdict": self.verdict,
            "reasons": [reason.to_json() for reason in self.reasons],
            "ratio": self.ratio,
            "ratio_ci95": self.interval.to_json() if self.interval else None,
            "before_speedup_vs_torch": self.before_speedup,
            "after_speedup_vs_torch": self.after_speedup,
            "speedup_vs_baseline": self.speedup_vs_baseline,
            "cases": [row.to_json() for row in self.rows],
            "warnings": list(self.warnings),
        }


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], *, names: tuple[str, str] = ("A", "B")
) -> Comparison:
    """Compare a report with an earlier one.

    Args:
        before: the baseline's report, as `perf_file.read` returns it.
        after: the other one.
        names: what they are called.

    Raises:
        ComparisonError: they are of different operators or different cases.
    """
    if before["op_name"] != after["op_name"]:
        raise ComparisonError(
            f"{names[0]} is of `{before['op_name']}`, {names[1]} is of `{after['op_name']}`"
        )
    shapes = _paired(before, after, names)
    other_device = report_view.other_device(before, after)
    rows = tuple(_row(one, other, names, other_device) for one, other in shapes)
    compared = [row for row in rows if row.ratio is not None]
    ratio = aggregate.geometric_mean([row.ratio for row in compared if row.ratio is not None])
    resampled = [row.resampled for row in compared if row.resampled is not None]
    complete = bool(compared) and len(resampled) == len(compared)
    interval = stats.interval(stats.combined(resampled)) if complete else None
    verdict, reasons = _overall(rows, compared, interval, names)
    warnings = report_view.differences(before, after)
    speedups = before["speedup_vs_torch"], after["speedup_vs_torch"]
    over, problem = _over_baseline(shapes, speedups, names)
    return Comparison(
        op_name=before["op_name"],
        before=names[0],
        after=names[1],
        rows=rows,
        ratio=ratio,
        interval=interval,
        verdict=verdict,
        reasons=reasons,
        before_speedup=speedups[0],
        after_speedup=speedups[1],
        speedup_vs_baseline=over,
        warnings=(*problem, *warnings, *_reference_moved(shapes, names)),
    )


Shapes = list[tuple["Mapping[str, Any]", "Mapping[str, Any]"]]


def _paired(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> Shapes:
    first, second = (
        {shape["case_idx"]: shape for shape in report["per_shape_results"]}
        for report in (before, after)
    )
    for numbers, name in ((first.keys() - second.keys(), 0), (second.keys() - first.keys(), 1)):
        if numbers:
            listed = ", ".join(map(str, sorted(numbers)))
            raise ComparisonError(f"the cases differ: only {names[name]} has case {listed}")
    for case_idx in sorted(first):
        if first[case_idx].get("input_desc") != second[case_idx].get("input_desc"):
            raise ComparisonError(
                f"the cases differ: case {case_idx} has other inputs in {names[1]} than in "
                f"{names[0]}"
            )
    return [(first[case_idx], second[case_idx]) for case_idx in sorted(first)]


def _row(
    one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str], other_device: str
) -> Row:
    before, after = report_view.side(one), report_view.side(other)
    obstacles = [
        Reason(view.obstacle_code, f"{name}: {view.obstacle}")
        for view, name in zip((before, after), names, strict=True)
        if view.obstacle
    ]
    changed = bool(before.obstacle) != bool(after.obstacle)
    if not obstacles and before.method != after.method:
        text = f"measured in different ways: {before.method} and {after.method}"
        obstacles.append(Reason("other_method", text))
    if not obstacles and other_device:
        obstacles.append(Reason("other_device", other_device))
    noisy = before.noisy or after.noisy
    margin = max(MARGIN, before.spread, after.spread) if noisy else MARGIN
    ratio = interval = resampled = None
    verdict: Verdict = "UNCLEAR"
    if not obstacles and before.latency_ms and after.latency_ms:
        ratio = before.latency_ms / after.latency_ms
        resampled = _resampled(before, after, one["case_idx"])
        interval = stats.interval(resampled) if resampled else None
        verdict, obstacles = _verdict(interval, margin, noisy=noisy)
    return Row(
        case_idx=one["case_idx"],
        label=report_view.label(other),
        before_ms=before.latency_ms,
        after_ms=after.latency_ms,
        ratio=ratio,
        interval=interval,
        margin=margin,
        noisy=noisy,
        verdict=verdict,
        reasons=tuple(obstacles),
        changed=changed,
        resampled=resampled,
    )


def _resampled(before: SideView, after: SideView, case_idx: int) -> tuple[float, ...] | None:
    if before.samples is None or after.samples is None:
        return None
    return stats.resampled_ratios(before.samples, after.samples, seed=case_idx)


def _verdict(
    interval: stats.Interval | None, margin: float, *, noisy: bool
) -> tuple[Verdict, list[Reason]]:
    if interval is None:
        text = "there are too few samples to say how sure the ratio is"
        return "UNCLEAR", [Reason("no_interval", text)]
    shown = f"[{interval.low:.3f}, {interval.high:.3f}]"
    upper, lower = 1 + margin, 1 / (1 + margin)
    if interval.low > upper:
        return "FASTER", [Reason("beyond_margin", f"{shown} lies above {upper:.3f}")]
    if interval.high < lower:
        return "SLOWER", [Reason("beyond_margin", f"{shown} lies below {lower:.3f}")]
    if noisy:
        text = f"{shown} does not leave the noise of {100 * margin:.0f} %"
        return "UNCLEAR", [Reason("noisy", text)]
    if lower <= interval.low and interval.high <= upper:
        text = f"{shown} lies within {100 * margin:.0f} % of 1"
        return "SAME", [Reason("within_margin", text)]
    text = f"{shown} reaches across the margin of {100 * margin:.0f} %"
    return "UNCLEAR", [Reason("across_margin", text)]


def _overall(
    rows: Sequence[Row],
    compared: Sequence[Row],
    interval: stats.Interval | None,
    names: tuple[str, str],
) -> tuple[Verdict, tuple[Reason, ...]]:
    changed = [row.case_idx for row in rows if row.changed]
    if changed:
        which = f"case {', '.join(map(str, changed))}"
        text = f"{which} can be compared in one of {names[0]} and {names[1]} only"
        return "UNCLEAR", (Reason("cases_changed", text),)
    if not compared:
        return "UNCLEAR", (Reason("nothing_compared", "no case can be compared"),)
    # What the mean moves by where every case moves by its own margin.
    margin = math.expm1(statistics.fmean(math.log1p(row.margin) for row in compared))
    verdict, reasons = _verdict(interval, margin, noisy=any(row.noisy for row in compared))
    left_out = len(rows) - len(compared)
    if left_out:
        text = f"{left_out} of {len(rows)} cases can't be compared and are left out"
        reasons.append(Reason("cases_left_out", text))
    return verdict, tuple(reasons)


def _over_baseline(
    shapes: Shapes, speedups: tuple[float | None, float | None], names: tuple[str, str]
) -> tuple[float | None, list[str]]:
    """Return the ratio of the two geometric means, or why there is none.

    Means of different cases have no ratio that says anything.
    """
    for speedup, name in zip(speedups, names, strict=True):
        if not report_view.positive(speedup):
            return None, [f"no speedup_vs_baseline: {name} has no speedup_vs_torch"]
    differing = [
        str(one["case_idx"])
        for one, other in shapes
        if report_view.counts(one) != report_view.counts(other)
    ]
    if differing:
        listed = ", ".join(differing)
        text = f"no speedup_vs_baseline: case {listed} is in one of the two geometric means only"
        return None, [text]
    assert speedups[0] is not None  # noqa: S101 - asked above
    assert speedups[1] is not None  # noqa: S101 - asked above
    return speedups[1] / speedups[0], []


def _reference_moved(shapes: Shapes, names: tuple[str, str]) -> list[str]:
    """Warn where the references' times differ: then speed-ups do, whatever the kernels do."""
    ratios = []
    for one, other in shapes:
        before, after = (report_view.side(shape, "framework") for shape in (one, other))
        if not (before.obstacle or after.obstacle) and before.latency_ms and after.latency_ms:
            ratios.append(after.latency_ms / before.latency_ms)
    mean = aggregate.geometric_mean(ratios)
    if mean is None or 1 / (1 + MARGIN) <= mean <= 1 + MARGIN:
        return []
    text = f"{100 * abs(mean - 1):.0f} % {'longer' if mean > 1 else 'less'}"
    return [f"the reference took {text} in {names[1]} than in {names[0]}: so speed-ups differ, too"]

"""One case in a report: the documented keys, then what else is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import aggregate, stats
from pytest_tritonverify.execution import errors
from pytest_tritonverify.results import result_file

if TYPE_CHECKING:
    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, SideMeasurement

AGREEMENT = 1e-3
"""Relative difference up to which a latency is the mean of the samples that came with it."""

QUANTILE_NAMES = {p: f"p{round(p * 100):02d}" for p in stats.QUANTILES}

_SIDES = ("framework", "implementation")
_CALLED = {"framework": "the reference", "implementation": "the implementation"}


@dataclass(frozen=True, kw_only=True)
class CaseEntry:
    """A case as a report holds it.

    Attributes:
        content: the entry of `per_shape_results`.
        ratios: resampled speed-ups; None where there are none.
    """

    content: dict[str, Any]
    ratios: tuple[float, ...] | None


def entry(case: CaseMeasurement) -> CaseEntry:
    """Return a case's entry. A failed one holds no times: they are those of wrong work."""
    passed = case.passed
    sides = {name: getattr(case, name) if passed else None for name in _SIDES}
    found = aggregate.case_speedup(case) if passed else None
    ratios = _ratios(sides["framework"], sides["implementation"], case.case_idx)
    valid = found is not None and found.kind == "valid"
    content: dict[str, Any] = {
        "case_idx": case.case_idx,
        "input_desc": case.input_desc,
        "status": case.status,
        "framework": _side(sides["framework"]),
        "implementation": _side(sides["implementation"]),
        "speedup_vs_torch": found.valid if found else None,
        "error_type": case.error_type,
        "error_msg": None if case.error_msg is None else _clipped(case.error_msg),
        "name": case.name,
        "speedup_class": found.kind if found else None,
        "speedup_ci95": stats.interval(ratios).to_json() if ratios and valid else None,
        "seconds": case.seconds,
        "warnings": [dict(warning) for warning in case.warnings],
    }
    for name, side in sides.items():
        if side is not None:
            content["warnings"] += _warnings(_CALLED[name], side)
    return CaseEntry(content=content, ratios=ratios if valid else None)


def _side(side: SideMeasurement | None) -> dict[str, Any] | None:
    if side is None:
        return None
    summary = stats.summarise(side.samples_ms) if stats.usable(side.samples_ms) else None
    return {
        "avg_latency_ms": side.latency_ms,
        "peak_memory_mb": side.peak_memory_mb,
        "method": side.method,
        "reason": None if side.reason is None else _clipped(side.reason),
        "median_ms": stats.digits(summary.median_ms) if summary else None,
        "quantiles_ms": (
            {QUANTILE_NAMES[p]: stats.digits(ms) for p, ms in summary.quantiles_ms.items()}
            if summary
            else None
        ),
        "cv": _digits(summary.cv) if summary else None,
        "iqr": _digits(summary.iqr) if summary else None,
        "noisy": summary.noisy if summary else None,
        "launches_per_forward": side.launches_per_forward,
        "cross_check_ms": side.cross_check_ms,
        "operators": dict(side.operators),
        "samples": stats.Stored.of(side.samples_ms).to_json() if summary else None,
        "notes": [_clipped(note) for note in side.notes],
    }


def _warnings(who: str, side: SideMeasurement) -> list[dict[str, str]]:
    found = []
    if side.latency_ms is None:
        text = f"{who} was not measured: {side.reason or 'no reason was given'}"
        found.append({"code": "not_measured", "message": _clipped(text)})
    elif side.latency_ms == 0 and side.method == "given":
        text = f"the latency of {who} was given as 0 ms, so the case has no speed-up"
        found.append({"code": "below_resolution", "message": text})
    elif side.latency_ms == 0:
        text = (
            f"{who} was measured at 0 ms, which is below the clock's resolution: the case has no "
            "speed-up; give it more work"
        )
        found.append({"code": "below_resolution", "message": text})
    elif not aggregate.is_time(side.latency_ms):
        text = f"{who} was measured at {side.latency_ms:g} ms, which is no time"
        found.append({"code": "impossible_latency", "message": text})
    if stats.usable(side.samples_ms):
        summary = stats.summarise(side.samples_ms)
        if summary.noisy:
            found.append({"code": "noisy", "message": _noise(who, summary)})
    if side.samples_ms and not _agrees(side):
        text = (
            f"the latency of {who} is not the mean of its samples, so there is no interval for "
            "the speed-up"
        )
        found.append({"code": "inconsistent_samples", "message": text})
    return found


def _noise(who: str, summary: stats.Summary) -> str:
    figures = [
        f"{name} is {100 * value:.0f} % of the {of}"
        for name, value, of in (
            ("the standard deviation", summary.cv, "mean"),
            ("the interquartile range", summary.iqr, "median"),
        )
        if value is not None and value > stats.NOISE_LIMIT
    ]
    return (
        f"{who} was measured with noise: {' and '.join(figures)} (limit "
        f"{100 * stats.NOISE_LIMIT:.0f} %); is the device used by others, or its clock changing?"
    )


def _agrees(side: SideMeasurement) -> bool:
    """Say whether a latency is the mean of its samples."""
    if side.latency_ms is None or not stats.usable(side.samples_ms):
        return False
    mean = math.fsum(side.samples_ms) / len(side.samples_ms)
    return math.isclose(mean, side.latency_ms, rel_tol=AGREEMENT, abs_tol=1e-12)


def _ratios(
    framework: SideMeasurement | None, implementation: SideMeasurement | None, seed: int
) -> tuple[float, ...] | None:
    if framework is None or implementation is None or not _agrees(implementation):
        return None
    under = stats.Stored.of(implementation.samples_ms)
    if framework.method == "given" and aggregate.is_time(framework.latency_ms):
        # What the user named varies with nothing.
        over = stats.Stored(count=under.count, values_ms=(framework.latency_ms,))
    elif _agrees(framework):
        over = stats.Stored.of(framework.samples_ms)
    else:
        return None
    return stats.resampled_ratios(over, under, seed)


def _digits(value: float | None) -> float | None:
    return None if value is None else stats.digits(value)


def _clipped(text: str) -> str:
    return errors.clip(errors.printable(text), result_file.ERROR_MSG_LIMIT)

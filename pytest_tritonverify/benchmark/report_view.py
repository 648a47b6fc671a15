"""What a comparison needs of a report, whoever wrote it.

Reports of other programs hold the documented keys alone. What a tail key holds is believed only
where it has the right form; else it is as if it were not there.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import aggregate, stats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOLD_ELSEWHERE = ("timestamp", "cache", "cmdline.triton_impl_name", "cmdline.output")
"""Parts of the environment that say nothing about speed."""

AGREEMENT = 0.01
"""Relative difference up to which a latency is the mean of its samples, rounded ones included."""

_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class SideView:
    """One side of one case.

    Attributes:
        latency_ms: milliseconds; None where there is none.
        method: how it was measured; empty where that is not known.
        samples: timed forwards, where they are there.
        noisy: the spread is too large.
        spread: relative spread, 0 where it is not known.
        obstacle: why this side can't be compared; empty where it can.
        obstacle_code: the same for programs.
    """

    latency_ms: float | None
    method: str = ""
    samples: stats.Stored | None = None
    noisy: bool = False
    spread: float = 0.0
    obstacle: str = ""
    obstacle_code: str = ""


def side(shape: Mapping[str, Any], name: str = "implementation") -> SideView:
    """Return one side of an entry of `per_shape_results`."""
    if shape["status"] != "pass":
        kind = shape.get("error_type")
        text = f"the case failed ({kind})" if isinstance(kind, str) else "the case failed"
        return SideView(latency_ms=None, obstacle=text, obstacle_code="failed")
    figures: Mapping[str, Any] = shape.get(name) or {}
    latency = number(figures.get("avg_latency_ms"))
    if not aggregate.is_time(latency):
        reason = figures.get("reason")
        text = f"not measured: {reason}" if isinstance(reason, str) else "not measured"
        return SideView(latency_ms=None, obstacle=text, obstacle_code="not_measured")
    if latency == 0:
        text = "0 ms, below the clock's resolution"
        return SideView(latency_ms=0.0, obstacle=text, obstacle_code="below_resolution")
    samples = _samples(figures.get("samples"), latency)
    spread = max(_spread(figures.get("cv")), _spread(figures.get("iqr")))
    method = figures.get("method")
    return SideView(
        latency_ms=latency,
        method=method if isinstance(method, str) else "",
        samples=samples,
        noisy=spread > stats.NOISE_LIMIT,
        spread=spread,
    )


def number(value: Any) -> float | None:
    """Return a JSON number as a float; None for anything else, and for what is out of range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _spread(value: Any) -> float:
    spread = number(value)
    return spread if spread is not None and 0 <= spread <= stats.LONGEST_MS else 0.0


def _samples(data: Any, latency: float) -> stats.Stored | None:
    if not isinstance(data, dict):
        return None
    count, values = data.get("count"), data.get("values_ms")
    if type(count) is not int or not isinstance(values, list) or count < len(values):
        return None
    times = [ms for ms in map(number, values) if ms is not None]
    if len(times) < len(values) or not stats.usable(times):
        return None
    if not math.isclose(statistics.fmean(times), latency, rel_tol=AGREEMENT):
        return None
    return stats.Stored(count=count, values_ms=tuple(times))


def positive(value: Any) -> bool:
    """Say whether a speed-up is one."""
    return aggregate.classify(number(value)) == "valid"


def counts(shape: Mapping[str, Any]) -> bool:
    """Say whether a case is in its report's geometric mean."""
    return shape["status"] == "pass" and positive(shape.get("speedup_vs_torch"))


def label(shape: Mapping[str, Any]) -> str:
    """Return what a case is called."""
    name = shape.get("name")
    if isinstance(name, str) and name.startswith("benchmark"):
        return f"case{name.removeprefix('benchmark')}"
    return f"case{shape['case_idx']}"


def other_device(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say in words that two reports are of different devices; empty where they are of one."""
    first, second = _device(before), _device(after)
    if not first or not second or first == second:
        return ""
    return f"measured on different devices: {first} and {second}"


def _device(report: Mapping[str, Any]) -> str:
    section = report.get("environment")
    section = section.get("device") if isinstance(section, dict) else None
    if not isinstance(section, dict):
        return ""
    return str(section.get("npu_name") or section.get("name") or section.get("backend") or "")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what else differs between two reports, a sentence for each field."""
    found = [
        f"`{name}` was {_short(before[name])} and is {_short(after[name])}"
        for name in ("warmup", "repeats", "settings")
        if name in before and name in after and before[name] != after[name]
    ]
    for name in ("environment", "sources", "frequency"):
        first, second = before.get(name), after.get(name)
        if not isinstance(first, dict) or not isinstance(second, dict):
            if name == "environment":
                found.append("the environment of one report is not known, and may be another one")
            continue
        found += list(_FIELDS[name](name, first, second))
    return found


def _environment(name: str, first: Any, second: Any) -> Iterator[str]:
    one, other = dict(_leaves(first)), dict(_leaves(second))
    for field in sorted({*one, *other}):
        if one.get(field) != other.get(field) and not field.startswith(_TOLD_ELSEWHERE):
            values = f"{_short(one.get(field))} and is {_short(other.get(field))}"
            yield f"`{name}.{field}` was {values}"


def _sources(name: str, first: Any, second: Any) -> Iterator[str]:
    for role in ("task", "data"):
        if first.get(role) != second.get(role):
            yield f"`{name}.{role}` differs: the {role} file is another one"


def _frequency(name: str, first: Any, second: Any) -> Iterator[str]:
    for field in ("locked", "drifted"):
        if first.get(field) != second.get(field):
            values = f"{_short(first.get(field))} and is {_short(second.get(field))}"
            yield f"`{name}.{field}` was {values}"


_FIELDS = {"environment": _environment, "sources": _sources, "frequency": _frequency}


def _leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."

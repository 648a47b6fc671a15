"""The content of `perf_result.json`, and how such files are read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import aggregate, case_entry, report_view, stats
from pytest_tritonverify.results import result_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_tritonverify.benchmark.aggregate import SideTotals, Totals
    from pytest_tritonverify.benchmark.case_entry import CaseEntry
    from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("perf_result.schema.json")


class PerfFileError(ValueError):
    """A file that holds no benchmark report; the text is for the user."""


def document(
    op_name: str,
    cases: Iterable[CaseMeasurement],
    settings: PerfSettings,
    *,
    environment: Mapping[str, Any],
    sources: Mapping[str, str | None],
    frequency: FrequencyReport | None = None,
    gate: Mapping[str, Any] | None = None,
    warnings: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Compose a report: the documented keys in their order, then the tail.

    Args:
        op_name: the operator.
        cases: one measurement for each case, those that failed included.
        settings: how it was measured.
        environment: sections as in the verification's result.
        sources: sha256 by role (task, data, implementation) of what was measured.
        frequency: what happened to the clocks.
        gate: how the verification stood, as `gate.Passage.to_json` says it.
        warnings: `{"code", "message"}` entries that concern no single case.

    Returns:
        Strict JSON's own types: what is not finite is null.
    """
    ordered = sorted(cases, key=lambda case: case.case_idx)
    totals = aggregate.total(ordered)
    entries = [case_entry.entry(case) for case in ordered]
    content = {
        "op_name": op_name,
        "warmup": settings.warmup,
        "repeats": settings.repeats,
        "total_cases": totals.total_cases,
        "passed_cases": totals.passed_cases,
        "failed_cases": totals.failed_cases,
        **{f"{kind}_indices": totals.indices(kind) for kind in aggregate.ABNORMAL},
        "framework": _side(totals.framework),
        "implementation": _side(totals.implementation),
        "speedup_vs_torch": totals.speedup,
        "per_shape_results": [found.content for found in entries],
        "schema_version": SCHEMA_VERSION,
        "speedup_ci95": _interval(totals, entries),
        "warnings": [dict(warning) for warning in warnings],
        "settings": {
            name: value
            for name, value in settings.to_json().items()
            if name not in ("warmup", "repeats")
        },
        "gate": dict(gate) if gate is not None else None,
        "frequency": frequency.to_json() if frequency else None,
        "environment": dict(environment),
        "sources": dict(sources),
    }
    strict: dict[str, Any] = result_file.finite(content)
    return strict


def write(path: Path, content: Mapping[str, Any]) -> str:
    """Write a report so that a reader finds the old one or the whole new one.

    Returns:
        The sha256 of what was written.

    Raises:
        OSError: the folder can't be made or written.
    """
    result_file.make_folder(path.parent)
    return result_file.write_atomically(path, content)


def read(path: Path) -> dict[str, Any]:
    """Read a report, one with nothing but the documented keys too.

    Raises:
        PerfFileError: it can't be read, or is no report.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise PerfFileError(f"{path} can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise PerfFileError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise PerfFileError(f"{path} is no benchmark report: it holds no JSON object")
    problem = _problem(content)
    if problem is not None:
        hint = (
            "; this looks like a verification's result: give the perf_result file"
            if "failures" in content
            else ""
        )
        raise PerfFileError(f"{path} is no benchmark report: {problem}{hint}")
    return content


def _side(side: SideTotals) -> dict[str, Any]:
    return {
        "avg_latency_ms": side.latency_ms,
        "peak_memory_mb": side.peak_memory_mb,
        "operators": dict(side.operators),
    }


def _interval(totals: Totals, entries: Sequence[CaseEntry]) -> list[float] | None:
    """Return the interval of the geometric mean; None unless every case in it has ratios."""
    ratios = [found.ratios for found in entries if found.ratios is not None]
    if not ratios or len(ratios) != len(totals.indices("valid")):
        return None
    return stats.interval(stats.combined(ratios)).to_json()


def _problem(content: Mapping[str, Any]) -> str | None:
    """Say what keeps a file's content from being a report that can be compared."""
    if not isinstance(content.get("op_name"), str):
        return "`op_name` is no text"
    if not _number_or_none(content.get("speedup_vs_torch", ...)):
        return "`speedup_vs_torch` is neither a number nor null"
    shapes = content.get("per_shape_results")
    if not isinstance(shapes, list):
        return "`per_shape_results` is no list"
    numbers = []
    for shape in shapes:
        problem = _shape_problem(shape)
        if problem is not None:
            return f"an entry of `per_shape_results` {problem}"
        numbers.append(shape["case_idx"])
    if len(set(numbers)) != len(numbers):
        return "`per_shape_results` has a case number twice"
    return None


def _shape_problem(shape: Any) -> str | None:
    if not isinstance(shape, dict):
        return "is no object"
    if type(shape.get("case_idx")) is not int:
        return "has no number `case_idx`"
    if shape.get("status") not in ("pass", "fail"):
        return "has a `status` other than pass and fail"
    for side in ("framework", "implementation"):
        figures = shape.get(side)
        if figures is not None and not isinstance(figures, dict):
            return f"has no object `{side}`"
        if figures and not _number_or_none(figures.get("avg_latency_ms")):
            return f"has a latency of `{side}` that is no number"
    return None


def _number_or_none(value: Any) -> bool:
    return value is None or report_view.number(value) is not None

"""A `perf_result.json` as a workflow reads it: times and speed-ups, never counts or verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures, plain_files
from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADVICE = "measure the pair with `python -m pytest_tritonverify benchmark` first"

INDICES = ("nan_indices", "inf_indices", "zero_indices", "negative_indices", "none_indices")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The measurement of one case.

    Attributes:
        case_idx: number of the case, from 1.
        measured: the benchmark ran it to its end.
        input_desc: its inputs.
        framework_ms, implementation_ms: latencies in milliseconds; None where there is none.
        speedup: the former over the latter; None where it failed or is abnormal.
        method: how the implementation was measured, where the report says so.
    """

    case_idx: int
    measured: bool
    input_desc: Any
    framework_ms: float | None
    implementation_ms: float | None
    speedup: float | None
    method: str | None


@dataclass(frozen=True, kw_only=True)
class Performance:
    """What a report says.

    Attributes:
        path: the file.
        op_name: the operator; None where the file doesn't say.
        speedup: `speedup_vs_torch`, the geometric mean; None where there is none.
        latency_ms: arithmetic mean over the implementation's latencies, in milliseconds.
        framework_ms: the same of the reference.
        shapes: the cases by number.
        content: all of it.
    """

    path: Path
    op_name: str | None
    speedup: float | None
    latency_ms: float | None
    framework_ms: float | None
    shapes: Mapping[int, Shape]
    content: Mapping[str, Any]

    def indices(self, name: str) -> list[int]:
        """Return one of the lists of abnormal cases."""
        found = self.content.get(name)
        return [n for n in found if type(n) is int and n > 0] if isinstance(found, list) else []

    @property
    def in_mean(self) -> dict[int, Any]:
        """The inputs of the cases whose speed-ups are in the geometric mean, by number."""
        return {
            number: shape.input_desc
            for number, shape in self.shapes.items()
            if shape.measured and shape.speedup is not None
        }

    @property
    def given_framework_ms(self) -> float | None:
        """The reference's latency that the user has named instead of measuring it."""
        settings = self.content.get("settings")
        if not isinstance(settings, dict) or settings.get("skip_framework") is not True:
            return None
        return figures.positive(settings.get("framework_latency_ms"))

    def is_of_other_code(self, implementation: Path) -> bool:
        """Say whether the report names code that it measured, and it is not this file's."""
        sources = self.content.get("sources")
        named = sources.get("implementation") if isinstance(sources, dict) else None
        return isinstance(named, str) and named != plain_files.digest(implementation)

    def disagreement(self) -> str | None:
        """Say where the geometric mean is not that of the cases, by more than its rounding."""
        speedups = [s.speedup for s in self.shapes.values() if s.measured and s.speedup]
        if self.speedup is None or not speedups:
            return None
        mean = math.exp(math.fsum(map(math.log, speedups)) / len(speedups))
        if math.isclose(mean, self.speedup, rel_tol=1e-3, abs_tol=1e-4):
            return None
        return (
            f"{self.path}: speedup_vs_torch is {self.speedup:.4f}, and the geometric mean of its "
            f"{len(speedups)} cases is {mean:.4f}"
        )


def read(path: Path, advice: str = ADVICE) -> Performance:
    """Read a report.

    Raises:
        files.FileError: it can't be read, or it is no report.
    """
    return of(files.read_object(path, advice), path, advice)


def of(content: Mapping[str, Any], path: Path, advice: str = ADVICE) -> Performance:
    """Return the view of a report that was read already.

    Raises:
        files.FileError: it is no report.
    """
    problem = _problem(content)
    if problem:
        hint = " (a verify_result.json was given for a perf_result.json)"
        raise files.FileError(
            f"{path} is no perf_result.json: {problem}{hint if 'failures' in content else ''}; "
            f"{advice}"
        )
    shapes = [_shape(entry) for entry in content["per_shape_results"]]
    op_name = content.get("op_name")
    return Performance(
        path=path,
        op_name=op_name if isinstance(op_name, str) else None,
        # A mean of positive numbers is positive: anything else is none.
        speedup=figures.positive(content.get("speedup_vs_torch")),
        latency_ms=_latency(content.get("implementation")),
        framework_ms=_latency(content.get("framework")),
        shapes={shape.case_idx: shape for shape in shapes},
        content=content,
    )


def _problem(content: Mapping[str, Any]) -> str | None:
    speedup = content.get("speedup_vs_torch", ...)
    if speedup is not None and figures.number(speedup) is None:
        return "`speedup_vs_torch` is neither a number nor null"
    entries = content.get("per_shape_results")
    if not isinstance(entries, list):
        return "`per_shape_results` is no list"
    numbers = []
    for entry in entries:
        if not isinstance(entry, dict) or type(entry.get("case_idx")) is not int:
            return "an entry of `per_shape_results` has no number `case_idx`"
        if entry.get("status") not in ("pass", "fail"):
            return "an entry of `per_shape_results` has a `status` other than pass and fail"
        numbers.append(entry["case_idx"])
    return "a case number is there twice" if len(set(numbers)) != len(numbers) else None


def _shape(entry: Mapping[str, Any]) -> Shape:
    implementation = entry.get("implementation")
    method = implementation.get("method") if isinstance(implementation, dict) else None
    return Shape(
        case_idx=entry["case_idx"],
        measured=entry["status"] == "pass",
        input_desc=entry.get("input_desc"),
        framework_ms=_latency(entry.get("framework")),
        implementation_ms=_latency(implementation),
        speedup=figures.positive(entry.get("speedup_vs_torch")),
        method=method if isinstance(method, str) else None,
    )


def _latency(side: object) -> float | None:
    found = figures.number(side.get("avg_latency_ms")) if isinstance(side, dict) else None
    return found if found is not None and found >= 0 else None

"""How benchmarks look on a terminal: a line for every case as it comes in, and a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.benchmark.measurement import CaseMeasurement, SideMeasurement

BAR_WIDTH = 24
_FULL, _PLAIN = "\u2588", "#"
_MAX_ROWS = 40
_HEADINGS = ("case", "reference", "implementation", "speed-up", "95 % interval", "")
_METHODS = {
    "cpu_wall_clock": "wall clock on Triton's interpreter, which says nothing about a device",
    "cuda_events": "events around each forward, as the profiler sees no kernels here",
    "cuda_profiler": "device time of all kernels",
    "npu_profiler": "device time of all kernels",
    "given": "the reference's latency was given",
}


def progress(
    label: str, case: CaseMeasurement, done: int, of: int, elapsed_s: float, speedup: float | None
) -> str:
    """Return the line for a case that has been measured.

    Args:
        label: the pair's name.
        case: the measurement.
        done: how many cases of the pair have been measured.
        of: how many are to be.
        elapsed_s: seconds since the first one began.
        speedup: of the case; None where there is none.
    """
    if case.passed:
        what = f"{_time(case.framework)} -> {_time(case.implementation)}, {_factor(speedup)}"
    else:
        what = f"failed: {case.error_type}"
    return f"benchmark {label}: case {done} of {of}: {what} ({elapsed_s:.1f} s elapsed)"


def _time(side: SideMeasurement | None) -> str:
    return milliseconds(None if side is None else side.latency_ms)


def milliseconds(value: float | None) -> str:
    """Return a latency with three digits and a fitting unit."""
    if value is None:
        return "not measured"
    if not math.isfinite(value) or value < 0:
        return f"{value} ms"
    for unit, factor in (("s", 1e-3), ("ms", 1.0)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}" if value * factor < 1e3 else f"{value:.0f} ms"  # noqa: PLR2004 - three digits
    return f"{value * 1e3:.3g} us"


def _factor(value: float | None) -> str:
    return "no speed-up" if value is None else f"{value:.3g}x"


def table(content: Mapping[str, Any], *, plain: bool) -> list[str]:
    """Return the table of one report.

    Args:
        content: as in the report's file.
        plain: the terminal shows ASCII only.
    """
    shapes: Sequence[Mapping[str, Any]] = content["per_shape_results"]
    largest = max((s["speedup_vs_torch"] or 0.0 for s in shapes), default=0.0)
    rows = [_HEADINGS, *(_row(shape, largest, plain=plain) for shape in shapes[:_MAX_ROWS])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if len(shapes) > _MAX_ROWS:
        lines.append(f"... and {len(shapes) - _MAX_ROWS} more cases in the report")
    return [*lines, *_methods(shapes)]


def _row(shape: Mapping[str, Any], largest: float, *, plain: bool) -> tuple[str, ...]:
    name = str(shape["name"] or f"case {shape['case_idx']}")
    if shape["status"] != "pass":
        return (name, "-", "-", "-", "-", f"failed: {shape['error_type']}")
    sides = [shape[side] or {} for side in ("framework", "implementation")]
    speedup, interval = shape["speedup_vs_torch"], shape["speedup_ci95"]
    noisy = " noisy" if any(side.get("noisy") for side in sides) else ""
    return (
        name,
        *(milliseconds(side.get("avg_latency_ms")) for side in sides),
        f"{speedup:.3g}x" if speedup is not None else f"{shape['speedup_class']}",
        f"{interval[0]:.3g} to {interval[1]:.3g}" if interval else "-",
        bar(speedup, largest, plain=plain) + noisy,
    )


def bar(speedup: float | None, largest: float, *, plain: bool) -> str:
    """Return a bar for a speed-up, on a scale that begins at 0.

    Args:
        speedup: None gives no bar.
        largest: the speed-up whose bar is `BAR_WIDTH` long.
        plain: use ASCII.
    """
    if speedup is None or largest <= 0:
        return ""
    return (_PLAIN if plain else _FULL) * max(round(BAR_WIDTH * speedup / largest), 1)


def _methods(shapes: Sequence[Mapping[str, Any]]) -> list[str]:
    sides = [s[side] for s in shapes for side in ("framework", "implementation") if s[side]]
    methods = dict.fromkeys(side["method"] for side in sides)
    return [f"{name}: {_METHODS[name]}" for name in methods if name in _METHODS]

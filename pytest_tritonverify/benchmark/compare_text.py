"""Comparisons as a table for a terminal and as Markdown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_tritonverify import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.benchmark.compare import Comparison, Row
    from pytest_tritonverify.benchmark.stats import Interval

_NONE = "-"


def text(comparison: Comparison) -> str:
    """Return a comparison as lines for a terminal."""
    cells = [_head(comparison), *(_cells(row) for row in comparison.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"{comparison.op_name}: {comparison.before} -> {comparison.after}"]
    for line in cells:
        # Names and reasons begin at their left edge, figures end at their right one.
        padded = [
            cell.ljust(width) if place in (0, len(line) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(padded)}".rstrip())
    lines += [f"  {line}" for line in _summary(comparison)]
    return "\n".join(lines)


def markdown(comparison: Comparison) -> str:
    """Return a comparison in GitHub's Markdown."""
    head = _head(comparison)
    title = f"{comparison.op_name}: {comparison.before} → {comparison.after}"
    lines = [
        f"### {_escaped(title)}",
        "",
        f"| {' | '.join(map(_escaped, head))} |",
        f"|{'|'.join(['---', *(['--:'] * (len(head) - 2)), '---'])}|",
        *(f"| {' | '.join(map(_escaped, _cells(row)))} |" for row in comparison.rows),
        "",
        *(f"- {_escaped(line)}" for line in _summary(comparison)),
    ]
    return "\n".join(lines)


def _head(comparison: Comparison) -> list[str]:
    names = _short(comparison.before), _short(comparison.after)
    if names[0] == names[1]:
        # What tells them apart stands in the title.
        names = ("before", "after")
    return ["case", *(f"{name} ms" for name in names), "ratio", "95 %", "verdict"]


def _short(name: str) -> str:
    """Return what stands above a column of figures for a report or run: a path is too wide."""
    return os.path.basename(os.path.normpath(name)).removesuffix(".json")  # noqa: PTH119 - a run's name, or a path


def _cells(row: Row) -> list[str]:
    return [
        row.label,
        _ms(row.before_ms),
        _ms(row.after_ms),
        _NONE if row.ratio is None else f"{row.ratio:.3f}x",
        _ends(row.interval),
        _verdict(row.verdict, [reason.message for reason in row.reasons]),
    ]


def _summary(comparison: Comparison) -> list[str]:
    reasons = [reason.message for reason in comparison.reasons]
    lines = [f"all: {_verdict(comparison.verdict, reasons)}"]
    if comparison.ratio is not None:
        ends = f" {_ends(comparison.interval)}" if comparison.interval else ""
        lines.append(f"geometric mean of the ratios: {comparison.ratio:.3f}x{ends}")
    over, after, before = (
        figures.shown(speedup)
        for speedup in (
            comparison.speedup_vs_baseline,
            comparison.after_speedup,
            comparison.before_speedup,
        )
    )
    lines.append(f"speedup_vs_baseline: {over} ({after} over {before} against the reference)")
    return lines + [f"warning: {warning}" for warning in comparison.warnings]


def _verdict(word: str, reasons: Sequence[str]) -> str:
    return f"{word}: {'; '.join(reasons)}" if reasons else word


def _ms(value: float | None) -> str:
    return _NONE if value is None else f"{value:.4g}"


def _ends(interval: Interval | None) -> str:
    return _NONE if interval is None else f"[{interval.low:.3f}, {interval.high:.3f}]"


def _escaped(cell: str) -> str:
    for char in "\\|*_`<[":
        cell = cell.replace(char, f"\\{char}")
    return " ".join(cell.split())

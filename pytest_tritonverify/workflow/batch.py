"""`batch_report.md`: many work directories side by side."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.workflow import files, layout, outcome, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_NAME = "batch_report.md"

_ADVICE = "write it with `python -m pytest_tritonverify report`"
_HEAD = (
    "算子",
    "状态",
    "通过率",
    "avg_latency_ms",
    "speedup_vs_torch",
    "speedup_vs_baseline",
    "备注",
)
# A batch's folder holds one for each operator, and that a folder for the workflow's output.
_DEEPEST = 4
_NOT_SEARCHED = ("output", "__pycache__")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One work directory.

    Attributes:
        name: the operator, or the folder's name where that is not known.
        folder: the work directory.
        success: it has a kernel that has passed.
        content: its summary; empty where it has none.
        problem: what is wrong with the summary.
    """

    name: str
    folder: Path
    success: bool
    content: dict[str, Any]
    problem: str = ""

    def value(self, name: str) -> Any:
        """Return a figure of the summary."""
        data = self.content.get("perf_data")
        return data.get(name) if isinstance(data, dict) else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as builtins."""
        names = ("passed_cases", "total_cases", "avg_latency_ms", "speedup_vs_torch")
        return {
            "op_name": self.name,
            "workdir": str(self.folder),
            "success": self.success,
            "optimized": self.content.get("optimized") is True,
            **{name: self.value(name) for name in (*names, "speedup_vs_baseline")},
            "failure_phase": self.content.get("failure_phase"),
            "failure_reason": self.content.get("failure_reason"),
            "problem": self.problem or None,
        }


@dataclass(frozen=True)
class Batch:
    """All work directories below a folder.

    Attributes:
        folder: the folder.
        rows: by path.
    """

    folder: Path
    rows: tuple[Row, ...]

    @property
    def speedup(self) -> float | None:
        """Geometric mean over the operators' own."""
        found = [figures.positive(row.value("speedup_vs_torch")) for row in self.rows]
        speedups = [value for value in found if value is not None]
        if not speedups:
            return None
        return math.exp(math.fsum(map(math.log, speedups)) / len(speedups))

    def to_json(self) -> dict[str, Any]:
        """Return the batch as builtins."""
        good = sum(row.success for row in self.rows)
        return {
            "total": len(self.rows),
            "succeeded": good,
            "failed": len(self.rows) - good,
            "optimized": sum(row.content.get("optimized") is True for row in self.rows),
            "speedup_vs_torch": figures.rounded(self.speedup),
            "workdirs": [row.to_json() for row in self.rows],
        }

    def to_text(self) -> str:
        """Return the report in Markdown."""
        counts = self.to_json()
        lines = [
            "# 批量执行报告",
            "",
            f"| {' | '.join(_HEAD)} |",
            f"|{'---|' * len(_HEAD)}",
            *map(_line, self.rows),
            "",
            "## 汇总",
            "",
            f"- 总数: {counts['total']}",
            f"- 成功: {counts['succeeded']}",
            f"- 失败: {counts['failed']}",
            f"- 优化成功: {counts['optimized']}",
            f"- 几何平均加速比: {figures.shown(self.speedup)}",
        ]
        return "\n".join(lines) + "\n"


def collect(folder: Path) -> Batch:
    """Gather the summaries of all work directories below a folder.

    Raises:
        files.FileError: there is no such folder, or no work directory in it.
    """
    if not folder.is_dir():
        raise files.FileError(f"there is no folder {folder}: give the one with work directories")
    rows = tuple(map(_row, sorted(_workdirs(folder))))
    if not rows:
        raise files.FileError(
            f"there is no work directory in {folder}: each has an output/iter_<N> or a "
            f"{layout.SUMMARY}"
        )
    return Batch(folder, rows)


def _workdirs(folder: Path) -> Iterator[Path]:
    for parent, names, _ in os.walk(folder):
        path = Path(parent)
        if layout.is_workdir(path):
            yield path
            names.clear()
        depth = len(path.relative_to(folder).parts)
        deeper = depth < _DEEPEST
        names[:] = [name for name in names if deeper and name not in _NOT_SEARCHED]


def _row(folder: Path) -> Row:
    name = folder.name
    # A summary alone tells enough.
    with contextlib.suppress(files.FileError):
        name = layout.open_workdir(folder).op_name
    try:
        content = files.read_object(folder / layout.SUMMARY, _ADVICE)
    except files.FileError as error:
        return Row(name=name, folder=folder, success=False, content={}, problem=str(error))
    if not isinstance(content.get("success"), bool):
        text = f"{folder / layout.SUMMARY} says nothing of `success`: {_ADVICE}"
        return Row(name=name, folder=folder, success=False, content=content, problem=text)
    problem = _disagreement(folder, content)
    success = content["success"] and not problem
    return Row(name=name, folder=folder, success=success, content=content, problem=problem)


def _disagreement(folder: Path, content: dict[str, Any]) -> str:
    """Say where a summary, by whomever it was written, is not that of its work directory."""
    try:
        found = summary.document(outcome.of(layout.open_workdir(folder)))
    except files.FileError:
        # A summary that was moved away from its files can't be compared.
        return ""
    if not (folder / "output").is_dir():
        return ""
    claimed, real = ({**one, **_data(one)} for one in (content, found))
    for name in ("success", "total_cases", "passed_cases", "failed_cases"):
        if name in claimed and claimed[name] != real.get(name):
            text = f"{layout.SUMMARY} says {name} {claimed[name]!r}, the results say"
            return f"{text} {real.get(name)!r}"
    return ""


def _data(content: dict[str, Any]) -> dict[str, Any]:
    data = content.get("perf_data")
    return data if isinstance(data, dict) else {}


def _line(row: Row) -> str:
    counts = [row.value(name) for name in ("passed_cases", "total_cases")]
    rate = "/".join(map(str, counts)) if None not in counts else "-"
    notes = [
        str(row.content[name])
        for name in ("failure_phase", "failure_reason")
        if row.content.get(name)
    ]
    if row.content.get("optimized") is True:
        notes.append("optimized")
    notes += [row.problem] if row.problem else []
    cells = [
        row.name,
        "✅ 成功" if row.success else "❌ 失败",
        rate,
        *(
            figures.shown(figures.number(row.value(name)))
            for name in ("avg_latency_ms", "speedup_vs_torch", "speedup_vs_baseline")
        ),
        "; ".join(notes),
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write(batch: Batch, output: Path | None = None) -> Path:
    """Write the report.

    Returns:
        Its path.

    Raises:
        files.FileError: it can't be written.
    """
    path = output or batch.folder / FILE_NAME
    files.write_text(path, batch.to_text())
    return path

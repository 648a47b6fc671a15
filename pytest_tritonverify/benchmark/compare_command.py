"""The command `compare`: two reports, or two runs with reports of the same pairs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import compare_text, history, perf_file
from pytest_tritonverify.benchmark.compare import Comparison, ComparisonError, compare
from pytest_tritonverify.results import result_file

if TYPE_CHECKING:
    import argparse

_USAGE = "a report (perf_result.json), a folder with reports, or a saved run (number or name)"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Define the command's arguments."""
    parser.add_argument("before", metavar="A", help=f"the baseline: {_USAGE}")
    parser.add_argument("after", metavar="B", help="what is compared with it, likewise")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--markdown", action="store_true", help="print Markdown")


def run(options: argparse.Namespace) -> int:
    """Compare, and print what came of it.

    Returns:
        0 where everything could be compared, whatever came out; 1 otherwise.
    """
    saved = history.History(Path(history.FOLDER))
    try:
        before, after = _place(options.before, saved), _place(options.after, saved)
        pairs, lonely = _paired(before, after)
    except (history.HistoryError, ComparisonError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    done, problems = _compared(pairs, (options.before, options.after))
    problems = [*lonely, *problems]
    if options.json:
        content = {"comparisons": [found.to_json() for found in done], "problems": problems}
        print(json.dumps(result_file.finite(content), ensure_ascii=False, indent=2))
    else:
        show = compare_text.markdown if options.markdown else compare_text.text
        print("\n\n".join(map(show, done)))
    for problem in problems:
        print(f"compare: {problem}", file=sys.stderr)
    return 1 if problems or not done else 0


def _place(wanted: str, saved: history.History) -> Path:
    path = Path(wanted)
    if path.exists():
        return path
    if path.suffix == ".json" or wanted.startswith((".", os.sep)):
        raise ComparisonError(f"there is no {wanted}")
    return saved.find(wanted).path


def _paired(before: Path, after: Path) -> tuple[list[tuple[Path, Path]], list[str]]:
    """Return reports to be compared, and sentences on those that have no partner."""
    if before.is_dir() != after.is_dir():
        raise ComparisonError("compare two reports or two runs, not a report with a run")
    if not before.is_dir():
        return [(before, after)], []
    first, second = history.reports_in(before), history.reports_in(after)
    both = [key for key in first if key in second]
    if not both:
        counts = f"{len(first)} in {before}, {len(second)} in {after}"
        raise ComparisonError(f"no report is in both ({counts})")
    lonely = [f"{key} is in {before} only" for key in first if key not in second]
    lonely += [f"{key} is in {after} only" for key in second if key not in first]
    return [(first[key], second[key]) for key in both], lonely


def _compared(
    pairs: list[tuple[Path, Path]], names: tuple[str, str]
) -> tuple[list[Comparison], list[str]]:
    done, problems = [], []
    for before, after in pairs:
        try:
            contents: tuple[dict[str, Any], ...] = (perf_file.read(before), perf_file.read(after))
            done.append(compare(*contents, names=names))
        except (perf_file.PerfFileError, ComparisonError) as error:
            where = "" if len(pairs) == 1 else f"{after.stem}: "
            problems.append(f"{where}{error}")
    return done, problems

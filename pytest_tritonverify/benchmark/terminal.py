"""What is printed of benchmarks while they run, and at the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import aggregate, compare_text, display
from pytest_tritonverify.benchmark.measurement import CaseMeasurement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.benchmark.benchmarks import Benchmarks
    from pytest_tritonverify.benchmark.perf_ledger import PerfAccount


_NOISE = (
    "times with noise, which say little; is the device used by others, or its clock changing? The "
    "report has the figures"
)


def progress(benchmarks: Benchmarks, payload: Mapping[str, Any], reporter: Any) -> None:
    """Print a line for a case that has been measured.

    Args:
        benchmarks: the run's.
        payload: what the item's report carries.
        reporter: pytest's terminal reporter, or None.
    """
    found = payload.get("benchmark")
    if found is None or found["case"] is None or reporter is None or reporter.verbosity < 0:
        return
    account = benchmarks.account(Path(payload["implementation"]))
    if account is None:
        return
    case = CaseMeasurement.from_json(found["case"])
    speedup = aggregate.case_speedup(case).valid if case.passed else None
    elapsed = sum(done.seconds for done in account.cases.values())
    count, of = len(account.cases), len(account.names)
    reporter.ensure_newline()
    reporter.write_line(display.progress(account.pair.label, case, count, of, elapsed, speedup))


def summary(benchmarks: Benchmarks, cwd: Path, reporter: Any) -> None:
    """Print a table for every pair that was measured."""
    reporter.write_sep("=", "Triton benchmark")
    plain = not _shows_blocks()
    for account in benchmarks.accounts:
        _pair(benchmarks, account, cwd, reporter, plain=plain)
    kept = benchmarks.kept
    for comparison in kept.comparisons:
        reporter.write_line(compare_text.text(comparison))
    for problem in kept.problems:
        reporter.write_line(f"warning: {problem}", yellow=True)
    if kept.run is not None:
        reporter.write_line(f"saved: {_short(kept.run.path, cwd)}")


def _pair(
    benchmarks: Benchmarks, account: PerfAccount, cwd: Path, reporter: Any, *, plain: bool
) -> None:
    label = account.pair.label
    if account.refusal is not None:
        reporter.write_line(f"{label}: refused, since it is not verified", red=True)
        return
    if not account.cases:
        reporter.write_line(f"{label}: no case was measured", red=True)
        return
    content = benchmarks.content(account)
    speedup = content["speedup_vs_torch"]
    overall = "no speed-up" if speedup is None else f"{speedup:.3g}x"
    interval = content["speedup_ci95"]
    if interval:
        overall += f" ({interval[0]:.3g} to {interval[1]:.3g})"
    counts = f"{content['passed_cases']} of {account.total} cases"
    reporter.write_line(f"{label}: {overall}, geometric mean over {counts}", bold=True)
    for line in display.table(content, plain=plain):
        reporter.write_line(f"  {line}")
    for note in _notes(account, content, cwd):
        reporter.write_line(f"  {note}")


def _notes(account: PerfAccount, content: Mapping[str, Any], cwd: Path) -> list[str]:
    cases: dict[str, list[str]] = {}
    for shape in content["per_shape_results"]:
        for warning in shape["warnings"]:
            text = _NOISE if warning["code"] == "noisy" else warning["message"]
            numbers = cases.setdefault(text, [])
            if str(shape["case_idx"]) not in numbers:
                numbers.append(str(shape["case_idx"]))
    notes = [f"warning: {warning['message']}" for warning in content["warnings"]]
    notes += [
        f"warning: case {', '.join(numbers)}: {message}" for message, numbers in cases.items()
    ]
    if account.problem is not None:
        notes.append(f"warning: {account.problem}")
    elif not account.full:
        notes.append(
            f"only {len(account.names)} of {account.total} cases were selected, so "
            f"{account.path.name} was left as it was"
        )
    elif account.written is not None:
        notes.append(f"report: {_short(account.path, cwd)}")
    return notes


def _short(path: Path, cwd: Path) -> Path:
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path


def _shows_blocks() -> bool:
    try:
        display.bar(1.0, 1.0, plain=False).encode(
            getattr(sys.__stdout__, "encoding", "") or "ascii"
        )
    except (LookupError, UnicodeEncodeError):
        return False
    return True

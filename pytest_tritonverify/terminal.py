"""What the plugin prints: one header line, and a table of pairs at the end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import own_cache
from pytest_tritonverify.execution import task_faults
from pytest_tritonverify.results.records import TIMEOUT, WARNED
from pytest_tritonverify.results.result_file import COMPILE
from pytest_tritonverify.strictness.limits import StrictLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.results.ledger import PairAccount
    from pytest_tritonverify.session import VerifySession

_MAX_LISTED_FILES = 12
_HEADINGS = ("operator", "implementation", "cases", "passed", "seconds", "verdict")


def header(session: VerifySession) -> list[str]:
    """Return the header lines: device, number of pairs, and what is odd about the folders."""
    engine = session.engine
    name = engine.device_facts.get("name")
    where = "Triton's CPU interpreter" if engine.device.interpreted else name or "accelerator"
    known = (*session.findings.pairs, *session.activation.named)
    pairs = {pair.implementation for pair in known if session.settings.selection.admits(pair)}
    lines = [f"tritonverify: {_count(len(pairs), 'pair')}, device {engine.device.name} ({where})"]
    lines += [
        f"tritonverify: warning: there seems to be an accelerator, {kind}, but it can't be used: "
        f"{reason}"
        for kind, reason in engine.passed_over.items()
    ]
    if session.settings.in_process:
        lines.append("tritonverify: in pytest's own process; nothing is isolated")
    if session.compilations is not None:
        lines += [f"tritonverify: {line}" for line in session.compilations.described()]
    if session.settings.strict:
        changed = _changed_limits(session)
        lines.append(f"tritonverify: strict: more is asked for than the standard does{changed}")
    elif _changed_limits(session):
        lines.append("tritonverify: warning: --verify-strict-limit does nothing by itself")
    lines += [f"tritonverify: {line}" for line in _wishes(session)]
    lines += [f"tritonverify: {line}" for line in _oddities(session)]
    return lines


def _wishes(session: VerifySession) -> list[str]:
    """Return lines on what each case is put through beyond one run."""
    settings, found = session.settings, []
    if settings.stress > 1:
        found.append(f"stress: each case runs {settings.stress} times")
    if settings.trials > 1:
        found.append(f"trials: each case is judged on the inputs of {settings.trials} seeds")
    if settings.golden != "own":
        found.append(f"golden: computed in {settings.golden}")
    return found


def _oddities(session: VerifySession) -> list[str]:
    """Return warnings that stand at the beginning and at the end: `-q` leaves out the first."""
    settings, found = session.settings, []
    makes_cache = settings.fresh_cache or settings.cache_ab
    if settings.keep_cache and not makes_cache:
        found.append("warning: --verify-keep-cache does nothing by itself")
    problem = own_cache.redirected() if makes_cache else None
    if problem is not None:
        found.append(f"warning: {problem}")
    return [*found, *_half_pairs(session)]


def _changed_limits(session: VerifySession) -> str:
    """Name the thresholds that are not the default ones."""
    limits, default = session.settings.strict_limits.to_json(), StrictLimits().to_json()
    changed = [f"{name}={limits[name]:g}" for name in limits if limits[name] != default[name]]
    return f" ({', '.join(changed)})" if changed else ""


def without_config_file(line: str, name: str) -> str:
    """Return a line of pytest's header without its `configfile: ...` for a file of that name."""
    before, found, after = line.partition("configfile: ")
    return before.removesuffix(", ") if found and after.endswith(name) else line


def _half_pairs(session: VerifySession) -> list[str]:
    cwd = session.activation.cwd
    return [f"warning: {_short(path, cwd)}: {text}" for path, text in session.findings.lonely]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def progress(session: VerifySession, payload: Mapping[str, Any], reporter: Any) -> None:
    """Print a line for a case that has been measured.

    Args:
        session: the run.
        payload: what the item's report carries.
        reporter: pytest's terminal reporter, or None.
    """
    if session.benchmarks is not None and "benchmark" in payload:
        from pytest_tritonverify.benchmark import terminal as of_benchmarks

        of_benchmarks.progress(session.benchmarks, payload, reporter)


@contextlib.contextmanager
def compiling(pair: Pair, reporter: Any) -> Iterator[Callable[[int, int], None]]:
    """Show how many of a pair's kernels have been compiled, while they are, on a terminal.

    Args:
        pair: the pair.
        reporter: pytest's terminal reporter, or None.
    """
    shown: list[int] = []

    def say(done: int, total: int) -> None:
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return
        if not shown:
            reporter.ensure_newline()
        shown.append(done)
        reporter.rewrite(f"{pair.label}: {done} of {total} kernels compiled", erase=True)

    try:
        yield say
    finally:
        if shown:
            reporter.line("")


def _compiled(account: PairAccount, label: str) -> list[str]:
    """Say how many kernels compile for which target."""
    check = account.checks.get(COMPILE)
    kernels = (check.report or {}).get("kernels", []) if check is not None else []
    counts = []
    for target in dict.fromkeys(kernel["target"] for kernel in kernels):
        of = [kernel["compiles"] for kernel in kernels if kernel["target"] == target]
        counts.append(f"{sum(of)} of {len(of)} for {target}")
    if not counts:
        return []
    lines = [f"{label}: kernels that compile: {', '.join(counts)}"]
    if check is not None and check.passed and check.message:
        # It has passed, and not everything was asked for.
        lines += [f"warning: {label}, {COMPILE}: {line}" for line in check.message.splitlines()]
    return lines


def summary(session: VerifySession, reporter: Any, *, full_paths: bool = False) -> None:
    """Print a row for every pair, then what the user should know about files and warnings.

    Args:
        session: the run.
        reporter: pytest's terminal reporter.
        full_paths: tell result files by their absolute paths, as for a reader in another folder.
    """
    if session.ledger is None:
        return
    accounts = sorted(session.ledger.accounts.values(), key=lambda a: a.pair)
    if session.benchmarks is not None and session.benchmarks.accounts:
        from pytest_tritonverify.benchmark import terminal as of_benchmarks

        of_benchmarks.summary(session.benchmarks, session.activation.cwd, reporter)
        if not accounts:
            return
    reporter.write_sep("=", "Triton verification")
    if not accounts:
        reporter.line("no pair was judged: nothing was selected, or nothing was found")
        return
    operators = _operators(accounts, session.activation.cwd)
    rows = [_HEADINGS, *map(_row, accounts, operators)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    for index, row in enumerate(rows):
        cells = [_aligned(cell, widths[i], i) for i, cell in enumerate(row)]
        markup = {"bold": True} if index == 0 else _colour(accounts[index - 1])
        reporter.write_line("  ".join(cells).rstrip(), **markup)
    for line in _notes(session, accounts, operators, full_paths=full_paths):
        reporter.write_line(line)


def github_summary(session: VerifySession, reporter: Any) -> None:
    """Append the outcome to the page of a GitHub step, where there is one."""
    path = session.settings.github_summary
    if path is None or session.ledger is None:
        return
    # Elsewhere nobody needs it.
    from pytest_tritonverify import github_summary

    problem = github_summary.append(session, path)
    if problem is not None:
        reporter.write_line(f"warning: {problem}")


def html_page(session: VerifySession, problem: str | None, reporter: Any) -> None:
    """Say where the page about the run is, or why there is none."""
    if problem is not None:
        reporter.write_line(f"warning: {problem}")
    elif session.settings.html is not None:
        reporter.write_line(f"page: {_short(session.settings.html, session.activation.cwd)}")


def _aligned(cell: str, width: int, column: int) -> str:
    numeric = 2 <= column <= 4  # noqa: PLR2004 - cases, passed, seconds
    return cell.rjust(width) if numeric else cell.ljust(width)


def _colour(account: PairAccount) -> dict[str, bool]:
    return {"green": True} if account.green else {"red": True}


def _operators(accounts: list[PairAccount], cwd: Path) -> list[str]:
    """Return what to call the operators: with their folder where a name stands for several."""
    pairs = [account.pair for account in accounts]
    labels = [pair.label for pair in pairs]
    return [
        pair.op
        if labels.count(pair.label) == 1
        else _short(pair.implementation.with_name(pair.op), cwd)
        for pair in pairs
    ]


def _row(account: PairAccount, operator: str) -> tuple[str, ...]:
    seconds = sum(record.seconds for record in account.records.values())
    seconds += sum(check.seconds for check in account.checks.values())
    if account.load_failure is not None:
        verdict = f"failed: {account.load_failure['error_type']}"
    elif account.green:
        verdict = "passed" if account.selected else "passed (no case was selected)"
    elif not account.total:
        verdict = "failed: no cases"
    else:
        verdict = f"failed: {_kinds(account)}"
    return (
        operator,
        account.pair.impl_name,
        "?" if account.total is None else str(len(account.selected)),
        str(account.passed_cases),
        f"{seconds:.1f}",
        verdict,
    )


def _kinds(account: PairAccount) -> str:
    objection = account.objection
    if objection is not None:
        number = objection.regression_type
        return (objection.error_type or "Error") + (f", type {number}" if number else "")
    kinds: dict[str, int] = {}
    for record in account.records.values():
        if not record.passed:
            kind = "FlakyCase" if record.flaky else record.error_type or "Error"
            kinds[kind] = kinds.get(kind, 0) + 1
    missing = len(account.selected) - len(account.records)
    if missing > 0:
        kinds["NotRun"] = kinds.get("NotRun", 0) + missing
    compiled = account.checks.get(COMPILE)
    if compiled is not None and not compiled.passed:
        kinds[compiled.error_type or "Error"] = 1
    if not kinds:
        return "its result could not be written"
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _notes(
    session: VerifySession, accounts: list[PairAccount], operators: list[str], *, full_paths: bool
) -> list[str]:
    cwd = session.activation.cwd
    written = [account.path for account in accounts if account.written]
    notes = _result_files(written, None if full_paths else cwd)
    for account, operator in zip(accounts, operators, strict=True):
        label = f"{operator} ({account.pair.impl_name})"
        if any(record.error_type == TIMEOUT for record in account.records.values()):
            notes.append(f"验证超时: {label}")
        if account.problem is not None:
            notes.append(f"warning: {label}: {account.problem}")
        elif account.journal is not None and account.journal.problem is not None:
            notes.append(f"warning: {label}: no journal was kept: {account.journal.problem}")
        if not account.full:
            notes.append(
                f"{label}: only {len(account.selected)} of {account.total} cases were selected, "
                f"so {account.path.name} was left as it was"
            )
        notes += _standins(account, label)
        notes += _cache_trial(account, label)
        notes += _compiled(account, label)
        notes += _warnings(account, label)
    notes += [
        f"warning: {_short(task, cwd)} defines {task_faults.INPUTS}() too, which is not used: "
        f"{task_faults.GROUPS}() makes the cases"
        for task in dict.fromkeys(account.pair.task for account in accounts)
        if task_faults.is_overridden(task)
    ]
    return [*notes, *_oddities(session)]


def _result_files(paths: list[Path], cwd: Path | None) -> list[str]:
    if len(paths) > _MAX_LISTED_FILES:
        return [f"{len(paths)} result files were written beside their pairs"]
    return [f"result: {path if cwd is None else _short(path, cwd)}" for path in paths]


def _standins(account: PairAccount, label: str) -> list[str]:
    """Say where the CPU answered for an accelerator."""
    found: dict[str, set[str]] = {}
    for record in account.records.values():
        if record.standin is not None:
            found.setdefault(record.standin["kind"], set()).update(record.standin["used"])
    return [
        f"{label}: the CPU stood in for {kind} ({', '.join(sorted(used)) or 'nothing was asked'})"
        for kind, used in found.items()
    ]


def _cache_trial(account: PairAccount, label: str) -> list[str]:
    """Say whose the accuracy failures are, as far as a second run has shown it."""
    found = account.cache_ab
    if found is None:
        return []
    words = ": ".join(part for part in (found["conclusion"], found["message"]) if part)
    kept = f" ({found['kept_cache']})" if found["kept_cache"] else ""
    return [f"cache A/B: {label}: {words}{kept}"]


def _warnings(account: PairAccount, label: str) -> list[str]:
    """Say every distinct warning of a pair once, with the cases that it concerns."""
    cases: dict[str, list[int]] = {}
    for case_idx, record in sorted(account.records.items()):
        for warning in record.warnings:
            cases.setdefault(warning["message"], []).append(case_idx)
    found = [
        f"warning: {label}, {check.name}: {(check.message or '').partition(chr(10))[0]}"
        for check in account.checks.values()
        if check.status == WARNED
    ]
    found += [
        f"warning: {label}, case {', '.join(map(str, numbers))}: {message}"
        for message, numbers in cases.items()
    ]
    return found


def _short(path: Path, cwd: Path) -> str:
    try:
        return str(path.relative_to(cwd))
    except ValueError:
        return str(path)

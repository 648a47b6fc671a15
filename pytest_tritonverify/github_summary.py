"""A run's outcome in Markdown, for the page that GitHub shows of a job's step."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.results.records import FAILED, WARNED
from pytest_tritonverify.workflow import grouping
from pytest_tritonverify.workflow.verification import FailedCase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_tritonverify.results.ledger import PairAccount
    from pytest_tritonverify.session import VerifySession

SIZE_LIMIT = 1 << 20
"""Bytes of one step's page; GitHub shows nothing of a longer one."""

_HEADINGS = ("operator", "implementation", "passed", "verdict")
_ROOM = 2000


def append(session: VerifySession, path: Path) -> str | None:
    """Append the outcome to a step's page.

    Args:
        session: the session, at its end.
        path: the page's file.

    Returns:
        What went wrong, in a sentence; None where it was written.
    """
    text_ = text(session)
    try:
        room = SIZE_LIMIT - (path.stat().st_size if path.exists() else 0)
        with path.open("ab") as stream:
            stream.write(_cut(text_, room))
    except OSError as error:
        return f"the step summary {path} can't be written: {error.strerror or error}"
    return None


def _cut(text_: str, room: int) -> bytes:
    data = text_.encode("utf-8", "backslashreplace")
    if len(data) <= room:
        return data
    note = b"\n\n(cut: GitHub shows a step's first mebibyte)\n"
    # A character that is cut in two would spoil the page.
    kept = data[: max(room - len(note), 0)].decode("utf-8", "ignore").encode()
    return kept + note if len(kept) + len(note) <= room else b""


def text(session: VerifySession) -> str:
    """Return the outcome: a table of pairs, and below it what failed of each."""
    accounts = [] if session.ledger is None else list(session.ledger.accounts.values())
    accounts.sort(key=lambda account: account.pair)
    green = sum(account.green for account in accounts)
    lines = [
        "## Triton verification",
        "",
        f"{green} of {len(accounts)} pairs passed, on {session.engine.device.name}.",
        "",
    ]
    speedups = _speedups(session.overview())
    headings = (*_HEADINGS, "speed-up") if speedups else _HEADINGS
    if accounts:
        lines += [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for account in accounts:
        cells = [
            account.pair.op,
            account.pair.impl_name,
            f"{account.passed_cases}/{'?' if account.total is None else len(account.selected)}",
            "✅ passed" if account.green else "❌ failed",
        ]
        if speedups:
            key = (account.pair.op, account.pair.impl_name)
            cells.append(figures.shown(speedups.get(key)))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    for account in accounts:
        if not account.green:
            lines += _details(account)
    return "\n".join([*lines, ""])


def _speedups(overview: dict[str, Any]) -> dict[tuple[str, str], float | None]:
    """Return the geometric means of a run that has measured, by operator and implementation."""
    return {
        (entry["op_name"], entry["triton_impl_name"]): figures.positive(entry["speedup_vs_torch"])
        for entry in overview.get("benchmarks", ())
    }


def _details(account: PairAccount) -> Iterator[str]:
    """Yield a part of the page that opens by a click: why a pair has failed."""
    failures = [
        FailedCase(
            case_idx=record.case_idx,
            input_desc=record.input_desc,
            error_type="FlakyCase" if record.flaky else record.error_type or "Error",
            error_msg=record.error_msg or "",
            metrics=record.metrics,
        )
        for _, record in sorted(account.records.items())
        if not record.passed
    ]
    said = [
        f"{check.name}: {check.message or check.error_type}"
        for check in account.checks.values()
        if check.status in (FAILED, WARNED)
    ]
    if account.load_failure is not None:
        said.append(str(account.load_failure["error_msg"]))
    if account.problem is not None:
        said.append(account.problem)
    missing = len(account.selected) - len(account.records)
    if missing > 0 and account.load_failure is None:
        said.append(f"{missing} cases did not run")
    if failures:
        said.append(grouping.text(failures, len(account.selected), _ROOM))
    yield ""
    yield f"<details><summary>{html.escape(account.pair.label)}</summary>"
    yield ""
    yield _pre(said)
    yield ""
    yield "</details>"


def _pre(parts: Sequence[str]) -> str:
    # Not a fenced block: what candidates print may hold any fence.
    return f"<pre>{html.escape(chr(10).join(parts))}</pre>".replace("\n\n", "\n&#8203;\n")


def _cell(text_: str) -> str:
    return html.escape(" ".join(text_.split())).replace("|", "\\|")

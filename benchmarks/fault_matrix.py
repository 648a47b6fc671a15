"""The fault matrix: what each way of going wrong comes to, and how long it takes.

Run: python benchmarks/fault_matrix.py [--markdown] [--only WORD] [--interruptions N]

Every row is a pair whose implementation or reference goes wrong in one way (see
`tests/support/fault_rows.py`). All are judged in two sessions of pytest, and their result files are
read: the verdict, what the failure says, and that the other case is judged rightly. Then come runs
that are interrupted at random moments, two runs on one folder, and folders that can't be written.
A row that is not as it must be is marked, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.fault_rows import ROWS
from tests.support.fault_runs import Outcome, Session, applicable, folder, judge

if TYPE_CHECKING:
    from tests.support.fault_rows import Row

# Of the pairs whose fault is to go on for ever.
_HANG_SECONDS = 5


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--interruptions", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = [row for row in applicable(ROWS) if arguments.only in row.name]
    complaints = []
    outcomes: list[Outcome] = []
    for hanging in (False, True):
        # The first pair of a session waits for PyTorch, which is no matter of its own.
        first = replace(next(row for row in ROWS if row.name == "right"), name="a_first")
        chosen = [row for row in rows if row.hangs == hanging]
        chosen = [first, *chosen] if chosen else []
        options = [f"--verify-timeout={_HANG_SECONDS}"] if hanging else []
        found, left = _judged(chosen, options)
        outcomes += found[1:]
        complaints += left
    print_rows(outcomes, markdown=arguments.markdown)
    complaints += [f"{o.row.name}: {o.complaint}" for o in outcomes if o.complaint]
    if arguments.interruptions and not arguments.only:
        complaints += interruptions(arguments.interruptions, arguments.seed)
    print("\n".join(complaints) or f"\n{len(rows)} rows, all as they must be")
    raise SystemExit(bool(complaints))


def _judged(rows: list[Row], options: list[str]) -> tuple[list[Outcome], list[str]]:
    if not rows:
        return [], []
    with folder() as name:
        session, outcomes = judge(rows, Path(name), *options)
        complaints = session.leftovers()
        if session.code != 1 and any(any(row.expected()) for row in rows):
            complaints.append(f"exit code {session.code}\n{session.out}")
        if "INTERNALERROR" in session.out:
            complaints.append(session.out)
    return outcomes, complaints


def print_rows(outcomes: list[Outcome], *, markdown: bool) -> None:
    """Print a table of rows, their verdicts and seconds."""
    order = [row.name for row in ROWS]
    lines = [
        (
            outcome.row.group,
            outcome.row.name.replace("_", " "),
            " / ".join(verdict or "passed" for verdict in outcome.verdicts) or "none",
            f"{outcome.seconds:.1f}",
            "WRONG" if outcome.complaint else "",
        )
        for outcome in sorted(outcomes, key=lambda o: order.index(o.row.name))
    ]
    head = ("group", "row", "verdict of both cases", "seconds", "")
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    if markdown:
        print("| row | verdict of both cases | seconds |\n|---|---|--:|")
        group = ""
        for line in lines:
            if line[0] != group:
                group = line[0]
                print(f"| **{group}** | | |")
            print(f"| {line[1]} | {line[2]} | {line[3]} |")
        return
    for line in (head, *lines):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def interruptions(count: int, seed: int) -> list[str]:
    """Interrupt runs at random moments; return what was lost or left."""
    chance = random.Random(seed)
    rows = [row for row in ROWS if row.name in ("raises", "reference_escapes", "right", "segfault")]
    began = time.monotonic()
    with folder() as name:
        judge(rows, Path(name))
        whole = time.monotonic() - began
    complaints = []
    tally: Counter[str] = Counter()
    for number in range(count):
        sent = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[number % 3]
        moment = chance.uniform(0.2, whole)
        with folder() as name:
            root = Path(name)
            for row in rows:
                row.write(root / "ops")
            session = Session(root).start()
            time.sleep(moment)
            session.send(sent)
            session.wait()
            found = [*session.leftovers(), *_lost(root, sent, session)]
        complaints += [f"{sent.name} after {moment:.2f} s: {text}" for text in found]
        tally[f"{sent.name}: exit {session.code}"] += 1
    print(
        f"\n{count} runs of {whole:.1f} s, interrupted at random moments: {len(complaints)} faults"
    )
    for key, times in sorted(tally.items()):
        print(f"  {key}: {times}")
    return complaints


def _lost(root: Path, sent: signal.Signals, session: Session) -> list[str]:
    """Return what an interrupted run should have kept."""
    found = [session.out] if {"INTERNALERROR", "Traceback"} & set(session.out.split()) else []
    for pair in sorted((root / "ops").iterdir()):
        result, journal = pair / "verify_result.json", pair / "verify_result.journal.jsonl"
        complaints = [f"{path.name} is left" for path in pair.glob(".*")]
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.is_file() else []
        if result.is_file():
            content = json.loads(result.read_text(encoding="utf-8"))
            counted = content["passed_cases"] + len(content["failures"])
            if not content["total_cases"] == counted == len(content["cases"]):
                complaints.append(f"a result that counts wrongly: {content}")
        elif lines and sent != signal.SIGKILL:
            complaints.append("a journal, but no result")
        if result.is_file() and lines and sent != signal.SIGKILL:
            complaints.append("a journal beside the result")
        # A line that was cut off is no loss, but one that follows it would be.
        for line in lines[:-1]:
            json.loads(line)
        found += [f"{pair.name}: {complaint}" for complaint in complaints]
    return found


if __name__ == "__main__":
    main()

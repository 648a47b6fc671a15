"""Many pairs in one session, some of them faulty: every verdict, and what the run leaves behind.

Run: python benchmarks/thousand_pairs.py [--pairs 1000] [--faulty 10] [--seed 0]

One pair in `--faulty` goes wrong in a way of the fault matrix, by chance. The judge's memory and
descriptors, the processes below it and its temporary files are sampled while it runs, and all of
them after its end. The exit status is 1 where a verdict is wrong or anything is left.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.fault_rows import ROWS
from tests.support.fault_runs import LIMITS, Session, applicable, folder, outcome
from tests.support.workers import marked_processes

if TYPE_CHECKING:
    from tests.support.fault_rows import Row

# Pairs whose fault is to go on for ever would make up most of the run.
_MOST_HANGS = 8
_HANG_SECONDS = 30
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True)
class Sample:
    """The state of a run at one moment.

    Attributes:
        seconds: since its start.
        results: how many result files there are.
        memory: MiB that the judge holds.
        descriptors: files that it has open.
        processes: how many there are, the judge included.
        temporary: entries in its folder of temporary files.
    """

    seconds: float
    results: int
    memory: float
    descriptors: int
    processes: int
    temporary: int


def main() -> None:
    """Write the pairs, judge them, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--faulty", type=int, default=10, metavar="N", help="one pair in N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    arguments = parser.parse_args()
    rows = chosen(arguments.pairs, arguments.faulty, arguments.seed)
    with folder() as name:
        root = Path(name)
        for row in rows:
            row.write(root / "ops")
        session, samples, seconds = observed(root, arguments.every)
        outcomes = [outcome(row, root / "ops" / row.name) for row in rows]
        complaints = [f"{o.row.name}: {o.complaint}" for o in outcomes if o.complaint]
        complaints += session.leftovers()
        beside = [path for path in (root / "ops").rglob("*") if path.suffix in (".jsonl", ".pyc")]
        complaints += [f"left: {path}" for path in beside]
    report(rows, samples, seconds)
    if session.code != 1 and any(any(row.expected()) for row in rows):
        complaints.append(f"exit code {session.code}\n{session.out[-3000:]}")
    print("\n".join(complaints) or "every verdict is right, and nothing is left")
    raise SystemExit(bool(complaints))


def chosen(count: int, every: int, seed: int) -> list[Row]:
    """Return the rows of a run, one for each pair."""
    chance = random.Random(seed)
    right = next(row for row in ROWS if row.name == "right")
    faults = [row for row in applicable(ROWS) if row is not right]
    endless = 0
    rows = []
    for number in range(count):
        row = right
        if number % every == every - 1:
            row = chance.choice([f for f in faults if not f.hangs or endless < _MOST_HANGS])
            endless += row.hangs
        rows.append(replace(row, name=f"p{number:05}_{row.name}"))
    return rows


def observed(root: Path, every: float) -> tuple[Session, list[Sample], float]:
    """Judge everything, and take samples meanwhile."""
    started = time.monotonic()
    session = Session(root).start(*LIMITS, f"--verify-timeout={_HANG_SECONDS}")
    samples: list[Sample] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            samples.append(sample(session, root, time.monotonic() - started))

    watcher = threading.Thread(target=watch)
    watcher.start()
    session.wait()
    done.set()
    watcher.join()
    return session, samples, time.monotonic() - started


def sample(session: Session, root: Path, seconds: float) -> Sample:
    """Look at a run."""
    judge = Path(f"/proc/{session.pid}")
    try:
        pages = int((judge / "statm").read_text(encoding="ascii").split()[1])
        descriptors = sum(1 for _ in (judge / "fd").iterdir())
    except OSError:
        pages = descriptors = 0
    return Sample(
        seconds,
        sum(1 for _ in (root / "ops").glob("*/verify_result.json")),
        pages * _PAGE_MIB,
        descriptors,
        len(marked_processes(session.mark)),
        sum(1 for _ in session.temporary.rglob("*")),
    )


def report(rows: list[Row], samples: list[Sample], seconds: float) -> None:
    """Print the figures."""
    faults = Counter(row.name.partition("_")[2] for row in rows)
    honest = faults.pop("right", 0)
    print(f"{len(rows)} pairs, {honest} of them right, {len(faults)} kinds of fault:")
    print("  " + ", ".join(f"{name} {number}" for name, number in sorted(faults.items())))
    print(f"{seconds:.0f} s, {seconds / len(rows):.3f} s a pair")
    print("seconds  results  judge MiB  descriptors  processes  temporary files")
    kept = [s for s in samples if s.memory]
    for one in kept[:: max(len(kept) // 20, 1)]:
        print(
            f"{one.seconds:7.0f}  {one.results:7}  {one.memory:9.1f}  {one.descriptors:11}  "
            f"{one.processes:9}  {one.temporary:15}"
        )


if __name__ == "__main__":
    main()

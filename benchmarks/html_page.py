"""How long the page of a session with many pairs takes: to be made, and to open in Chromium.

Run it from the repository's root: `python benchmarks/html_page.py`. It prints the medians of three
browsers without a past. `loaded` is the browser's own figure, from the beginning of the navigation
to the `load` event, which a busy machine delays; `processor` is the processor time of the whole
browser until it has painted the page into a picture, less that for an empty page.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pytest_tritonverify.html_report import page, subjects  # noqa: E402 - after the path
from tests.support import chromium, pages  # noqa: E402 - after the path

RUNS = 3


def painted(path: Path, folder: Path) -> float:
    """Return the processor seconds that a browser takes for a picture of a page."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Without a zygote all its processes are waited for, and counted.
    chromium.run(
        path.as_uri(),
        "--no-zygote",
        f"--screenshot={folder / 'picture.png'}",
        width=1600,
        height=1000,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded(path: Path) -> float:
    """Return the milliseconds that a page says it took to load."""
    found = re.search(r'data-loaded-ms="(\d+)"', chromium.dump(path).dom)
    return float(found[1]) if found else float("nan")


def main(pairs: int, cases: int) -> None:
    """Make a page and open it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages.write_pairs(folder, pairs, cases)
        started = time.perf_counter()
        path = folder / "page.html"
        page.write(path, subjects.of_files([folder]))
        made = time.perf_counter() - started
        size = path.stat().st_size / 2**20
        print(f"{pairs} pairs of {cases} cases: {size:.1f} MiB, made in {made:.2f} s")
        if chromium.find() is None:
            print("no browser was found: apt-get install chromium")
            return
        empty = folder / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>", encoding="utf-8")
        print(f"loaded: {statistics.median(loaded(path) for _ in range(RUNS)):.0f} ms")
        times = [painted(path, folder) - painted(empty, folder) for _ in range(RUNS)]
        print(f"processor: {statistics.median(times):.2f} s more than for an empty page")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--cases", type=int, default=8, help="of each pair")
    options = parser.parse_args()
    main(options.pairs, options.cases)

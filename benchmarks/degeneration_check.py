"""Time the static degeneration check: milliseconds a file, and growth with the length.

Run it from the repository's root: `python benchmarks/degeneration_check.py`. Times are processor
time, the least of several runs; each stands beside that of Python's own parser on the same bytes,
because only their ratio says something on a busy machine.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pytest_tritonverify.degeneration import check_source  # noqa: E402 - the path comes first

if TYPE_CHECKING:
    from collections.abc import Callable

KERNEL = """import torch, triton
import triton.language as tl

@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * 2.0, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
"""


def least(function: Callable[[], object], runs: int) -> float:
    """Return the least processor time of several runs, in milliseconds."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best * 1e3


def long_file(lines: int) -> bytes:
    """Return a file of a number of lines: shape arithmetic, branches and launches."""
    body = []
    for i in range(lines // 4):
        body += [
            f"        n{i} = x.shape[0] * {i} + 1",
            f"        if n{i} > {i}:",
            f"            y = x.view(n{i}, -1)",
            f"        k[(n{i},)](x, y, n{i}, B=4)",
        ]
    return (KERNEL + "\n".join(["        y = x", *body, "        return y"])).encode()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of which the least counts")
    parser.add_argument("files", nargs="*", help="files to check (default: the examples)")
    options = parser.parse_args()
    files = [Path(name) for name in options.files]
    files = files or sorted((ROOT / "examples").rglob("*_triton_*.py"))
    times = []
    print(f"{'file':56} {'lines':>6} {'check':>9} {'parser':>9}")
    for path in files:
        source = path.read_bytes()
        try:
            ast.parse(source)
        except SyntaxError:
            continue
        spent = least(partial(check_source, source, filename="f.py"), options.runs)
        parsed = least(partial(ast.parse, source), options.runs)
        times.append(spent)
        lines = source.count(b"\n")
        print(f"{path.name[-56:]:56} {lines:6} {spent:6.1f} ms {parsed:6.1f} ms")
    print(f"median {statistics.median(times):.1f} ms, most {max(times):.1f} ms\n")
    print(f"{'lines':>8} {'check':>10} {'parser':>10} {'check/line':>12}")
    for count in (1000, 5000, 20_000):
        source = long_file(count)
        spent = least(partial(check_source, source, filename="f.py"), 2)
        parsed = least(partial(ast.parse, source), 2)
        print(f"{count:8} {spent:7.0f} ms {parsed:7.0f} ms {spent / count * 1e3:9.1f} us")


if __name__ == "__main__":
    main()

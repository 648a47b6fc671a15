"""Seconds per pair: many small pairs in one run, against two fresh Python processes a pair.

Run: python benchmarks/pairs_per_second.py [number of pairs]

The straightforward way to isolate a pair is a process for the reference and one for the
implementation, each importing torch and triton. Both columns are wall time for the same pairs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + {k}

def get_input_groups():
    return [[torch.randn(300 + {k})], [torch.randn(17, 5)]]
"""

_IMPLEMENTATION = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(o + i, tl.load(x + i, mask=keep, other=0.0) * 2 + {k}, mask=keep)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
"""

# What the straightforward way runs for each file: import, build, run once on the first case.
_ONE_PROCESS = """
import importlib.util, sys, torch, triton
path, name, task = sys.argv[1:4]
def load(p):
    spec = importlib.util.spec_from_file_location("m", p)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
torch.manual_seed(0)
groups = load(task).get_input_groups()
with torch.no_grad():
    for group in groups:
        torch.manual_seed(0)
        getattr(load(path), name)()(*group)
"""


def _write_pairs(folder: Path, count: int) -> list[tuple[Path, Path]]:
    pairs = []
    for k in range(count):
        task = folder / f"op{k}_torch.py"
        implementation = folder / f"op{k}_triton_ascend_impl.py"
        task.write_text(_TASK.format(k=k), encoding="utf-8")
        implementation.write_text(_IMPLEMENTATION.format(k=k), encoding="utf-8")
        pairs.append((task, implementation))
    return pairs


def _one_run(folder: Path) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    started = time.perf_counter()
    run = subprocess.run(
        [*command, f"--verify-dir={folder}", "--verify-device=cpu"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - started
    if run.returncode:
        raise SystemExit(run.stdout + run.stderr)
    return seconds


def _fresh_processes(pairs: list[tuple[Path, Path]]) -> float:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    started = time.perf_counter()
    for task, implementation in pairs:
        for path, name in ((task, "Model"), (implementation, "ModelNew")):
            command = [sys.executable, "-c", _ONE_PROCESS, str(path), name, str(task)]
            subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Print both times and their ratio."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = _write_pairs(folder, count)
        one_run = _one_run(folder)
        # A sample is enough: the cost of a fresh process does not depend on how many there are.
        sample = pairs[: min(count, 8)]
        fresh = _fresh_processes(sample) / len(sample) * count
    print(f"{count} pairs, 2 cases each")
    print(f"  one run of the plugin:        {one_run:7.1f} s, {one_run / count:.3f} s a pair")
    print(f"  two fresh processes a pair:   {fresh:7.1f} s, {fresh / count:.3f} s a pair")
    print(f"  ratio:                        {fresh / one_run:7.1f}")


if __name__ == "__main__":
    main()

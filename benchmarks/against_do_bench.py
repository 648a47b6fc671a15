"""Latencies of `--benchmark` beside those of other ways to time the same kernels on a GPU.

Run: python benchmarks/against_do_bench.py [--runs N] [--repeats N] [--scale N] [--device cpu]

Six pairs are written to a temporary folder and measured in several whole runs of pytest. The same
implementations are then timed by `triton.testing.do_bench`, by torch's profiler and by replaying a
CUDA graph of many forwards, which leaves no launch between kernels to wait for. Two tables in
Markdown are printed: the latencies, and how far the geometric means of the runs lie apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_HEAD = """
import torch
import triton
import triton.language as tl

"""
_ELEMENTWISE = """
@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(o + i, tl.load(x + i, keep, other=0.0) + tl.load(y + i, keep, other=0.0), keep)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
"""
_SOFTMAX = """
@triton.jit
def softmax_kernel(x, o, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, i < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(o + row * columns + i, value / tl.sum(value, axis=0), i < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        rows, columns = x.shape
        softmax_kernel[(rows,)](x, o, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return o
"""
_LAYER_NORM = """
@triton.jit
def layer_norm_kernel(x, o, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(i < columns, value - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(o + row * columns + i, centred / tl.sqrt(variance + 1e-5), i < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        layer_norm_kernel[(rows,)](x, o, columns, BLOCK=block, num_warps=8)
        return o
"""
_MATMUL = """
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + k[None, :])
        right = tl.load(b + k[:, None] * N + columns[None, :])
        acc += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), dtype=a.dtype, device=a.device)
        matmul_kernel[(M // {m}, N // {n})](a, b, c, M, N, K, BM={m}, BN={n}, BK={k},
                                            num_warps=8, num_stages=3)
        return c
"""
_TWO_KERNELS = """
@triton.jit
def relu_kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, i < n, other=0.0), 0.0), i < n)


@triton.jit
def scale_kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n, other=0.0) * 0.5, i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        between, o = torch.empty_like(x), torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        relu_kernel[grid](x, between, x.numel(), BLOCK=1024)
        scale_kernel[grid](between, o, x.numel(), BLOCK=1024)
        return o
"""
_TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {expression}


def get_input_groups():
    return [[{inputs}]]
"""


@dataclass(frozen=True)
class Kernel:
    """One pair: its name, what the reference computes, its inputs, and the implementation."""

    name: str
    arguments: str
    expression: str
    inputs: str
    source: str


def kernels(scale: int) -> list[Kernel]:
    """Return the pairs.

    Args:
        scale: how many times as many numbers to work on; 0 for so few that they keep the
            interpreter on the CPU busy for seconds only.
    """
    count, rows, columns = (1 << 25) * scale or 4096, 16384 * scale or 8, 4096 if scale else 256
    size = 4096 * math.isqrt(scale) or 64
    tile = {"m": 128, "n": 128, "k": 64} if scale else {"m": 32, "n": 32, "k": 32}
    vector, matrix = f"torch.randn({count})", f"torch.randn({rows}, {columns})"
    halves = f"torch.randn({size}, {size}).half()"
    matmul = _MATMUL
    for key, value in tile.items():
        matmul = matmul.replace("{" + key + "}", str(value))
    # Halves are slow on a CPU, where the golden comes from.
    product = "(a.float() @ b.float()).half() if a.device.type == 'cpu' else a @ b"
    norm = "torch.nn.functional.layer_norm(x.float(), x.shape[-1:]).to(x.dtype)"
    tiny = _ELEMENTWISE
    return [
        Kernel("elementwise", "x, y", "x + y", f"{vector}, {vector}", _ELEMENTWISE),
        Kernel("softmax", "x", "torch.softmax(x, -1)", matrix, _SOFTMAX),
        Kernel("layer_norm", "x", norm, f"{matrix}.half()", _LAYER_NORM),
        Kernel("matmul_fp16", "a, b", product, f"{halves}, {halves}", matmul),
        Kernel("two_kernels", "x", "torch.relu(x) * 0.5", vector, _TWO_KERNELS),
        Kernel("tiny", "x, y", "x + y", "torch.randn(1024), torch.randn(1024)", tiny),
    ]


def write(folder: Path, found: list[Kernel]) -> None:
    """Write every pair into a folder of its own."""
    for kernel in found:
        home = folder / kernel.name
        home.mkdir()
        task = _TASK.format(
            arguments=kernel.arguments, expression=kernel.expression, inputs=kernel.inputs
        )
        (home / f"{kernel.name}_torch.py").write_text(task)
        source = _HEAD + textwrap.dedent(kernel.source)
        (home / f"{kernel.name}_triton_ascend_impl.py").write_text(source)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Run the benchmark once; return the reports by kernel."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "pytest_tritonverify.plugin"),
        *("-p", "no:cacheprovider", f"--rootdir={folder}", "-c", os.devnull),
        *(f"--verify-dir={folder}", "--benchmark", "-m", "verify_benchmark"),
        *("--verify-not-required", f"--verify-device={options.device}"),
        f"--verify-bench-repeats={options.repeats}",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"the benchmark ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return {
        path.parent.name: json.loads(path.read_text("utf-8"))
        for path in folder.glob("*/perf_result.json")
    }


def others(home: Path) -> dict[str, float | None]:
    """Time an implementation in other ways, in milliseconds of one forward."""
    import torch
    import triton.testing

    def load(path: Path) -> Any:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None  # noqa: S101 - it is a Python file
        assert spec.loader is not None  # noqa: S101 - as above
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    torch.manual_seed(0)
    (inputs,) = load(home / f"{home.name}_torch.py").get_input_groups()
    inputs = [tensor.cuda() for tensor in inputs]
    model = load(home / f"{home.name}_triton_ascend_impl.py").ModelNew()

    def forward() -> Any:
        return model(*inputs)

    forward()
    return {
        "do_bench": float(triton.testing.do_bench(forward, warmup=50, rep=200)),
        "profiler": _profiled(forward),
        "graph": _replayed(forward),
    }


def _profiled(forward: Any, count: int = 30) -> float | None:
    """Return the kernels' time by torch's profiler; None where it sees none."""
    import torch

    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(count):
            flush.zero_()
            forward()
        torch.cuda.synchronize()
    total, seen = 0.0, False
    for event in profile.key_averages():
        if "FillFunctor" in event.key or event.key.startswith("Mem"):
            continue
        device = getattr(event, "self_device_time_total", None)
        spent = getattr(event, "self_cuda_time_total", 0.0) if device is None else device
        if str(event.device_type).endswith("CUDA") and spent:
            total, seen = total + spent, True
    return total / count / 1000 if seen else None


def _replayed(forward: Any, count: int = 50, replays: int = 10) -> float:
    """Return the time of a forward within a graph of many; caches stay warm in it."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            forward()
    graph.replay()
    torch.cuda.synchronize()
    event: Any = torch.cuda.Event
    times: list[float] = []
    for _ in range(replays):
        begin, end = (event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / count)
    return statistics.median(times)


def in_another_process(home: Path) -> dict[str, float | None]:
    """Call `others` in a process of its own, as the benchmark does for each side."""
    command = [sys.executable, str(Path(__file__).resolve()), "--others", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{home.name} can't be timed:\n{done.stderr}")
    found: dict[str, float | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def us(ms: float | None) -> str:
    """Return microseconds for a table."""
    return "-" if ms is None else f"{ms * 1000:.1f}"


def ratio(one: float | None, other: float | None) -> str:
    """Return a quotient for a table."""
    return "-" if one is None or not other else f"{one / other:.3f}"


def spread(values: list[float]) -> float:
    """Return how far the outermost values lie apart, in percent of their mean."""
    return 100 * (max(values) - min(values)) / statistics.fmean(values)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Compare --benchmark with other timings.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--scale", type=int, default=1, help="numbers, in multiples; 0 for few")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--others", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.others is not None:
        print(json.dumps(others(options.others)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = kernels(options.scale)
        write(folder, found)
        runs = [measure(folder, options) for _ in range(options.runs)]
        rest: dict[str, dict[str, float | None]] = {}
        for kernel in found:
            nothing = dict.fromkeys(("do_bench", "profiler", "graph"))
            home = folder / kernel.name
            rest[kernel.name] = in_another_process(home) if options.device == "cuda" else nothing
    report(runs, rest)


def report(runs: list[dict[str, dict[str, Any]]], rest: dict[str, dict[str, float | None]]) -> None:
    """Print both tables."""
    print(
        "| kernel | plugin us | method | do_bench us | plugin / do_bench | profiler us |"
        " plugin / profiler | graph us | spread of runs |"
    )
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for name, other in rest.items():
        sides = [run[name]["per_shape_results"][0]["implementation"] for run in runs]
        latencies = [side["avg_latency_ms"] for side in sides]
        mine = statistics.median(latencies)
        print(
            f"| {name} | {us(mine)} | {sides[0]['method']} | {us(other['do_bench'])} "
            f"| {ratio(mine, other['do_bench'])} | {us(other['profiler'])} "
            f"| {ratio(mine, other['profiler'])} | {us(other['graph'])} "
            f"| {spread(latencies):.1f} % |"
        )
    print("\n| run | " + " | ".join([*rest, "geometric mean"]) + " |")
    print("|--:" * (len(rest) + 2) + "|")
    means = []
    for number, run in enumerate(runs, 1):
        speedups = [run[name]["speedup_vs_torch"] or math.nan for name in rest]
        means.append(math.exp(statistics.fmean(math.log(value) for value in speedups)))
        cells = [f"{value:.3f}" for value in [*speedups, means[-1]]]
        print(f"| {number} | {' | '.join(cells)} |")
    print(f"\nSpread of the geometric means over {len(runs)} runs: {spread(means):.2f} %")


if __name__ == "__main__":
    main()

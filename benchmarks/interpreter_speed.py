"""Seconds per launch on the CPU: Triton's interpreter as it is, against launches that are spread.

Run: python benchmarks/interpreter_speed.py [--jobs N] [--repeats N] [--scale N] [kernel ...]

Five kernels run alternately in one process and in up to N, and their results are compared bit by
bit. Each time is the least of its column's repeats, because other work on the machine only adds to
it; the last column says how many of a launch's programs helpers have run in the last repeat.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

# Before triton is imported; one thread for numpy's products, as in the plugin's workers.
os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import torch
import triton
import triton.language as tl

from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import parallel

if TYPE_CHECKING:
    from collections.abc import Callable

    Launch = Callable[[], tuple[torch.Tensor, ...]]


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def add_kernel(x: Any, y: Any, out: Any, size: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
    """Add two vectors."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def softmax_kernel(x: Any, out: Any, columns: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
    """Normalise the exponentials of each row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def matmul_kernel(a: Any, b: Any, c: Any, n: Any, k: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
    """Multiply two matrices, a square of the result in each program."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, 32)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, 32):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def layernorm_kernel(x: Any, weight: Any, out: Any, columns: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
    """Give each row mean 0 and variance 1."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    scaled = centred * scale * tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + row * columns + at, scaled.to(out.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def attention_kernel(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    length: Any,
    BLOCK: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
) -> None:
    """Causal attention with a running maximum: later programs take longer."""
    head = tl.program_id(1) * length * WIDTH
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    across = tl.arange(0, WIDTH)
    query = tl.load(q + head + at[:, None] * WIDTH + across[None, :])
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        other = start + tl.arange(0, BLOCK)
        there = head + other[:, None] * WIDTH + across[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + there))) * WIDTH**-0.5
        scores = tl.where(at[:, None] >= other[None, :], scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp(scores - new[:, None])
        shrink = tl.exp(highest - new)
        weight = weight * shrink + tl.sum(powers, 1)
        total = total * shrink[:, None] + tl.dot(powers, tl.load(v + there))
        highest = new
    tl.store(out + head + at[:, None] * WIDTH + across[None, :], total / weight[:, None])


def _launches(scale: int) -> dict[str, Launch]:
    torch.manual_seed(0)
    x, y = torch.randn(2, scale << 20)
    rows = torch.randn(200 * scale, 2000)
    weight = torch.rand(2000)
    a, b = torch.randn(256 * scale, 256), torch.randn(256, 256)
    q, k, v = torch.randn(3, 2 * scale, 512, 64)

    def add() -> tuple[torch.Tensor, ...]:
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=4096)
        return x, y, out

    def softmax() -> tuple[torch.Tensor, ...]:
        out = torch.empty_like(rows)
        softmax_kernel[(rows.shape[0],)](rows, out, 2000, BLOCK=2048)
        return rows, out

    def matmul() -> tuple[torch.Tensor, ...]:
        out = torch.empty(a.shape[0], 256)
        matmul_kernel[(a.shape[0] // 64, 4)](a, b, out, 256, 256, BLOCK=64)
        return a, b, out

    def layernorm() -> tuple[torch.Tensor, ...]:
        half = rows.half()
        out = torch.empty_like(half)
        layernorm_kernel[(rows.shape[0],)](half, weight, out, 2000, BLOCK=2048)
        return half, weight, out

    def attention() -> tuple[torch.Tensor, ...]:
        out = torch.empty_like(q)
        attention_kernel[(8, q.shape[0])](q, k, v, out, 512, BLOCK=64, WIDTH=64)
        return q, k, v, out

    return {one.__name__: one for one in (add, softmax, matmul, layernorm, attention)}


def _timed(launch: Launch, jobs: int) -> tuple[float, list[torch.Tensor], parallel.Outcome]:
    parallel.spread(jobs)
    started = time.perf_counter()
    tensors = launch()
    seconds = time.perf_counter() - started
    bits = [tensor.clone().view(torch.uint8) for tensor in tensors]
    return seconds, bits, parallel.outcome()


def main() -> None:
    """Print one line a kernel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kernels", nargs="*", help="all of them if none is named")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1, help="how many times the work")
    options = parser.parse_args()
    interpreter.prepare()
    print(f"triton {triton.__version__}, up to {options.jobs} processes, best of {options.repeats}")
    print(f"{'kernel':<12}{'stock':>9}{'spread':>9}{'ratio':>8}  by helpers")
    launches = _launches(options.scale)
    for name in options.kernels or launches:
        launch = launches[name]
        launch()  # what is done once must not be counted for either
        alone, together = [], []
        for _ in range(options.repeats):
            seconds, expected, _ = _timed(launch, 1)
            alone.append(seconds)
            seconds, found, outcome = _timed(launch, options.jobs)
            together.append(seconds)
            if not all(map(torch.equal, expected, found)):
                raise SystemExit(f"{name}: the bits differ")
        ratio = min(alone) / min(together)
        share = outcome.reason or f"{outcome.by_helpers} of {outcome.programs} programs"
        print(f"{name:<12}{min(alone):8.3f}s{min(together):8.3f}s{ratio:7.2f}x  {share}")
    print("the bits are the same")


if __name__ == "__main__":
    main()

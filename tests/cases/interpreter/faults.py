"""What single versions of Triton get wrong whatever the number format."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    block = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + rows, tl.sum(block, axis=1))


@triton.jit
def histogram_kernel(x, out, N: tl.constexpr):
    counts = tl.histogram(tl.load(x + tl.arange(0, N)), 4)
    tl.store(out + tl.arange(0, 4), counts)


@triton.jit
def count_kernel(times, out):
    total = 0
    for step in range(tl.load(times)):
        total += step
    tl.store(out, total)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def tuned_kernel(out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), BLOCK)


def run():
    x = torch.randint(-(2**31), 2**31, (8, 16), dtype=torch.int32)
    sums = torch.full((12,), 77, dtype=torch.int32)
    row_sum_kernel[(1,)](x, sums, M=8, N=16)
    drawn = torch.randint(0, 4, (64,), dtype=torch.int32)
    counts = torch.full((8,), 77, dtype=torch.int32)
    histogram_kernel[(1,)](drawn, counts, N=64)
    total = torch.zeros(1, dtype=torch.int32)
    count_kernel[(1,)](torch.tensor([5], dtype=torch.int32), total)
    tuned = torch.zeros(1, dtype=torch.int32)
    tuned_kernel[(1,)](tuned, 1)
    return {"sums": (x, sums), "counts": (drawn, counts), "total": total, "tuned": tuned}

"""Kernels of the kinds that are known to give trouble on Ascend NPUs, whether they do here or not."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def divide(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    y = tl.load(y_ptr + at, mask=at < n, other=1)
    tl.store(out_ptr + at, x // y, mask=at < n)


@triton.jit
def double_float(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float64)
    tl.store(out_ptr + at, x * x, mask=at < n)


@triton.jit
def cast_float8(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x.to(tl.float8e4nv).to(tl.float32), mask=at < n)


@triton.jit
def three_axes(x_ptr, out_ptr, a, b, c, BLOCK: tl.constexpr):
    place = (tl.program_id(0) * b + tl.program_id(1)) * c + tl.program_id(2)
    at = place * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < a * b * c) + 1, mask=at < a * b * c)


@triton.jit
def atomic_histogram(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=at < n)


@triton.jit
def atomic_sum(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def atomic_lock(lock_ptr, x_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(x_ptr, tl.load(x_ptr) + 1.0)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def strided_copy(x_ptr, out_ptr, step, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at * step, mask=at < n), mask=at < n)


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    across = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=across)


@triton.jit
def gather_rows(x_ptr, index_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    row = tl.load(index_ptr + tl.program_id(0))
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + column, mask=column < width)
    tl.store(out_ptr + tl.program_id(0) * width + column, x, mask=column < width)


@triton.jit
def gather_elements(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.load(x_ptr + index, mask=at < n), mask=at < n)


@triton.jit
def skip_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        if start == BLOCK:
            continue
        at = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def undecorated(x):
    return x * 2


@triton.jit
def calls_plain_function(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, undecorated(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


@triton.jit
def odd_block(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def sort_rows(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def running_sum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0))


@triton.jit
def _combine(a, b):
    return a * b + 1


@triton.jit
def own_scan(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.associative_scan(tl.load(x_ptr + at), 0, _combine))


@triton.jit
def assembly(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    out = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out_ptr + at, out)


@triton.jit
def large_tiles(a_ptr, b_ptr, c_ptr, TILE: tl.constexpr):
    at = tl.arange(0, TILE)[:, None] * TILE + tl.arange(0, TILE)[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def launches() -> list[tuple[str, Any, dict[str, Any]]]:
    """Return what is compiled: a label, the kernel, and its arguments."""
    x, index = torch.empty(1 << 16), torch.empty(1 << 16, dtype=torch.int32)
    long = torch.empty(1 << 16, dtype=torch.int64)
    flat = {"x_ptr": x, "out_ptr": x, "n": 65536}
    return [
        ("block too large", scale, {**flat, "BLOCK": 65536}),
        ("int64 arithmetic", scale, {**flat, "x_ptr": long, "out_ptr": long, "BLOCK": 1024}),
        (
            "int64 division",
            divide,
            {"x_ptr": long, "y_ptr": long, "out_ptr": long, "n": 4096, "BLOCK": 1024},
        ),
        (
            "int32 division",
            divide,
            {"x_ptr": index, "y_ptr": index, "out_ptr": index, "n": 4096, "BLOCK": 1024},
        ),
        ("float64 arithmetic", double_float, {**flat, "BLOCK": 1024}),
        ("float8 cast", cast_float8, {**flat, "BLOCK": 1024}),
        (
            "3-D grid",
            three_axes,
            {"x_ptr": x, "out_ptr": x, "a": 4, "b": 8, "c": 16, "BLOCK": 128},
        ),
        (
            "atomic add by index",
            atomic_histogram,
            {"x_ptr": index, "counts_ptr": index, "n": 4096, "BLOCK": 256},
        ),
        (
            "atomic add of a scalar",
            atomic_sum,
            {"x_ptr": x, "total_ptr": x, "n": 4096, "BLOCK": 1024},
        ),
        ("lock by compare and swap", atomic_lock, {"lock_ptr": index, "x_ptr": x}),
        ("stride of a launch", strided_copy, {**flat, "step": 3, "BLOCK": 1024}),
        (
            "transposition",
            transpose,
            {"x_ptr": x, "out_ptr": x, "rows": 256, "columns": 256, "TILE": 64},
        ),
        (
            "gather of rows",
            gather_rows,
            {"x_ptr": x, "index_ptr": index, "out_ptr": x, "n": 64, "width": 512, "BLOCK": 512},
        ),
        (
            "gather of elements",
            gather_elements,
            {"x_ptr": x, "index_ptr": index, "out_ptr": x, "n": 4096, "BLOCK": 1024},
        ),
        ("`continue`", skip_rows, {**flat, "BLOCK": 1024}),
        ("helper without decorator", calls_plain_function, {**flat, "BLOCK": 1024}),
        ("block of 1000", odd_block, {**flat, "BLOCK": 1000}),
        ("sort", sort_rows, {"x_ptr": x, "out_ptr": x, "BLOCK": 256}),
        ("cumulative sum", running_sum, {"x_ptr": x, "out_ptr": x, "BLOCK": 1024}),
        ("scan with an operator of its own", own_scan, {"x_ptr": x, "out_ptr": x, "BLOCK": 256}),
        ("inline PTX", assembly, {"x_ptr": x, "out_ptr": x, "BLOCK": 1024}),
        (
            "tile of 256 by 256 for tl.dot",
            large_tiles,
            {"a_ptr": x, "b_ptr": x, "c_ptr": x, "TILE": 256},
        ),
    ]

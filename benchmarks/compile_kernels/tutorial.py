"""The kinds of kernels that Triton's tutorials teach, and the sizes at which they are compiled.

Written for this table; each computes what its name says.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def fused_softmax(x_ptr, out_ptr, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        raised = tl.exp(x - tl.max(x, axis=0))
        share = raised / tl.sum(raised, axis=0)
        tl.store(out_ptr + row * out_stride + column, share, mask=column < columns)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride,
    b_stride,
    c_stride,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
):
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        a = tl.load(
            a_ptr + row[:, None] * a_stride + inner[None, :],
            mask=(row[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * b_stride + column[None, :],
            mask=(inner[:, None] < k) & (column[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        c_ptr + row[:, None] * c_stride + column[None, :],
        total.to(c_ptr.dtype.element_ty),
        mask=(row[:, None] < m) & (column[None, :] < n),
    )


@triton.jit
def layer_norm_forward(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < n
    x = tl.load(x_ptr + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(out_ptr + row * stride + column, centred * rstd * weight + bias, mask=inside)


@triton.jit
def seeded_dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, x / (1 - p), 0.0), mask=inside)


@triton.jit
def flash_attention_forward(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    length,
    head_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    base = tl.program_id(1) * head_stride
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, WIDTH)
    q = tl.load(
        q_ptr + base + row[:, None] * WIDTH + lane[None, :], mask=row[:, None] < length, other=0.0
    )
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        here = base + column[:, None] * WIDTH + lane[None, :]
        k = tl.load(k_ptr + here, mask=column[:, None] < length, other=0.0)
        v = tl.load(v_ptr + here, mask=column[:, None] < length, other=0.0)
        score = tl.dot(q, tl.trans(k)) * scale
        score = tl.where(column[None, :] < length, score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, axis=1))
        share = tl.exp(score - higher[:, None])
        shrink = tl.exp(top - higher)
        mass = mass * shrink + tl.sum(share, axis=1)
        total = total * shrink[:, None] + tl.dot(share.to(v.dtype), v)
        top = higher
    tl.store(
        out_ptr + base + row[:, None] * WIDTH + lane[None, :],
        (total / mass[:, None]).to(out_ptr.dtype.element_ty),
        mask=row[:, None] < length,
    )


def launches() -> list[tuple[str, Any, dict[str, Any]]]:
    """Return what is compiled: a label, the kernel, and its arguments."""
    x, half = torch.empty(1 << 16), torch.empty(1 << 16, dtype=torch.float16)
    sizes = {"m": 512, "n": 512, "k": 512, "a_stride": 512, "b_stride": 512, "c_stride": 512}
    tiles = {"TILE_M": 64, "TILE_N": 64, "TILE_K": 64}
    attention = {"scale": 0.125, "length": 1024, "head_stride": 1024 * 64, "WIDTH": 64}
    return [
        (
            "vector add",
            vector_add,
            {"x_ptr": x, "y_ptr": x, "out_ptr": x, "n": 98432, "BLOCK": 1024},
        ),
        (
            "fused softmax",
            fused_softmax,
            {
                "x_ptr": x,
                "out_ptr": x,
                "x_stride": 781,
                "out_stride": 781,
                "rows": 1823,
                "columns": 781,
                "BLOCK": 1024,
            },
        ),
        (
            "matmul, float16",
            matmul,
            {"a_ptr": half, "b_ptr": half, "c_ptr": half, **sizes, **tiles},
        ),
        (
            "layer norm forward",
            layer_norm_forward,
            {
                **dict.fromkeys(("x_ptr", "out_ptr", "weight_ptr"), x),
                **dict.fromkeys(("bias_ptr", "mean_ptr", "rstd_ptr"), x),
                "stride": 1024,
                "n": 1000,
                "eps": 1e-5,
                "BLOCK": 1024,
            },
        ),
        (
            "dropout",
            seeded_dropout,
            {"x_ptr": x, "out_ptr": x, "n": 4096, "p": 0.5, "seed": 123, "BLOCK": 1024},
        ),
        (
            "flash attention forward, float16",
            flash_attention_forward,
            {
                **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), half),
                **attention,
                "ROWS": 64,
                "COLUMNS": 64,
            },
        ),
    ]

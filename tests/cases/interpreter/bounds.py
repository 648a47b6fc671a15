"""Run kernels that leave their tensors; print what became of it as JSON."""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl

from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import bounds, parallel


@triton.jit
def shift(x, o, n, m, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i - 1, mask=i <= n, other=0.0)  # the load
    tl.store(o + i, v, mask=i < m)  # the store


@triton.jit
def add(o, B: tl.constexpr):
    tl.atomic_add(o + tl.arange(0, B), 1.0)  # the atomic


@triton.jit
def chase(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(o + tl.load(x + i)), mask=i < 4)  # far away


@triton.jit
def table(addresses, o, B: tl.constexpr):
    x = tl.load(addresses).to(tl.pointer_type(tl.float32))
    tl.store(o + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


@triton.jit
def strided(x, o, rows, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i * stride, mask=i < rows), mask=i < rows)


@triton.jit
def slow(x, o, n, B: tl.constexpr, ROUNDS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    for _ in range(ROUNDS):
        v = v + 1
    tl.store(o + i, v, mask=i <= n)


def told() -> list[list[object]]:
    """Return what strayed, and forget it."""
    keys = ("line", "kind", "tensor", "side", "lanes", "reach")
    found = [[stray[key] for key in keys] for stray in bounds.strays()]  # type: ignore[literal-required]
    bounds.reset()
    return found


def main() -> None:
    """Run all of it."""
    interpreter.prepare()
    report: dict[str, object] = {}
    x, o = torch.arange(100.0) + 1, torch.zeros(100)
    shift[(2,)](x, o, 99, 100, B=64)
    report["first"] = [o.isnan().tolist(), told()]
    shift[(2,)](x, o, 99, 103, B=64)
    report["store"] = told()
    shift[(2,)](x[1:], o, 99, 100, B=64)
    report["offset view"] = told()
    total = torch.zeros(6)
    add[(3,)](total, B=8)
    report["atomic"] = [total.tolist(), told()]
    where, out = torch.full((8,), 1 << 30, dtype=torch.int32), torch.zeros(8)
    chase[(1,)](where, out, B=8)
    report["far"] = [out.isnan().tolist(), told()]
    addresses = torch.tensor([x.data_ptr()])
    table[(1,)](addresses, o, B=64)
    report["table"] = [bool(torch.equal(o[:64], x[:64])), told()]
    grid = torch.arange(64.0).view(8, 8)
    strided[(1,)](grid.t()[2], out, 8, 1, B=8)
    report["strided"] = [out.tolist(), told()]
    interpreter.prepare(jobs=2)
    parallel.spread(2, parallel.Limits(launch=0, program=0, patience=60))
    many = torch.zeros(16 * 64 - 2)
    slow[(16,)](torch.zeros(16 * 64 - 2), many, 16 * 64 - 2, B=64, ROUNDS=3)
    report["helpers"] = [bool((many == 3).all()), told()]
    print(json.dumps(report))


main()

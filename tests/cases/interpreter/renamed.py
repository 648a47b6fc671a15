"""Kernels in a module that calls the language otherwise, and leaves annotations unevaluated."""

from __future__ import annotations

import torch
import triton
from triton import language as L
from triton.language import arange, constexpr, load, store

exponential = L.exp
square_root = L.math.sqrt


@triton.jit
def aliased_kernel(x, out, N: L.constexpr, M: "L.constexpr", K: constexpr):
    lanes = L.arange(0, N) + L.arange(0, M) - L.arange(0, K)
    L.store(out + lanes, L.load(x + lanes) + 1)


@triton.jit
def imported_kernel(x, out, N: constexpr):
    store(out + arange(0, N), load(x + arange(0, N)) + 1)


@triton.jit
def bound_kernel(x, out, N: constexpr):
    lanes = L.arange(0, N)
    L.store(out + lanes, exponential(L.load(x + lanes)) + square_root(4.0))


def enclosed(x, out):
    import triton.language as language

    offset = L.constexpr(3)

    @triton.jit
    def helper(value):
        return value * 2 + offset

    @triton.jit
    def kernel(x, out, N: language.constexpr):
        lanes = language.arange(0, N)
        language.store(out + lanes, helper(language.load(x + lanes)))

    kernel[(1,)](x, out, N=16)


def run():
    x = torch.linspace(-3, 3, 16)
    names = ("aliased", "imported", "bound", "enclosed")
    outs = {name: torch.zeros(16) for name in names}
    aliased_kernel[(1,)](x, outs["aliased"], N=16, M=16, K=16)
    imported_kernel[(1,)](x, outs["imported"], N=16)
    bound_kernel[(1,)](x, outs["bound"], N=16)
    enclosed(x, outs["enclosed"])
    # What the interpreter needs stays out of the module.
    clean = not {"np", "math", "tl", "interpreter_semantic"} & globals().keys()
    return {"x": x, "clean": clean, **outs}

"""Conversions between all float formats, over every pattern or every rounding boundary."""

import itertools

import torch
import triton
import triton.language as tl
from optional import optional

BLOCK = 65536
FLOAT8 = [
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
]
LOW = [torch.bfloat16, *FLOAT8]


@triton.jit
def convert_kernel(source, target, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(source + at, mask=inside)
    tl.store(target + at, x.to(target.dtype.element_ty), mask=inside)


@triton.jit
def truncate_kernel(source, target, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(source + at, mask=inside)
    y = x.to(target.dtype.element_ty, fp_downcast_rounding="rtz")
    tl.store(target + at, y, mask=inside)


@triton.jit
def e4b15_kernel(halves, patterns, back, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    stored = tl.load(halves + at, mask=inside).to(tl.float8e4b15)
    tl.store(patterns + at, stored.to(tl.uint8, bitcast=True), mask=inside)
    tl.store(back + at, stored.to(tl.float16), mask=inside)


def every(dtype):
    """All values of a format of one or two bytes."""
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.uint8).view(dtype)
    return torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)


def boundaries():
    """float32 values at, just below and just above everything that bfloat16 has or rounds at."""
    upper = torch.arange(65536, dtype=torch.int64) << 16
    lower = torch.tensor([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    return (upper[:, None] + lower).flatten().to(torch.int32).view(torch.float32)


def integers(dtype):
    limits = torch.iinfo(dtype)
    drawn = torch.randint(limits.min, limits.max, (4096,), dtype=dtype)
    return torch.cat([drawn, torch.tensor([limits.min, limits.max, 0, 1, 2], dtype=dtype)])


def launch(kernel, source, dtype):
    source = source.contiguous()
    target = torch.zeros(source.shape, dtype=dtype)
    n = source.numel()
    block = min(BLOCK, triton.next_power_of_2(n))

    def convert():
        kernel[(triton.cdiv(n, BLOCK),)](source, target, n, BLOCK=block)
        return target

    return source, optional(convert)


def run():
    wide = boundaries()
    double = wide.double() * (1 + 2.0**-40)
    finite = every(torch.bfloat16)
    finite = finite[finite.float().abs() < 2.0**31]
    plans = [(wide, dtype) for dtype in LOW]
    plans += [(double[::13], dtype) for dtype in LOW]
    plans += [(every(torch.float16), dtype) for dtype in LOW]
    plans += [(every(source), target) for source, target in itertools.permutations(LOW, 2)]
    plans += [
        (every(source), target)
        for source in LOW
        for target in (torch.float16, torch.float32, torch.float64)
    ]
    plans += [
        (integers(dtype), torch.bfloat16)
        for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
    ]
    plans += [(finite, torch.int32), (finite, torch.int64)]
    nearest = [launch(convert_kernel, source, dtype) for source, dtype in plans]
    truncated = [launch(truncate_kernel, wide[::3], dtype) for dtype in (*LOW, torch.float16)]
    return {"nearest": nearest, "truncated": truncated, "e4b15": optional(e4b15)}


def e4b15():
    halves = every(torch.float16)
    patterns, back = torch.zeros(65536, dtype=torch.uint8), torch.zeros(65536, dtype=torch.float16)
    e4b15_kernel[(1,)](halves, patterns, back, 65536, BLOCK=65536)
    return halves, patterns, back

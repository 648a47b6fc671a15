"""Kernels whose loads have a mask and no `other`."""

import inspect

import torch
import triton
import triton.language as tl
from optional import optional

from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import masked_lanes

# triton-ascend documents zeros unless the kernel says that it does not care. To be asked before
# the first launch: after that, some versions have other functions in the place of these.
DOCUMENTED = "care_padding" in inspect.signature(tl.load).parameters


@triton.jit
def careless_kernel(x, out, columns, OP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns)  # site: careless
    if OP == "sum":
        result = tl.sum(values, axis=0)
    elif OP == "max":
        result = tl.max(values, axis=0)
    else:
        result = tl.min(values, axis=0)
    tl.store(out + row, result.to(out.dtype.element_ty))


@triton.jit
def careful_kernel(x, y, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    first = tl.load(x + row * columns + at, mask=inside)  # site: picked
    second = tl.load(y + row * columns + at, mask=inside, other=0.0)
    total = tl.sum(tl.where(inside, first, 0.0) + second, axis=0)
    index = tl.load(y + row * columns + at, mask=inside)  # site: not stored
    tl.store(out + row * columns + at, total + index, mask=inside)


@triton.jit
def fetch(x, at, columns):
    return tl.load(
        x + at,
        mask=at < columns,
    )  # in a helper


@triton.jit
def helped_kernel(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, fetch(x, at, columns))  # site: helped


@triton.jit
def full_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < BLOCK))


@triton.jit
def unpadded_kernel(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < columns, care_padding=False))


@triton.jit
def padded_kernel(x, out, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [4, columns], [columns, 1], [4, BLOCK])
    tl.store(out + tl.arange(0, 4), tl.sum(source.load([0, 0]), axis=1))


@triton.jit
def pointer_kernel(x, out, columns, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x, (4, columns), (columns, 1), (0, 0), (4, BLOCK), (1, 0))
    tl.store(out + tl.arange(0, 4), tl.sum(tl.load(source, boundary_check=(1,)), axis=1))


def careless(op, dtype, columns):
    x = torch.arange(1, 1 + 16 * columns).reshape(16, columns).remainder(20).add(1).to(dtype)
    x = x - 10 if dtype.is_signed else x
    kind = torch.float32 if dtype.is_floating_point else dtype
    out = torch.zeros(16, dtype=kind)
    careless_kernel[(16,)](x, out, columns, OP=op, BLOCK=16)
    return op, x, out


def seen(mode, launch):
    interpreter.prepare(masked_lanes=mode)
    result = launch()
    return result, masked_lanes.sites()


def careful():
    x, y = torch.randn(2, 5, 12)
    out = torch.zeros(5, 12)
    careful_kernel[(5,)](x, y, out, 12, BLOCK=16)
    return x, y, out


def full():
    x, out = torch.randn(16), torch.zeros(16)
    full_kernel[(1,)](x, out, BLOCK=16)
    return x, out


def helped(dtype):
    x, out = torch.ones(8, dtype=dtype), torch.zeros(16, dtype=dtype)
    helped_kernel[(1,)](x, out, 8, BLOCK=16)
    return out


def unpadded():
    x, out = torch.ones(8), torch.zeros(16)
    unpadded_kernel[(1,)](x, out, 8, BLOCK=16)
    return out


def edge(kernel):
    x, out = torch.randn(4, 48), torch.zeros(4)
    kernel[(1,)](x, out, 48, BLOCK=64)
    return x, out


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8]


def run():
    modes = {}
    for mode in ("zero", "poison"):
        modes[mode] = {
            "careless": [
                optional(lambda: seen(mode, lambda: careless(op, dtype, columns)))
                for op in ("sum", "max", "min")
                for dtype in DTYPES
                for columns in (11, 15)
            ],
            "careful": seen(mode, careful),
            "full": seen(mode, full),
            "helped": {
                dtype: optional(lambda: seen(mode, lambda: helped(dtype))) for dtype in DTYPES
            },
            "descriptor": optional(lambda: seen(mode, lambda: edge(padded_kernel))),
            "block pointer": optional(lambda: seen(mode, lambda: edge(pointer_kernel))),
        }
    interpreter.prepare(masked_lanes="poison")
    again = [helped(torch.float32)]
    masked_lanes.reset()
    forgotten = masked_lanes.sites()
    again.append(helped(torch.float32))
    careless_of_padding = seen("poison", unpadded) if DOCUMENTED else None
    interpreter.prepare()
    return {
        "documented zeros": DOCUMENTED,
        "care_padding=False": careless_of_padding,
        "modes": modes,
        "again": again,
        "forgotten": forgotten,
        "mode": masked_lanes.mode(),
    }

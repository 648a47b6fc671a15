"""What a kernel's statements and arguments mean to a compiler, and to Python not."""

import importlib.util

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import tanh


ASCEND = importlib.util.find_spec("triton.backends.ascend") is not None


@triton.jit
def masks_kernel(x, out, n, ON: tl.constexpr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    program = tl.program_id(0)
    row = tl.load(x + lanes, mask=ON, other=7.0)
    tl.store(out + program * N + lanes, row, mask=program < n)


@triton.jit
def atomic_kernel(out, n):
    tl.atomic_add(out + tl.arange(0, 4), 1, mask=tl.program_id(0) < n)


@triton.jit
def numbers_kernel(out, scale, count, flag, given=0.5):
    tl.store(out, scale.to(tl.float32) + (scale.dtype == tl.float32))
    tl.store(out + 1, count.to(tl.int64) + (count.dtype == tl.int32))
    tl.store(out + 2, flag.to(tl.int32) + 2 * (flag.dtype == tl.int1))
    tl.store(out + 3, given.to(tl.float32))


@triton.jit
def wide_kernel(out, n, m):
    tl.store(out, n + n)
    tl.store(out + 1, n * n)
    tl.store(out + 2, m + m)


@triton.jit
def declared_kernel(out, n: tl.int64, m: "i32", half: tl.float16, exact: tl.float64):
    tl.store(out, n * 1000000 * 1000000)
    tl.store(out + 1, m * 1000000 * 1000000)
    tl.store(out + 2, half.to(tl.float64) * 1000)
    tl.store(out + 3, exact * 1e9)


@triton.jit
def loops_kernel(out, n):
    total = tl.full((), 0, tl.int64)
    for i in range(-3, n):
        total += i.to(tl.int64) // 2
    for j in tl.range(0, n, 2, num_stages=2):
        total += 100 * j.to(tl.int64)
    for k in tl.static_range(1, 3):
        tl.store(out + k, tl.sum(tl.arange(0, 2 * k)))
    tl.store(out, total)


@triton.jit
def choices_kernel(x, y, out, n, N: tl.constexpr):
    lanes = tl.arange(0, N)
    a, b = tl.load(x + lanes), tl.load(y + lanes)
    tl.store(out + lanes, max(a, b))
    tl.store(out + N + lanes, min(a, 0.5, b))
    tl.store(out + 2 * N + lanes, min(N, 8) + max(n, 5) + lanes * 0)


@triton.jit
def own_names_kernel(x, out, max: tl.constexpr, N: tl.constexpr):
    min = tl.load(x + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), min + max)


@triton.jit
def logic_kernel(x, y, out, n, N: tl.constexpr):
    lanes = tl.arange(0, N)
    a, b = tl.load(x + lanes) > 0, tl.load(y + lanes) > 1
    tl.store(out + lanes, a and b)
    tl.store(out + N + lanes, a or b)
    tl.store(out + 2 * N + lanes, not a)
    if N > 4 and n > 2 and not n == 3:
        tl.store(out + 3 * N, True)


@triton.jit
def unpacked_kernel(out, N: tl.constexpr):
    a, (b, c) = 0.5, (3, N)
    d: tl.float32 = 2.0
    e: tl.constexpr = N // 2
    tl.store(out, a.to(tl.float32) + b.to(tl.float32) + c.to(tl.float32) + d.to(tl.float32))
    tl.store(out + 1, tl.sum(tl.arange(0, e)) + N.value)


@triton.jit
def docstring_kernel(out):
    """Do what this does.

    def kernel(out):
        return out
    """
    tl.store(out, 5)


@triton.jit
def condition_kernel(x, out):
    if tl.load(x + tl.arange(0, 4)) > 0:
        tl.store(out, 1)


@triton.jit
def clipped(a, b):
    limit = 2
    return min(a + b, limit)


@triton.jit
def combine_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    block = tl.load(x + rows * N + columns)
    tl.store(out + tl.arange(0, M), tl.reduce(block, 1, clipped))


@triton.jit
def grid_kernel(out, n, scale, BLOCK: tl.constexpr = 4):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.num_programs(0) * scale, mask=lanes < n)


@triton.jit
def nan_kernel(x, out, N: tl.constexpr):
    row = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.max(row, 0))
    tl.store(out + 1, (tl.argmax(row, 0) < N).to(tl.float32))
    tl.store(out + 2, (tl.argmin(row, 0) < N).to(tl.float32))


@triton.jit
def dot_kernel(a, b, out, N: tl.constexpr, PRECISION: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x, y = tl.load(a + rows * N + columns), tl.load(b + rows * N + columns)
    tl.store(out + rows * N + columns, tl.dot(x, y, input_precision=PRECISION))


@triton.jit
def ascend_library_kernel(x, out, N: tl.constexpr):
    lanes = tl.arange(0, N)
    a = tl.load(x + lanes)
    tl.store(out + lanes, tanh(a))
    tl.store(out + N + lanes, libdevice.atan(a))
    tl.store(out + 2 * N + lanes, tl.extra.ascend.libdevice.log1p(tl.abs(a)))
    tl.store(out + 3 * N + lanes, tl.extra.ascend.libdevice.relu(a))
    tl.store(out + 4 * N + lanes, libdevice.isnan(a).to(tl.float32))


@triton.jit
def library_kernel(x, out, N: tl.constexpr):
    lanes = tl.arange(0, N)
    a = tl.load(x + lanes)
    positive = tl.abs(a) + 0.25
    tl.store(out + lanes, tanh(a))
    tl.store(out + N + lanes, libdevice.pow(positive, a))
    tl.store(out + 2 * N + lanes, libdevice.log1p(positive))
    tl.store(out + 3 * N + lanes, tl.extra.cuda.libdevice.erfinv(a / 4))
    tl.store(out + 4 * N + lanes, libdevice.round(a))
    tl.store(out + 5 * N + lanes, libdevice.rint(a))
    tl.store(out + 6 * N + lanes, libdevice.lgamma(positive))
    tl.store(out + 7 * N + lanes, libdevice.isnan(a).to(tl.float32))
    tl.store(out + 8 * N + lanes, libdevice.fast_expf(a))
    tl.store(out + 9 * N + lanes, libdevice.llrint(a * 3))
    tl.store(out + 10 * N + lanes, tl.extra.hip.libdevice.atan(a))
    tl.store(out + 11 * N + lanes, tl.extra.hip.libdevice.pow(positive, a))
    tl.store(out + 12 * N + lanes, tl.extra.hip.libdevice.abs(a))


@triton.jit
def assembly_kernel(x, y, out, factor, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.extra.cuda.gdc_wait()
    a, b = tl.load(x + lanes), tl.load(y + lanes)
    fast = tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1
    )
    scaled = tl.inline_asm_elementwise(
        asm="""
            // the second one by the first one
            div.full.f32 $0, $2, $1;
        """,
        constraints="=r,r,r",
        args=[factor, b],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + lanes, fast)
    tl.store(out + N + lanes, scaled)


@triton.jit
def unknown_assembly_kernel(x):
    a = tl.load(x)
    tl.inline_asm_elementwise(
        "prmt.b32 $0, $1, $1, 7;", "=r,r", [a], dtype=tl.int32, is_pure=True, pack=1
    )


def grids(out):
    yield [4]
    yield lambda meta: [triton.cdiv(meta["n"], meta["BLOCK"])]
    yield lambda meta: (triton.cdiv(meta["out"].numel(), meta["BLOCK"]), 1)
    yield lambda meta: (int(meta["scale"] * 2),)


def attempt(launch):
    try:
        launch()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run():
    x = torch.linspace(-3.5, 3.5, 16)
    y = 2.5 - torch.arange(16) % 5
    found = {"x": x, "y": y}

    def out(name, *shape, dtype=torch.float32):
        found[name] = torch.zeros(shape, dtype=dtype)
        return found[name]

    masks_kernel[(3,)](x, out("masks on", 3, 16), 2, ON=True, N=16)
    masks_kernel[(3,)](x, out("masks off", 3, 16), 2, ON=False, N=16)
    atomic_kernel[(5,)](out("atomic", 4, dtype=torch.int32), 3)
    numbers_kernel[(1,)](out("numbers", 4), 0.25, 7, True)
    wide_kernel[(1,)](out("wide", 3, dtype=torch.int64), 3 * 10**9, 2 * 10**9)
    declared_kernel[(1,)](out("declared", 4, dtype=torch.float64), 7, 7, 0.1, 0.1)
    loops_kernel[(1,)](out("loops", 3, dtype=torch.int64), 5)
    choices_kernel[(1,)](x, y, out("choices", 3, 16), 7, N=16)
    own_names_kernel[(1,)](x, out("own names", 16), 3, N=16)
    logic_kernel[(1,)](x, y, out("logic", 4, 16, dtype=torch.bool), 5, N=16)
    unpacked_kernel[(1,)](out("unpacked", 2), N=8)
    docstring_kernel[(1,)](out("docstring", 1))
    found["condition"] = attempt(lambda: condition_kernel[(1,)](x, out("-", 1)))
    combine_kernel[(1,)](x, out("combine", 4), M=4, N=4)
    for number, grid in enumerate(grids(x)):
        grid_kernel[grid](out(f"grid {number}", 16), 16, 2.0)
    options = {"num_warps": 2, "multibuffer": True, "enable_auto_bind_sub_block": False}
    grid_kernel[(4,)](out("options", 16), 16, 2.0, **options)
    found["misspelt"] = attempt(lambda: grid_kernel[(4,)](out("-", 16), 16, 2.0, BLOCK_=8))
    nan_kernel[(1,)](torch.full((16,), torch.nan), out("nan", 3), N=16)
    a, b = torch.rand(16, 16), torch.rand(16, 16)
    found["operands"] = (a, b)
    # triton-ascend takes its own format alone.
    for precision in ("ieee", "hf32") if ASCEND else ("tf32", "ieee", "hf32"):
        dot_kernel[(1,)](a, b, out(f"dot {precision}", 16, 16), N=16, PRECISION=precision)
    found["unknown precision"] = attempt(
        lambda: dot_kernel[(1,)](a, b, out("-", 16, 16), N=16, PRECISION="exact")
    )
    if ASCEND:
        ascend_library_kernel[(1,)](x, out("ascend library", 5, 16), N=16)
    else:
        library_kernel[(1,)](x, out("library", 13, 16), N=16)
        if hasattr(tl.extra.cuda, "gdc_wait"):
            assembly_kernel[(1,)](x, y, out("assembly", 2, 16), 1.5, N=16)
            found["unknown assembly"] = attempt(lambda: unknown_assembly_kernel[(1,)](x))
    return found

"""Operators on bfloat16 and float8 blocks."""

import torch
import triton
import triton.language as tl
from conversions import FLOAT8, every
from optional import optional
from triton.runtime import interpreter


@triton.jit
def binary_kernel(a, b, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(a + at, mask=inside, other=1.0)
    y = tl.load(b + at, mask=inside, other=1.0)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "div":
        z = x / y
    elif OP == "neg":
        z = -x
    elif OP == "abs":
        z = tl.abs(x)
    elif OP == "maximum":
        z = tl.maximum(x, y)
    elif OP == "minimum":
        z = tl.minimum(x, y)
    elif OP == "clamp":
        z = tl.clamp(x, -1.5, 2.5)
    elif OP == "where":
        z = tl.where(x > y, x, y)
    elif OP == "scale":
        z = x * 0.3125
    elif OP == "shift":
        z = 1 + x
    elif OP == "lt":
        z = x < y
    elif OP == "le":
        z = x <= y
    elif OP == "gt":
        z = x > y
    elif OP == "ge":
        z = x >= y
    elif OP == "eq":
        z = x == y
    else:
        z = x != y
    tl.store(out + at, z.to(out.dtype.element_ty), mask=inside)


@triton.jit
def fma_kernel(a, b, c, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(a + at, mask=inside, other=0.0)
    y = tl.load(b + at, mask=inside, other=0.0)
    z = tl.load(c + at, mask=inside, other=0.0)
    tl.store(out + at, tl.fma(x, y, z), mask=inside)


@triton.jit
def add_combine(a, b):
    return a + b


@triton.jit
def larger_combine(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def reduce_kernel(a, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    x = tl.load(a + rows[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        z = tl.sum(x, axis=1)
    elif OP == "max":
        z = tl.max(x, axis=1)
    elif OP == "min":
        z = tl.min(x, axis=1)
    elif OP == "argmax":
        z = tl.argmax(x, axis=1)
    elif OP == "argmin":
        z = tl.argmin(x, axis=1)
    elif OP == "own sum":
        z = tl.reduce(x, 1, add_combine)
    else:
        z = tl.reduce(x, 1, larger_combine)
    tl.store(out + rows, z.to(out.dtype.element_ty))


@triton.jit
def column_kernel(a, out, scanned, M: tl.constexpr, N: tl.constexpr):
    columns = tl.arange(0, N)
    at = tl.arange(0, M)[:, None] * N + columns[None, :]
    x = tl.load(a + at)
    tl.store(out + columns, tl.sum(x, axis=0).to(out.dtype.element_ty))
    tl.store(scanned + at, tl.cumsum(x, axis=0).to(scanned.dtype.element_ty))


@triton.jit
def total_kernel(a, out, N: tl.constexpr):
    x = tl.load(a + tl.arange(0, N))
    tl.store(out, tl.sum(x, axis=0).to(out.dtype.element_ty))
    tl.store(out + 1, tl.max(x, axis=0).to(out.dtype.element_ty))


@triton.jit
def scan_kernel(a, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(a + at)
    if OP == "cumsum":
        z = tl.cumsum(x, axis=1)
    elif OP == "reverse cumsum":
        z = tl.cumsum(x, axis=1, reverse=True)
    elif OP == "cumprod":
        z = tl.cumprod(x, axis=1)
    else:
        z = tl.associative_scan(x, 1, larger_combine)
    tl.store(out + at, z.to(out.dtype.element_ty))


@triton.jit
def dot_kernel(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    z = tl.dot(x, y)
    z = tl.dot(x, y, z)
    tl.store(out + m[:, None] * N + n[None, :], z)


@triton.jit
def shapes_kernel(a, out, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(a + at)
    square = tl.trans(tl.reshape(x, (N // 8, 8)))
    one, two = tl.split(tl.join(tl.reshape(square, (N,)), x + x))
    tl.store(out + at, one)
    tl.store(out + N + at, two)
    tl.store(out + 2 * N + at, tl.flip(x, 0))
    tl.store(out + 3 * N + at, tl.sort(x))
    tl.store(out + 4 * N + at, tl.broadcast_to(tl.load(a + 3), (N,)))
    tl.store(out + 5 * N + at, tl.full((N,), 0.3, x.dtype))
    tl.store(out + 6 * N + at, tl.zeros((N,), x.dtype) - x)


@triton.jit
def bits_kernel(a, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    bits = tl.load(a + at, mask=at < n, other=0.0).to(tl.int16, bitcast=True)
    flipped = (bits ^ -32768).to(tl.int16)
    tl.store(out + at, flipped.to(tl.bfloat16, bitcast=True), mask=at < n)


@triton.jit
def masked_kernel(a, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < n, other=-2.5)
    tl.store(out + at, x, mask=at != 5)


@triton.jit
def block_pointer_kernel(a, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(a, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
    x = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    target = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (M, N), (1, 0))
    tl.store(target, x + x)


@triton.jit
def walking_kernel(a, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    top = tl.program_id(0) * M
    # By columns, beginning one row above the matrix.
    source = tl.make_block_ptr(a, [columns, rows], [1, columns], [0, top - 1], [N, M], [0, 1])
    target = tl.make_block_ptr(out, (rows, columns), (columns, 1), (top, 0), (M, N), order=(1, 0))
    for _ in range(0, tl.cdiv(columns, N)):
        x = tl.load(source, boundary_check=(1, 0), padding_option="nan")
        y = tl.trans(x).to(tl.float32) * 3
        tl.store(target, y.to(target.dtype.element_ty), boundary_check=(0, 1))
        source = tl.advance(source, (N, 0))
        target = tl.advance(target, (0, N))


@triton.jit
def descriptor_kernel(a, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(a, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [M, N])
    x = source.load([0, 0])
    target.store([0, 0], x + x)


@triton.jit
def atomic_kernel(target, slots, values, found, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    slot = tl.load(slots + at, mask=inside, other=0)
    value = tl.load(values + at, mask=inside, other=0.0)
    tl.store(found + at, tl.atomic_add(target + slot, value, mask=inside), mask=inside)


@triton.jit
def exchange_kernel(target, values, found, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(found + at, tl.atomic_xchg(target + at, tl.load(values + at)))


@triton.jit
def swap_kernel(target, found):
    seen = tl.atomic_cas(target, tl.load(target), tl.load(target + 1))
    tl.store(found, seen)
    tl.store(found + 1, tl.atomic_cas(target, seen, seen))


@triton.jit
def scaled_dot_kernel(a, a_scale, b, b_scale, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    x_scale = tl.load(a_scale + m[:, None] * (K // 32) + g[None, :])
    y_scale = tl.load(b_scale + n[:, None] * (K // 32) + g[None, :])
    z = tl.dot_scaled(x, x_scale, "e5m2", y, y_scale, "e4m3")
    tl.store(out + m[:, None] * N + n[None, :], z)


BINARY = ["add", "sub", "mul", "neg", "abs", "where", "lt", "le", "gt", "ge", "eq", "ne"]
PROMOTED = ["div", "maximum", "minimum", "clamp", "scale", "shift"]


def binary(a, b, op, dtype):
    out = torch.zeros(a.shape, dtype=dtype)
    binary_kernel[(1,)](a, b, out, a.numel(), OP=op, BLOCK=triton.next_power_of_2(a.numel()))
    return out


def operators():
    drawn = every(torch.bfloat16)
    operands = {torch.bfloat16: (drawn, drawn[torch.randperm(65536)])}
    for dtype in FLOAT8:
        values = every(dtype)
        operands[dtype] = (values.repeat_interleave(256), values.repeat(256))
    done = []
    for dtype, (a, b) in operands.items():
        names = BINARY + (PROMOTED if dtype == torch.bfloat16 else [])
        for op in names:
            kind = torch.float32 if op in ("lt", "le", "gt", "ge", "eq", "ne") else dtype
            done.append((op, a, b, optional(lambda: binary(a, b, op, kind))))
    return done


def fused():
    a, b, c = torch.randn(3, 2048).to(torch.bfloat16)
    # The exact sum lies next to a tie of bfloat16, nearer than float64 can tell.
    a[:64], b[:64] = 1 + 2.0**-7, 1.5
    c[:64] = torch.linspace(-1, 1, 64).sign() * 2.0**-100
    out = torch.zeros_like(a)
    fma_kernel[(1,)](a, b, c, out, a.numel(), BLOCK=2048)
    return a, b, c, out


def reduce(op, x, kind):
    out = torch.zeros(x.shape[0], dtype=kind)
    reduce_kernel[(1,)](x, out, OP=op, M=x.shape[0], N=x.shape[1])
    return out


def total(x):
    out = torch.zeros(2, dtype=x.dtype)
    total_kernel[(1,)](x, out, N=x.numel())
    return out


def scan(op, x):
    out = torch.zeros_like(x)
    scan_kernel[(1,)](x, out, OP=op, M=x.shape[0], N=x.shape[1])
    return out


def reductions():
    done = []
    for dtype in (torch.bfloat16, *FLOAT8):
        # Sums of these are exact in float32, whatever their order.
        x = torch.randint(-16, 17, (16, 32)).float().mul(0.25).to(dtype)
        factors = torch.tensor([1.0, -2.0, 0.5])[torch.randint(0, 3, (16, 32))].to(dtype)
        few = x[:4, :16].contiguous()
        for op in ("sum", "max", "min"):
            done.append((op, x, optional(lambda: reduce(op, x, dtype))))
        for op in ("argmax", "argmin"):
            done.append((op, x, optional(lambda: reduce(op, x, torch.int32))))
        for op in ("own sum", "own max"):
            done.append((op, few, optional(lambda: reduce(op, few, dtype))))
        done.append(("total", x, optional(lambda: total(x))))
        for op, y in (("cumsum", x), ("reverse cumsum", x), ("cumprod", factors), ("own cummax", few)):
            done.append((op, y, optional(lambda: scan(op, y))))
    return done


def columns():
    done = []
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randint(0, 1000, (64, 16)).to(dtype)
        out, scanned = torch.zeros(16, dtype=dtype), torch.zeros_like(x)
        column_kernel[(1,)](x, out, scanned, M=64, N=16)
        done.append((x, out, scanned))
    return done


def dot(a, b):
    out = torch.zeros(16, 16)
    dot_kernel[(1,)](a, b, out, M=16, N=16, K=32)
    return out


def dots():
    done = []
    for dtype in (torch.bfloat16, *FLOAT8):
        a, b = (torch.randint(-8, 9, shape).mul(0.5).to(dtype) for shape in ((16, 32), (32, 16)))
        done.append((a, b, optional(lambda: dot(a, b))))
    return done


def scaled_dot():
    a = torch.randn(32, 64).to(torch.float8_e5m2)
    b = torch.randn(64, 32).to(torch.float8_e4m3fn)
    scales = torch.randint(120, 134, (2, 32, 2), dtype=torch.uint8)
    out = torch.zeros(32, 32)
    scaled_dot_kernel[(1,)](a, scales[0], b, scales[1], out, M=32, N=32, K=64)
    return a, b, scales, out


def atomics(dtype):
    slots = torch.randint(0, 7, (200,), dtype=torch.int32)
    values = torch.randn(200).to(dtype)
    target, found = torch.ones(7, dtype=dtype), torch.zeros(200, dtype=dtype)
    atomic_kernel[(1,)](target, slots, values, found, 200, BLOCK=256)
    return slots, values, target, found


def exchanges(dtype):
    target, values = torch.randn(2, 16).to(dtype)
    before, found = target.clone(), torch.zeros_like(target)
    exchange_kernel[(1,)](target, values, found, BLOCK=16)
    return before, values, target, found


def moves():
    x = torch.randn(64).to(torch.bfloat16)
    shaped = torch.zeros(7, 64, dtype=torch.bfloat16)
    shapes_kernel[(1,)](x, shaped, N=64)
    masked = torch.full((64,), 7.0, dtype=torch.bfloat16)
    masked_kernel[(1,)](x, masked, 40, BLOCK=64)
    flipped = torch.zeros_like(x)
    bits_kernel[(1,)](x, flipped, 64, BLOCK=64)
    return {"x": x, "shaped": shaped, "masked": masked, "sign flipped": flipped}


def block_pointers():
    return through(block_pointer_kernel)


def walk():
    matrix = torch.randn(11, 23).to(torch.float16)
    out = torch.zeros_like(matrix)
    walking_kernel[(3,)](matrix, out, 11, 23, M=4, N=8)
    return matrix, out


def descriptors():
    return through(descriptor_kernel)


def through(kernel):
    grid = torch.randn(6, 32).to(torch.bfloat16)
    out = torch.ones(8, 64, dtype=torch.bfloat16)
    kernel[(1,)](grid, out, 6, 32, M=8, N=64)
    return grid, out


def swaps():
    target = torch.tensor([1.5, -2.25], dtype=torch.bfloat16)
    found = torch.zeros(2, dtype=torch.bfloat16)
    swap_kernel[(1,)](target, found)
    return target, found


def functions():
    """Functions that only triton-ascend's language offers for low precision, from the builder."""
    builder = interpreter.interpreter_builder
    x = torch.rand(512).mul(8).add(0.01).to(torch.bfloat16)
    carrier = interpreter._get_np_dtype(tl.bfloat16)
    block = interpreter.TensorHandle(x.view(torch.int16).numpy().view(carrier), tl.bfloat16)
    done = {}
    for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil", "erf"):
        found = getattr(builder, f"create_{name}")(block).data
        assert found.dtype == carrier
        done[name] = torch.from_numpy(found.view("int16")).view(torch.bfloat16)
    return x, done


@triton.jit
def refused_kernel(a, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(a + at).to(tl.float8e4b15)
    tl.store(out + at, (x + x).to(tl.float16))


def refused():
    a = torch.ones(16, dtype=torch.float16)
    try:
        refused_kernel[(1,)](a, torch.empty_like(a), BLOCK=16)
    except Exception as error:
        return str(error)


def run():
    return {
        "functions": functions(),
        "binary": operators(),
        "fused": optional(fused),
        "reductions": reductions(),
        "columns": columns(),
        "dots": dots(),
        "moves": optional(moves),
        "block pointers": optional(block_pointers),
        "walk": optional(walk),
        "descriptors": optional(descriptors),
        "atomics": [optional(lambda: atomics(dtype)) for dtype in (torch.bfloat16, torch.float16)],
        "exchanges": optional(lambda: exchanges(torch.float32)),
        "swaps": optional(swaps),
        "scaled dot": optional(scaled_dot),
    }

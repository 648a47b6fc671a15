"""Kernels to be spread over processes, and kernels that must not be."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (inner + k)[None, :])
        acc += tl.dot(left, tl.load(b + (inner + k)[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def softmax_kernel(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=inside)


@triton.jit
def normalise(values, inside, columns):
    mean = tl.sum(values, 0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    return centred, tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)


@triton.jit
def layernorm_kernel(x, weight, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    centred, scale = normalise(values, inside, columns)
    scaled = centred * scale * tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + row * columns + at, scaled.to(out.dtype.element_ty), mask=inside)
    if row >= 3:  # not by the first program
        tl.store(scales + row, scale)


@triton.jit
def conv_kernel(x, weight, out, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    channel, batch = tl.program_id(1), tl.program_id(2)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = x + (batch * tl.num_programs(1) + channel) * length
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in tl.static_range(WIDTH):
        from_ = at + tap - WIDTH // 2
        inside = (from_ >= 0) & (from_ < length)
        acc += tl.load(base + from_, mask=inside, other=0.0) * tl.load(
            weight + channel * WIDTH + tap
        )
    to = out + (batch * tl.num_programs(1) + channel) * length + at
    tl.store(to, acc, mask=at < length)


@triton.jit
def affine_kernel(x, out, size, offset, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    values = tl.load(x + at * stride + offset, mask=inside)
    tl.store(out + at * stride + offset, values * 2 + 1, mask=inside)


@triton.jit
def pair_kernel(pair, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(pair[1] + at, tl.load(pair[0] + at, mask=at < size) * 3, mask=at < size)


@triton.jit
def descriptor_kernel(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) + 1)


@triton.jit
def address_kernel(address: tl.int64, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = address.to(tl.pointer_type(tl.float32))
    tl.store(out + at, tl.load(source + at) + 1)


@triton.jit
def table_kernel(table, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(source + at) + 1)


@triton.jit
def scatter_table_kernel(table, x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    target = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(target + at, tl.load(x + tl.program_id(0) * BLOCK + at) + 1)


@triton.jit
def careless_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns)
    more = tl.load(x + row * columns + at, mask=at < row + 1)
    tl.store(out + (row * 2) * BLOCK + at, values)
    tl.store(out + (row * 2 + 1) * BLOCK + at, more)


@triton.jit
def bytes_kernel(words, low, BLOCK: tl.constexpr):
    # 4 bytes at a time into one view, one byte at a time into the other one.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(words + at * 2, at)
    tl.store(low + at * 8 + 5, (at % 100).to(tl.uint8))


@triton.jit
def add_up_kernel(x, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + at), 0))


@triton.jit
def late_atomic_kernel(x, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == 2:
        tl.atomic_add(total, tl.sum(tl.load(x + at), 0))
    tl.store(x + at, tl.load(x + at) + 1)


@triton.jit
def chain_kernel(x, BLOCK: tl.constexpr):
    # Each program continues from what the one before has written.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + BLOCK + at, tl.load(x + at) + 1)


@triton.jit
def backward_chain_kernel(x, BLOCK: tl.constexpr):
    # Each program reads what the next one will write.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + BLOCK + at) + 1)


@triton.jit
def far_kernel(x, far, out, BLOCK: tl.constexpr):
    # Only the last programs read what only the second one writes.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == 1:
        tl.store(far + tl.arange(0, BLOCK), tl.load(x + at))
    value = tl.load(x + at)
    if tl.program_id(0) >= tl.num_programs(0) - 2:
        value += tl.load(far + tl.arange(0, BLOCK))
    tl.store(out + at, value)


@triton.jit
def same_bytes_kernel(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.program_id(0))


@triton.jit
def overlapping_kernel(out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK), tl.program_id(0))


@triton.jit
def printing_kernel(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) >= 3:
        tl.device_print("late", tl.program_id(0))
    tl.store(x + at, tl.load(x + at) + 1)


@triton.jit
def static_printing_kernel(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_print("static", BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)


@triton.jit
def raising_kernel(x, bad, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)
    tl.static_assert(tl.program_id(0) != bad, "a bad program")


def visited(place):
    """Stands for whatever a case wants to happen in a program."""


@triton.jit
def visiting_kernel(x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    visited(tl.program_id(0))
    tl.store(x + at, tl.load(x + at) + 1)

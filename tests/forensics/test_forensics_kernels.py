"""Tiny kernels with one planted fault each: the diagnosis names the fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import torch

from pytest_tritonverify.forensics import Diagnosis, FailedOutput, LaunchFacts, diagnose
from pytest_tritonverify.forensics.failing import failing_by
from tests.support.emulated import Launcher, blocks, empty, load, store

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Run:
    """What a kernel was given and gave."""

    golden: torch.Tensor
    actual: torch.Tensor
    inputs: tuple[torch.Tensor, ...] = ()
    others: tuple[torch.Tensor, ...] = ()
    launches: list[LaunchFacts] = field(default_factory=list)


KERNELS: dict[str, tuple[Callable[[], Run], str]] = {}


def kernel(code: str) -> Callable[[Callable[[], Run]], Callable[[], Run]]:
    def register(build: Callable[[], Run]) -> Callable[[], Run]:
        KERNELS[build.__name__] = build, code
        return build

    return register


def randn(*shape: int, seed: int = 7) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@kernel("tail_unwritten")
def add_with_a_grid_rounded_down() -> Run:
    x, y = randn(4000), randn(4000, seed=8)
    out, launcher = empty(4000), Launcher()

    def add(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        mask = offsets < 4000
        store(out, offsets, load(x, offsets, mask, 0.0) + load(y, offsets, mask, 0.0), mask)

    launcher.run(add, (4000 // 256,), block=256)
    return Run(x + y, out, (x, y), launches=launcher.launches)


@kernel("tail_unwritten")
def exponential_with_a_mask_that_is_too_tight() -> Run:
    x = randn(50, 41)
    out, launcher = empty(50, 41), Launcher()
    size = x.numel()

    def exponential(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, load(x, offsets, offsets < size, 0.0).exp(), offsets < size - 7)

    launcher.run(exponential, (blocks(size, 256),), block=256)
    return Run(x.exp(), out, (x,), launches=launcher.launches)


@kernel("tail_unwritten")
def row_scale_with_one_step_over_the_columns() -> Run:
    x = randn(30, 200)
    out, launcher = empty(30, 200), Launcher()

    def scale(row: int, block: int) -> None:
        columns = torch.arange(block)
        store(out, row * 200 + columns, load(x, row * 200 + columns) * 3)

    launcher.run(scale, (30,), block=128)
    return Run(x * 3, out, (x,), launches=launcher.launches)


@kernel("tail_wrong")
def tail_read_beyond_its_bound() -> Run:
    x = randn(1000)
    out, launcher = empty(1000), Launcher()

    def double(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        whole = (pid + 1) * block <= 1000
        source = offsets if whole else offsets + 24
        store(out, offsets, load(x, source) * 2, offsets < 1000)

    launcher.run(double, (blocks(1000, 128),), block=128)
    return Run(x * 2, out, (x,), launches=launcher.launches)


@kernel("masked_lanes")
def softmax_whose_load_has_no_other() -> Run:
    x = randn(20, 50)
    out, launcher = empty(20, 50), Launcher()

    def softmax(row: int, block: int) -> None:
        columns = torch.arange(block)
        values = load(x, row * 50 + columns, columns < 50).exp()
        store(out, row * 50 + columns, values / values.sum(), columns < 50)

    launcher.run(softmax, (20,), block=64)
    return Run(x.softmax(1), out, (x,), launches=launcher.launches)


@kernel("one_block")
def multiply_that_skips_a_program() -> Run:
    x = randn(4096)
    out, launcher = empty(4096), Launcher()

    def multiply(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        if pid != 5:
            store(out, offsets, load(x, offsets) * 2)

    launcher.run(multiply, (16,), block=256)
    return Run(x * 2, out, (x,), launches=launcher.launches)


@kernel("one_block")
def tiles_of_which_one_is_wrong() -> Run:
    x = randn(96, 160)
    out, launcher = empty(96, 160), Launcher()

    def square(i: int, j: int, block_m: int, block_n: int) -> None:
        rows, columns = i * block_m + torch.arange(block_m), j * block_n + torch.arange(block_n)
        offsets = rows[:, None] * 160 + columns
        values = load(x, offsets)
        store(out, offsets, values if (i, j) == (1, 2) else values * values)

    launcher.run(square, (3, 5), block_m=32, block_n=32)
    return Run(x * x, out, (x,), launches=launcher.launches)


@kernel("every_kth")
def vector_lanes_of_which_one_is_left_out() -> Run:
    x = randn(6000)
    out, launcher = torch.zeros(6000), Launcher()

    def negate(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, -load(x, offsets), (offsets < 6000) & (offsets % 4 != 3))

    launcher.run(negate, (blocks(6000, 512),), block=512)
    return Run(-x, out, (x,), launches=launcher.launches)


@kernel("block_tails")
def blocks_that_are_longer_than_their_arange() -> Run:
    x = randn(8192)
    out, launcher = empty(8192), Launcher()

    def copy(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block - 16)
        store(out, offsets, load(x, offsets) + 1)

    launcher.run(copy, (64,), block=128)
    return Run(x + 1, out, (x,), launches=launcher.launches)


@kernel("first_row")
def rows_that_are_counted_from_one() -> Run:
    x = randn(40, 24)
    out, launcher = empty(40, 24), Launcher()

    def absolute(pid: int, width: int) -> None:
        offsets = (pid + 1) * width + torch.arange(width)
        store(out, offsets, load(x, offsets).abs())

    launcher.run(absolute, (40,), width=24)
    return Run(x.abs(), out, (x,), launches=launcher.launches)


@kernel("last_column")
def columns_whose_bound_is_exclusive_twice() -> Run:
    x = randn(37, 65)
    out, launcher = torch.zeros(37, 65), Launcher()

    def sine(row: int) -> None:
        columns = torch.arange(64)
        store(out, row * 65 + columns, load(x, row * 65 + columns).sin())

    launcher.run(sine, (37,))
    return Run(x.sin(), out, (x,), launches=launcher.launches)


@kernel("transposed")
def store_with_exchanged_strides() -> Run:
    x = randn(48, 48)
    out, launcher = empty(48, 48), Launcher()

    def root(row: int, block: int) -> None:
        columns = torch.arange(block)
        store(out, columns * 48 + row, load(x, row * 48 + columns).abs().sqrt())

    launcher.run(root, (48,), block=48)
    return Run(x.abs().sqrt(), out, (x,), launches=launcher.launches)


@kernel("rolled")
def load_that_is_one_too_far() -> Run:
    x = randn(3000)
    out, launcher = empty(3000), Launcher()

    def tanh(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, load(x, offsets + 1, offsets < 2999, 0.0).tanh(), offsets < 3000)

    launcher.run(tanh, (blocks(3000, 256),), block=256)
    return Run(x.tanh(), out, (x,), launches=launcher.launches)


@kernel("broadcast")
def load_without_the_column() -> Run:
    x = randn(60, 33)
    out, launcher = empty(60, 33), Launcher()

    def shift(row: int, block: int) -> None:
        columns = torch.arange(block)
        store(out, row * 33 + columns, load(x, row * 33 + columns * 0) + 1, columns < 33)

    launcher.run(shift, (60,), block=64)
    return Run(x + 1, out, (x,), launches=launcher.launches)


@kernel("broadcast")
def load_without_any_offset() -> Run:
    x = randn(2000)
    out, launcher = empty(2000), Launcher()

    def shift(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, load(x, offsets * 0) * 2, offsets < 2000)

    launcher.run(shift, (8,), block=256)
    return Run(x * 2, out, (x,), launches=launcher.launches)


@kernel("constant_factor")
def mean_that_is_a_sum() -> Run:
    x = randn(80, 100)
    out, launcher = empty(80), Launcher()

    def mean(row: int, block: int) -> None:
        columns = torch.arange(block)
        total = load(x, row * 100 + columns, columns < 100, 0.0).sum()
        store(out, torch.tensor([row]), total)

    launcher.run(mean, (80,), block=128)
    return Run(x.mean(1), out, (x,), launches=launcher.launches)


@kernel("constant_offset")
def softplus_without_its_constant() -> Run:
    x = randn(1500)
    out, launcher = empty(1500), Launcher()

    def plus(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, load(x, offsets, offsets < 1500, 0.0).exp(), offsets < 1500)

    launcher.run(plus, (blocks(1500, 128),), block=128)
    return Run(x.exp() + 0.25, out, (x,), launches=launcher.launches)


@kernel("wrong_reduction_axis")
def sum_over_columns_instead_of_rows() -> Run:
    x = randn(64, 64)
    out, launcher = empty(64), Launcher()

    def total(pid: int, block: int) -> None:
        store(out, torch.tensor([pid]), load(x, torch.arange(block) * 64 + pid).sum())

    launcher.run(total, (64,), block=64)
    return Run(x.sum(1), out, (x,), launches=launcher.launches)


@kernel("wrong_reduction_axis")
def softmax_down_the_columns() -> Run:
    x = randn(40, 72)
    out, launcher = empty(40, 72), Launcher()

    def softmax(pid: int, block: int) -> None:
        offsets = torch.arange(block) * 72 + pid
        mask = torch.arange(block) < 40
        values = load(x, offsets, mask, -torch.inf).softmax(0)
        store(out, offsets, values, mask)

    launcher.run(softmax, (72,), block=64)
    return Run(x.softmax(1), out, (x,), launches=launcher.launches)


@kernel("swapped_outputs")
def minimum_and_maximum_exchanged() -> Run:
    x = randn(70, 30)
    out = empty(70)
    for row in range(70):
        store(out, torch.tensor([row]), load(x, row * 30 + torch.arange(30)).min())
    return Run(x.amax(1), out, (x,), (x.amin(1),))


@kernel("half_precision")
def product_accumulated_in_bfloat16() -> Run:
    a, b = randn(64, 96), randn(96, 48, seed=8)
    out = empty(64, 48)
    for row in range(64):
        total = torch.zeros(48, dtype=torch.bfloat16)
        for k in range(0, 96, 32):
            total += (a[row, k : k + 32] @ b[k : k + 32]).bfloat16()
        store(out, row * 48 + torch.arange(48), total)
    return Run(a @ b, out, (a, b))


@kernel("half_precision")
def product_of_operands_rounded_to_tf32() -> Run:
    a, b = randn(64, 512), randn(512, 48, seed=8)

    def rounded(values: torch.Tensor) -> torch.Tensor:
        bits = values.view(torch.int32) + 0x1000
        return (bits & ~0x1FFF).view(torch.float32)

    return Run(a @ b, rounded(a) @ rounded(b), (a, b))


@kernel("overflow_to_infinity")
def softmax_without_the_maximum_taken_off() -> Run:
    x = randn(64, 32)
    x[::5] *= 60
    out = empty(64, 32)
    for row in range(64):
        values = load(x, row * 32 + torch.arange(32)).exp()
        store(out, row * 32 + torch.arange(32), values / values.sum())
    return Run(x.softmax(1), out, (x,))


@kernel("overflow_to_infinity")
def squares_in_float16() -> Run:
    x = randn(5000) * 100
    return Run(x * x, (x.half() * x.half()).float(), (x,))


@kernel("uninitialised")
def store_whose_mask_is_always_off() -> Run:
    x = randn(1234)
    out, launcher = empty(1234), Launcher()

    def copy(pid: int, block: int) -> None:
        offsets = pid * block + torch.arange(block)
        store(out, offsets, load(x, offsets, offsets < 1234, 0.0), offsets < 0)

    launcher.run(copy, (blocks(1234, 256),), block=256)
    return Run(x * 2, out, (x,), launches=launcher.launches)


@kernel("zeros")
def result_stored_elsewhere() -> Run:
    x = randn(33, 21)
    return Run(x.cos(), torch.zeros(33, 21), (x,))


@kernel("sign_flipped")
def subtraction_the_wrong_way_round() -> Run:
    x, y = randn(900), randn(900, seed=8)
    return Run(x - y, y - x, (x, y))


@kernel("off_by_one")
def index_counted_from_one() -> Run:
    x = randn(90, 40)
    return Run(x.argmax(1), x.argmax(1) + 1, (x,))


@kernel("integer_wrap")
def sum_of_integers_in_32_bits() -> Run:
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(0, 1 << 31, (100, 64), generator=generator)
    return Run(x.sum(1), x.sum(1).to(torch.int32).long(), (x,))


@kernel("truncation")
def division_as_c_does_it() -> Run:
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(-1000, 1000, (800,), generator=generator, dtype=torch.int32)
    y = torch.randint(3, 17, (800,), generator=generator, dtype=torch.int32)
    return Run(x // y, torch.div(x, y, rounding_mode="trunc"), (x, y))


@kernel("saturated")
def conversion_that_saturates() -> Run:
    x = randn(700) * 300
    return Run(x, x.clamp(-448, 448), (x,))


def named(build: Callable[[], Run], *, launches: bool) -> Diagnosis:
    run = build()
    return diagnose(
        FailedOutput(
            run.golden,
            run.actual,
            failing_by(None, run.golden.dtype),
            run.others,
            run.inputs,
            run.launches if launches else (),
        )
    )


@pytest.mark.parametrize("name", KERNELS)
def test_the_planted_fault_is_named(name: str) -> None:
    build, code = KERNELS[name]
    found = named(build, launches=True)
    assert found.code == code
    assert found.cause
    assert found.confidence in {"clear", "likely"}


def test_most_faults_are_named_without_launches_and_none_is_mistaken() -> None:
    akin = {
        "tail_wrong": {"tail_wrong", "one_block"},
        "masked_lanes": {"masked_lanes", "uninitialised"},
        "block_tails": {"block_tails", "every_kth"},
    }
    right = 0
    for build, code in KERNELS.values():
        found = named(build, launches=False).code
        assert found in {"unclear", *akin.get(code, {code})}
        right += found == code
    assert right >= 0.9 * len(KERNELS)

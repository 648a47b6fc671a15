from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.support.lowprecision import assert_same_bits, rounded

if TYPE_CHECKING:
    from collections.abc import Callable

BF16 = torch.bfloat16
CONSTANT = torch.tensor(0.3, dtype=BF16)

EXPECTED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, _: -a,
    "abs": lambda a, _: a.abs(),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "clamp": lambda a, _: a.clamp(-1.5, 2.5),
    "where": lambda a, b: torch.where(a > b, a, b),
    "scale": lambda a, _: a * 0.3125,
    "shift": lambda a, _: 1 + a,
    "lt": lambda a, b: (a < b).float(),
    "le": lambda a, b: (a <= b).float(),
    "gt": lambda a, b: (a > b).float(),
    "ge": lambda a, b: (a >= b).float(),
    "eq": lambda a, b: (a == b).float(),
    "ne": lambda a, b: (a != b).float(),
}
DROPS_NAN = ("maximum", "minimum", "clamp")


def results(kernels: dict[str, Any], name: str) -> Any:
    found = kernels["operators"][name]
    if isinstance(found, str):
        pytest.skip(f"this version of Triton lacks it: {found}")
    return found


def test_operators_are_torchs_in_bfloat16_and_float32_rounded_once_in_float8(
    kernels: dict[str, Any],
) -> None:
    seen = set()
    for op, a, b, out in results(kernels, "binary"):
        if isinstance(out, str):
            continue
        seen.add((op, a.dtype))
        # torch computes bfloat16 in float32 itself, but has few operators for float8.
        wide = a.dtype != BF16
        x, y = (a.float(), b.float()) if wide else (a, b)
        expected = rounded(EXPECTED[op](x, y), out.dtype)
        if op == "neg":  # 0 - x in older versions of Triton
            out, expected = out[a != 0], expected[a != 0]  # noqa: PLW2901 - a narrower view
        if op in DROPS_NAN:  # they differ between versions of Triton where one operand is NaN
            numbers = ~(a.isnan() | b.isnan())
            out, expected = out[numbers], expected[numbers]  # noqa: PLW2901 - a narrower view
        assert_same_bits(out, expected)
    assert {op for op, dtype in seen if dtype == BF16} == set(EXPECTED)


def test_fma_rounds_once(kernels: dict[str, Any]) -> None:
    a, b, c, out = results(kernels, "fused")
    exact = a.double() * b.double() + c.double()  # but for the last bits
    torch.testing.assert_close(out.double(), exact, rtol=2.0**-8, atol=0)
    # Half way between two numbers; the addend, far below what float64 sees, decides.
    ties = out[:64].float()
    assert torch.equal(ties, torch.where(c[:64] > 0, 1.515625, 1.5078125))


def test_functions_of_low_precision(kernels: dict[str, Any]) -> None:
    x, done = kernels["operators"]["functions"]
    for name, found in done.items():
        expected = getattr(torch, name)(x)
        # numpy's functions differ from torch's in the last bits of float32, so two results in
        # hundreds fall on the other side of a tie.
        apart = (found.view(torch.int16).int() - expected.view(torch.int16).int()).abs()
        assert apart.max() <= (0 if name in ("sqrt", "floor", "ceil") else 1)


def test_arithmetic_in_e4b15_is_refused(kernels: dict[str, Any]) -> None:
    message = kernels["refused"]
    assert "x.to(tl.float16)" in message or "unexpected type fp8e4b15" in message


def test_reductions_and_scans(kernels: dict[str, Any]) -> None:
    for op, x, out in results(kernels, "reductions"):
        if isinstance(out, str):
            continue
        assert_same_bits(out, _reduced(op, x).to(out.dtype))


def test_long_sums_are_rounded_once(kernels: dict[str, Any]) -> None:
    for x, out, scanned in results(kernels, "columns"):
        assert_same_bits(out, x.float().sum(0).to(x.dtype))
        assert_same_bits(scanned, x.float().cumsum(0).to(x.dtype))


def _reduced(op: str, x: torch.Tensor) -> torch.Tensor:
    wide, dtype = x.float(), x.dtype
    if op == "own sum":
        total = x[:, 0]
        for column in range(1, x.shape[1]):
            total = rounded(total.float() + wide[:, column], dtype)
        return total
    found = {
        "sum": lambda: wide.sum(1),
        "max": lambda: wide.amax(1),
        "min": lambda: wide.amin(1),
        "own max": lambda: wide.amax(1),
        "argmax": lambda: torch.from_numpy(wide.numpy().argmax(1)),
        "argmin": lambda: torch.from_numpy(wide.numpy().argmin(1)),
        "total": lambda: torch.stack([wide.sum(), wide.amax()]),
        "cumsum": lambda: wide.cumsum(1),
        "reverse cumsum": lambda: wide.flip(1).cumsum(1).flip(1),
        "cumprod": lambda: wide.cumprod(1),
        "own cummax": lambda: wide.cummax(1).values,
    }[op]()
    return found if op.startswith("arg") else rounded(found, dtype)


def test_dot_accumulates_in_float32(kernels: dict[str, Any]) -> None:
    for a, b, out in results(kernels, "dots"):
        if isinstance(out, str):
            continue
        assert torch.equal(out, 2 * (a.float() @ b.float()))


def test_scaled_dot(kernels: dict[str, Any]) -> None:
    a, b, scales, out = results(kernels, "scaled dot")
    by_column = (2.0 ** (scales.float() - 127)).repeat_interleave(32, dim=2)
    expected = (a.double() * by_column[0]) @ (b.double() * by_column[1].T)
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)


def test_atomic_additions_to_one_address_follow_one_another(kernels: dict[str, Any]) -> None:
    for found_or_why in results(kernels, "atomics"):
        if isinstance(found_or_why, str):
            continue
        slots, values, target, found = found_or_why
        expected = torch.ones_like(target)
        for lane, slot in enumerate(slots.tolist()):
            assert found[lane] == expected[slot]
            expected[slot] += values[lane]
        assert_same_bits(target, expected)


def test_exchange(kernels: dict[str, Any]) -> None:
    before, values, target, found = results(kernels, "exchanges")
    assert torch.equal(target, values)
    assert torch.equal(found, before)


def test_compare_and_swap(kernels: dict[str, Any]) -> None:
    target, found = results(kernels, "swaps")
    assert target.tolist() == [-2.25, -2.25]
    assert found.tolist() == [1.5, -2.25]


def test_moves_keep_values(kernels: dict[str, Any]) -> None:
    moves = results(kernels, "moves")
    x = moves["x"]
    expected = [
        x.reshape(8, 8).T.reshape(64),
        x + x,
        x.flip(0),
        x.sort().values,
        x[3].expand(64),
        CONSTANT.expand(64),
        -x,
    ]
    for got, wanted in zip(moves["shaped"], expected, strict=True):
        assert_same_bits(got, wanted.contiguous())
    masked = torch.cat([x[:40], torch.full((24,), -2.5, dtype=BF16)])
    masked[5] = 7
    assert_same_bits(moves["masked"], masked)
    assert_same_bits(moves["sign flipped"], -x)


def test_block_pointers_advance_and_end_with_the_tensor(kernels: dict[str, Any]) -> None:
    matrix, out = results(kernels, "walk")
    # Padded with NaN where negative offsets count as outside, and undefined elsewhere.
    assert not out[0].isfinite().any()
    torch.testing.assert_close(out[1:], matrix[:-1] * 3)


@pytest.mark.parametrize("means", ["block pointers", "descriptors"])
def test_blocks_beyond_the_edge_are_padded(kernels: dict[str, Any], means: str) -> None:
    grid, out = results(kernels, means)
    expected = torch.zeros(8, 64, dtype=BF16)
    expected[:6, :32] = grid + grid
    assert_same_bits(out, expected)

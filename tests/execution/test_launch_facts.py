"""An implementation's process remembers which kernels a run launched, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.workers import TWICE, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.workers import Bench

IMPLEMENTATION = """
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 4})], key=["n"])
@triton.jit
def twice(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, x * 2, mask=at < n)

@triton.jit
def touch(out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out_ptr + at, tl.load(out_ptr + at))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        twice[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), WIDE=True)
        for size in range(self.launches(x)):
            touch[1, 1](out, SIZE=4 if size % 2 else 2)
        return out

    def launches(self, x):
        return 5 if x[0, 0] == 0 else 0
"""


def facts(bench: Bench, folder: Path, cases: tuple[int, ...]) -> list[dict[str, Any]]:
    sides = bench.both(write_pair(folder, TWICE, IMPLEMENTATION), cases)
    return [side.actual.message for side in sides]


def test_a_launch_has_a_place_a_grid_and_its_constants(bench: Bench, tmp_path: Path) -> None:
    (message,) = facts(bench, tmp_path, (2,))

    (launch,) = message["launches"]
    assert launch["kernel"] == "twice"
    assert launch["file"] == str(tmp_path / "op_triton_ascend_impl.py")
    lines = IMPLEMENTATION.splitlines()
    assert lines[launch["line"] - 1].startswith(("@triton", "def twice"))
    assert launch["grid"] == [2]
    assert launch["constexprs"] == {"BLOCK": 4}


def test_equal_launches_are_told_once_and_those_of_the_case_alone(
    bench: Bench, tmp_path: Path
) -> None:
    first, second = facts(bench, tmp_path, (1, 2))

    told = [(launch["kernel"], launch["constexprs"]) for launch in first["launches"]]
    assert told == [("twice", {"BLOCK": 4}), ("touch", {"SIZE": 2}), ("touch", {"SIZE": 4})]
    assert [launch["kernel"] for launch in second["launches"]] == ["twice"]

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

SOURCE = Path(__file__).parents[1] / "cases" / "interpreter" / "lanes.py"
WIDTH = 16


def line_of(mark: str) -> int:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(mark))


def site(mark: str, lanes: int, offset: int = 0) -> dict[str, Any]:
    return {"file": str(SOURCE), "line": line_of(mark) + offset, "lanes": lanes}


def reduced(op: str, x: torch.Tensor) -> torch.Tensor:
    wide = x.double()
    return {"sum": wide.sum(1), "max": wide.amax(1), "min": wide.amin(1)}[op]


def careless_runs(kernels: dict[str, Any], mode: str) -> list[Any]:
    return [run for run in run_of(kernels, mode, "careless") if not isinstance(run, str)]


@pytest.fixture
def undefined(kernels: dict[str, Any]) -> None:
    if kernels["lanes"]["documented zeros"]:
        pytest.skip("this version of Triton documents zeros")


def run_of(kernels: dict[str, Any], mode: str, name: str) -> Any:
    found = kernels["lanes"]["modes"][mode][name]
    if isinstance(found, str):
        pytest.skip(f"this version of Triton lacks it: {found}")
    return found


def test_zero_mode_is_what_triton_does(kernels: dict[str, Any]) -> None:
    for (op, x, out), _ in careless_runs(kernels, "zero"):
        padded = torch.nn.functional.pad(x.double(), (0, WIDTH - x.shape[1]))
        torch.testing.assert_close(out, reduced(op, padded).to(out.dtype))


@pytest.mark.usefixtures("undefined")
def test_zero_mode_names_the_loads_too(kernels: dict[str, Any]) -> None:
    for (_, x, _), sites in careless_runs(kernels, "zero"):
        assert sites == [site("# site: careless", WIDTH * (WIDTH - x.shape[1]))]


@pytest.mark.usefixtures("undefined")
def test_poison_shows_in_sums_maxima_and_minima(kernels: dict[str, Any]) -> None:
    for (op, x, out), sites in careless_runs(kernels, "poison"):
        right = reduced(op, x).to(out.dtype)
        wrong = out != right
        # A zero among unsigned numbers can't show in a sum, so it takes two rows.
        assert wrong.all() if op == "sum" and x.dtype != torch.uint8 else wrong.any()
        assert sites == [site("# site: careless", WIDTH * (WIDTH - x.shape[1]))]


@pytest.mark.usefixtures("undefined")
def test_a_kernel_that_leaves_them_alone_is_right_but_named(kernels: dict[str, Any]) -> None:
    for mode in ("zero", "poison"):
        (x, y, out), sites = run_of(kernels, mode, "careful")
        expected = (x + y).sum(1, keepdim=True) + y
        torch.testing.assert_close(out, expected)
        assert sites == [site("# site: picked", 20), site("# site: not stored", 20)]


def test_documented_zeros_stay(kernels: dict[str, Any]) -> None:
    if not kernels["lanes"]["documented zeros"]:
        pytest.skip("only triton-ascend documents them")
    for (op, x, out), sites in careless_runs(kernels, "poison"):
        padded = torch.nn.functional.pad(x.double(), (0, WIDTH - x.shape[1]))
        torch.testing.assert_close(out, reduced(op, padded).to(out.dtype))
        assert sites == []
    out, sites = kernels["lanes"]["care_padding=False"]
    assert out[8:].isnan().any()
    assert [one["lanes"] for one in sites] == [8]


def test_a_mask_that_is_on_everywhere_names_nothing(kernels: dict[str, Any]) -> None:
    (x, out), sites = run_of(kernels, "poison", "full")
    assert torch.equal(x, out)
    assert sites == []


@pytest.mark.usefixtures("undefined")
def test_patterns_vary_by_lane_and_the_load_in_a_helper_is_named(kernels: dict[str, Any]) -> None:
    runs = run_of(kernels, "poison", "helped").items()
    for dtype, (out, sites) in ((d, run) for d, run in runs if not isinstance(run, str)):
        if dtype.is_floating_point:
            largest = torch.finfo(dtype).max
            four = torch.tensor([torch.nan, largest, torch.nan, -largest], dtype=dtype)
            pattern = four.repeat(2)
        else:
            limits = torch.iinfo(dtype)
            pattern = torch.tensor([limits.max, limits.min], dtype=dtype).repeat(4)
        assert torch.equal(out[:8], torch.ones(8, dtype=dtype))
        torch.testing.assert_close(out[8:], pattern, equal_nan=True, rtol=0, atol=0)
        assert sites == [site("# in a helper", 8, offset=-3)]


def test_a_reset_forgets_loads_and_starts_the_patterns_anew(kernels: dict[str, Any]) -> None:
    first, second = kernels["lanes"]["again"]
    assert torch.equal(first.view(torch.int32), second.view(torch.int32))
    assert kernels["lanes"]["forgotten"] == []
    assert kernels["lanes"]["mode"] == "zero"


@pytest.mark.parametrize("mode", ["zero", "poison"])
def test_descriptors_pad_with_zeros(kernels: dict[str, Any], mode: str) -> None:
    (x, out), sites = run_of(kernels, mode, "descriptor")
    torch.testing.assert_close(out, x.sum(1))
    assert sites == []


@pytest.mark.usefixtures("undefined")
def test_block_pointers_without_padding_are_undefined(kernels: dict[str, Any]) -> None:
    (x, out), _ = run_of(kernels, "zero", "block pointer")
    torch.testing.assert_close(out, x.sum(1))
    (_, out), sites = run_of(kernels, "poison", "block pointer")
    assert out.isnan().all()
    assert [one["lanes"] for one in sites] == [64]

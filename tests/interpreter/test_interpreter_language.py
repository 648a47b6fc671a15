from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_tritonverify.interpreter import assembly, libdevice
from tests.support.installed import ASCEND


@pytest.fixture
def found(kernels: dict[str, Any]) -> dict[str, Any]:
    results: dict[str, Any] = kernels["language"]
    return results


def test_one_number_masks_a_whole_block(found: dict[str, Any]) -> None:
    x = found["x"]
    nothing = torch.zeros_like(x)
    assert torch.equal(found["masks on"], torch.stack([x, x, nothing]))
    assert torch.equal(found["masks off"], torch.stack([nothing + 7, nothing + 7, nothing]))
    assert found["atomic"].tolist() == [3, 3, 3, 3]


def test_numbers_that_are_passed_have_a_type(found: dict[str, Any]) -> None:
    assert found["numbers"].tolist() == [1.25, 8, 3, 0.5]


def test_integers_beyond_32_bits_are_computed_in_64(found: dict[str, Any]) -> None:
    n, m = 3 * 10**9, 2 * 10**9
    # Only what does not fit into 32 bits is passed as 64; the other one wraps around.
    assert found["wide"].tolist() == [2 * n, n * n, 2 * m - 2**32]


def test_a_declared_type_is_the_type(found: dict[str, Any]) -> None:
    wrapped = (7 * 10**12 + 2**31) % 2**32 - 2**31
    half = torch.tensor(0.1).half().item() * 1000
    # A constant in the kernel is float32: 1e9 is exact in it.
    assert found["declared"].tolist() == [7 * 10**12, wrapped, pytest.approx(half), 0.1 * 1e9]


def test_loops_count_in_tensors(found: dict[str, Any]) -> None:
    # Integer division drops the fraction, as in C.
    halves = sum(int(i / 2) for i in range(-3, 5))
    assert found["loops"].tolist() == [halves + 100 * (0 + 2 + 4), 1, 6]


def test_min_and_max_work_on_every_element(found: dict[str, Any]) -> None:
    x, y = found["x"], found["y"]
    assert torch.equal(found["choices"][0], torch.maximum(x, y))
    assert torch.equal(found["choices"][1], torch.minimum(x, y).clamp(max=0.5))
    assert found["choices"][2].tolist() == [8 + 7] * 16
    assert torch.equal(found["own names"], x + 3)


def test_logic_works_on_every_element(found: dict[str, Any]) -> None:
    a, b = found["x"] > 0, found["y"] > 1
    met = torch.zeros(16, dtype=torch.bool)
    met[0] = True
    assert torch.equal(found["logic"], torch.stack([a & b, a | b, ~a, met]))


def test_a_block_is_no_condition(found: dict[str, Any]) -> None:
    assert "Boolean value of Tensor with more than one value is ambiguous" in found["condition"]


def test_assignments_make_tensors_of_numbers(found: dict[str, Any]) -> None:
    assert found["unpacked"].tolist() == [0.5 + 3 + 8 + 2, 0 + 1 + 2 + 3 + 8]


def test_a_definition_in_a_docstring_is_text(found: dict[str, Any]) -> None:
    assert found["docstring"].tolist() == [5]


def test_a_combine_function_is_read_as_kernels_are(found: dict[str, Any]) -> None:
    expected = []
    for row in found["x"].reshape(4, 4).tolist():
        total = row[0]
        for value in row[1:]:
            total = min(total + value, 2)
        expected.append(total)
    torch.testing.assert_close(found["combine"], torch.tensor(expected))


@pytest.mark.parametrize("number", range(4))
def test_grids_are_lists_and_functions_of_what_was_passed(
    found: dict[str, Any], number: int
) -> None:
    assert found[f"grid {number}"].tolist() == [8] * 16


def test_options_of_devices_are_ignored_and_misspelt_parameters_are_not(
    found: dict[str, Any],
) -> None:
    assert found["options"].tolist() == [8] * 16
    assert "did you mean 'BLOCK'?" in found["misspelt"]


def test_reductions_of_nothing_but_nan(found: dict[str, Any]) -> None:
    largest, *indices = found["nan"].tolist()
    assert largest != largest  # noqa: PLR0124 - only NaN is not equal to itself
    assert indices == [1, 1]


def test_dot_takes_the_precisions_of_all_devices(found: dict[str, Any]) -> None:
    a, b = found["operands"]
    for precision in ("ieee", "hf32") if ASCEND else ("tf32", "ieee", "hf32"):
        torch.testing.assert_close(found[f"dot {precision}"], a @ b)
    assert "input_precision must be one of" in found["unknown precision"]


@pytest.mark.skipif(not ASCEND, reason="triton-ascend has a library of its own")
def test_the_library_of_triton_ascend(found: dict[str, Any]) -> None:
    x = found["x"]
    expected = [x.tanh(), x.atan(), x.abs().log1p(), x.relu(), torch.zeros_like(x)]
    torch.testing.assert_close(found["ascend library"], torch.stack(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(ASCEND, reason="triton-ascend has a library of its own")
def test_libdevice(found: dict[str, Any]) -> None:
    x = found["x"]
    positive = x.abs() + 0.25
    half_away = torch.copysign((x.abs() + 0.5).floor(), x)
    expected = [
        x.tanh(),
        positive**x,
        positive.log1p(),
        torch.erfinv(x / 4),
        half_away,
        x.round(),
        positive.lgamma(),
        torch.zeros_like(x),
        x.exp(),
        (x * 3).round(),
        x.atan(),
        positive**x,
        x.abs(),
    ]
    torch.testing.assert_close(found["library"], torch.stack(expected), rtol=1e-6, atol=1e-6)


def test_assembly_of_one_instruction(found: dict[str, Any]) -> None:
    if "assembly" not in found:
        pytest.skip("before Triton 3.4")
    expected = torch.stack([found["x"].tanh(), found["y"] / 1.5])
    torch.testing.assert_close(found["assembly"], expected, rtol=1e-6, atol=1e-6)
    assert "inline assembly can't be run on the CPU ('prmt.b32" in found["unknown assembly"]


def test_assembly_that_is_known() -> None:
    for text in (
        "ex2.approx.ftz.f32 $0, $1;",
        "  mul.rn.f32 $0,$1 , $2 ;",
        "/* a */ fma.rn.f64 $0, $1, $2, $3",
    ):
        assert assembly.computed_by(text) is not None
    for text in (
        "",
        "mul.rz.f32 $0, $1, $2;",
        "mul.rn.f32 $0, $1;",
        "mul.rn.bf16x2 $0, $1, $2;",
        "mul.rn.f32 $0, $1, $2; mul.rn.f32 $0, $1, $2;",
        "add.sat.f32 $0, $1, $2;",
        "mov.u32 $0, %smid;",
    ):
        assert assembly.computed_by(text) is None


def test_symbols_of_libdevice() -> None:
    known = "__nv_erf __nv_erff __nv_isnand __nv_fast_fdividef __nv_fdimf __hmf_tanhDh __hmf_recipf"
    for symbol in known.split():
        assert libdevice.named(symbol) is not None
    for symbol in ("__ocml_tanh_f32", "__ocml_i0_f64", "__ocml_pown_f32", "__triton_hip_fast_expf"):
        assert libdevice.named(symbol) is not None
    for symbol in ("__nv_byte_perm", "__ockl_clz_u32", "tanhf"):
        assert libdevice.named(symbol) is None


def test_the_language_may_have_any_name(kernels: dict[str, Any]) -> None:
    found = kernels["renamed"]
    x = found["x"]
    assert torch.equal(found["aliased"], x + 1)
    assert torch.equal(found["imported"], x + 1)
    torch.testing.assert_close(found["bound"], x.exp() + 2)
    assert torch.equal(found["enclosed"], x * 2 + 3)
    assert found["clean"]

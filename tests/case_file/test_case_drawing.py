"""Inputs that are drawn as NPUKernelBench's data files ask for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from pytest_tritonverify import case_drawing
from pytest_tritonverify.case_file import build_inputs
from tests.support.case_files import X, built, spec_of

if TYPE_CHECKING:
    from pathlib import Path

DTYPES = {
    "float16": "float16 half fp16 f16 torch.float16 FLOAT16",
    "float32": "float32 float fp32 f32",
    "float64": "float64 double fp64 f64",
    "bfloat16": "bfloat16 bf16 BF16",
    "float8_e4m3fn": "float8_e4m3fn float8_e4m3 fp8_e4m3",
    "float8_e5m2": "float8_e5m2 fp8_e5m2",
    "complex64": "complex64 cfloat",
    "complex128": "complex128 cdouble",
    "int8": "int8 char i8",
    "int16": "int16 short i16",
    "int32": "int32 int i32",
    "int64": "int64 long i64 torch.int64",
    "uint8": "uint8 byte u8",
    "uint16": "uint16 u16",
    "uint32": "uint32 u32",
    "uint64": "uint64 u64",
    "bool": "bool boolean torch.bool",
}
ALIASES = [
    (alias, name) for name, text in DTYPES.items() if hasattr(torch, name) for alias in text.split()
]
FLOATS = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize(("alias", "name"), ALIASES)
def test_a_dtype_goes_by_all_its_names(tmp_path: Path, alias: str, name: str) -> None:
    (tensor,) = built(tmp_path, {**X, "dtype": alias})
    assert tensor.dtype == getattr(torch, name)


def test_limits_are_those_of_torch() -> None:
    for name in case_drawing.DTYPES:
        dtype = getattr(torch, name, None)
        if dtype is None or name == "bool":
            continue
        low, high = case_drawing.limits(name)
        facts = torch.iinfo(dtype) if case_drawing.is_integer(name) else torch.finfo(dtype)
        # uint64 is drawn as int64.
        assert high == (2**63 - 1 if name == "uint64" else facts.max), name
        assert low == facts.min, name


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "complex64"])
def test_floats_are_drawn_like_randn(tmp_path: Path, dtype: str) -> None:
    spec = spec_of(tmp_path, {**X, "dtype": dtype})
    torch.manual_seed(5)
    expected = torch.randn((2, 3), dtype=getattr(torch, dtype))
    torch.manual_seed(5)
    (found,) = cast("list[Any]", build_inputs(spec))
    assert torch.equal(found, expected)


def test_float8_is_a_cast_of_float32(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, {**X, "dtype": "float8_e5m2"})
    torch.manual_seed(5)
    expected = torch.randn((2, 3)).to(torch.float8_e5m2)
    torch.manual_seed(5)
    (found,) = cast("list[Any]", build_inputs(spec))
    assert torch.equal(found.float(), expected.float())


@pytest.mark.parametrize(
    ("dtype", "given_range", "expected"),
    [
        ("int32", [-1, 2], {-1, 0, 1, 2}),
        ("int64", [5, 5], {5}),
        ("uint8", [254, 255], {254, 255}),
        ("int8", [-128.0, -127.0], {-128, -127}),
        ("int16", None, set(range(10))),
        ("uint8", None, set(range(10))),
        ("bool", None, {0, 1}),
        ("bool", [1, 1], {1}),
        ("int64", [2**63 - 1, 2**63 - 1], {2**63 - 1}),
        ("int64", [2**63 - 2, 2**63 - 1], {2**63 - 2, 2**63 - 1}),
    ],
)
def test_both_ends_of_a_range_of_integers_are_drawn(
    tmp_path: Path, dtype: str, given_range: list[float] | None, expected: set[int]
) -> None:
    (tensor,) = built(tmp_path, {**X, "dtype": dtype, "shape": [300], "range": given_range})
    assert set(tensor.tolist()) == expected


def test_a_range_of_floats_is_filled_evenly(tmp_path: Path) -> None:
    (tensor,) = built(tmp_path, {**X, "shape": [20_000], "range": [-2, 6]})
    counts = torch.histc(tensor, bins=8, min=-2, max=6)
    assert counts.sum() == 20_000
    assert counts.min() > 2000
    assert counts.max() < 3000


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_whole_range_of_a_float_can_be_asked_for(tmp_path: Path, dtype: str) -> None:
    limit = torch.finfo(getattr(torch, dtype)).max
    (tensor,) = built(tmp_path, {**X, "dtype": dtype, "shape": [500], "range": [-limit, limit]})
    assert tensor.double().isfinite().all()
    assert tensor.double().min() < -limit / 2
    assert tensor.double().max() > limit / 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_range_holds_for_both_parts(tmp_path: Path, dtype: str) -> None:
    (tensor,) = built(tmp_path, {**X, "dtype": dtype, "shape": [100], "range": [1, 2]})
    assert tensor.dtype == getattr(torch, dtype)
    for part in (tensor.real, tensor.imag):
        assert part.min() >= 1
        assert part.max() <= 2
    assert not torch.equal(tensor.real, tensor.imag)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("given_range", [None, [1, 2]])
def test_half_precision_complex_is_drawn_wider(
    tmp_path: Path, given_range: list[int] | None
) -> None:
    (tensor,) = built(tmp_path, {**X, "dtype": "chalf", "range": given_range})
    assert tensor.dtype == torch.complex32


def test_lists_may_mix_dtypes(tmp_path: Path) -> None:
    by_element = {
        "type": "tensor_list",
        "dtype": "float16",
        "range": [3, 4],
        "tensors": [{"shape": [2]}, {"dtype": "int8", "shape": [3], "range": [7, 7]}],
    }
    by_shape = {"type": "tensor_list", "dtypes": ["int32", "bool"], "shapes": [[], [0, 2]]}
    first, second = built(tmp_path, by_element, by_shape)
    assert [(item.dtype, tuple(item.shape)) for item in (*first, *second)] == [
        (torch.float16, (2,)),
        (torch.int8, (3,)),
        (torch.int32, ()),
        (torch.bool, (0, 2)),
    ]
    assert first[1].tolist() == [7, 7, 7]
    assert first[0].min() >= 3


def test_an_empty_list_of_tensors_is_empty(tmp_path: Path) -> None:
    assert built(tmp_path, {"type": "tensor_list", "dtype": "int8", "shapes": []}) == [[]]


# --- generated cases


@st.composite
def tensor_entries(draw: st.DrawFn) -> dict[str, Any]:
    alias, name = draw(st.sampled_from(ALIASES))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    entry = {"name": "t", "type": "tensor", "required": True, "dtype": alias, "shape": shape}
    if name.startswith("complex") or draw(st.booleans()):
        return entry
    if name in FLOATS:
        limit = min(torch.finfo(getattr(torch, name)).max, 1e30)
        numbers: st.SearchStrategy[float] = st.floats(-limit, limit)
    elif name == "bool":
        numbers = st.integers(0, 1)
    else:
        facts = torch.iinfo(getattr(torch, name))
        numbers = st.integers(facts.min, min(facts.max, 2**63 - 1))
    entry["range"] = sorted([draw(numbers), draw(numbers)])
    return entry


def check(tensor: torch.Tensor, entry: dict[str, Any]) -> None:
    name = dict(ALIASES)[entry["dtype"]]
    assert tensor.dtype == getattr(torch, name)
    assert list(tensor.shape) == entry["shape"]
    assert tensor.device.type == "cpu"
    if isinstance(tensor, FakeTensor) or name.startswith("complex"):
        return
    low, high = entry.get("range", (-math.inf, math.inf))
    values = tensor.double() if name in FLOATS else tensor.to(torch.int64)
    if name in FLOATS:
        wide = torch.float64 if name == "float64" else torch.float32
        low, high = (torch.tensor(x, dtype=wide).to(tensor.dtype).item() for x in (low, high))
    for value in values.flatten().tolist():
        assert low <= value <= high


@settings(deadline=None)
@given(entries=st.lists(tensor_entries(), min_size=1, max_size=4))
def test_generated_cases_come_back_as_they_were_asked_for(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, Any]]
) -> None:
    tensor_list = {"name": "l", "type": "tensor_list", "tensors": entries}
    spec = spec_of(tmp_path_factory.mktemp("cases"), *entries, tensor_list)
    torch.manual_seed(1)
    *singles, several = cast("list[Any]", build_inputs(spec))
    for tensor, entry in zip(singles, entries, strict=True):
        check(tensor, entry)
    for tensor, entry in zip(several, entries, strict=True):
        check(tensor, entry)

    torch.manual_seed(1)
    *again, _ = cast("list[Any]", build_inputs(spec))
    assert [item.tolist() for item in map(_bits, again)] == [
        item.tolist() for item in map(_bits, singles)
    ]

    with FakeTensorMode():
        *fakes, _ = cast("list[Any]", build_inputs(spec))
    for fake, entry in zip(fakes, entries, strict=True):
        assert isinstance(fake, FakeTensor)
        check(fake, entry)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if "float8" in str(tensor.dtype) else tensor

"""Trees of tensors and plain values come out of another process as they went in."""

from __future__ import annotations

import enum
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.tensors import UnsupportedValueError, pack, unpack
from tests.support import trees

# The only warning is torch's on experimental dtypes.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


# By another name than the CPU's own it is a device like any other, to which tensors are moved.
PLACES = ("cpu", "cpu:0")


def _journey(tree: Any, place: str = "cpu", *, keep_layout: bool = True) -> Any:
    with closing(pack(tree, keep_layout=keep_layout)) as packed:
        return unpack(packed.spec, packed.fd, place)


@pytest.mark.parametrize("place", PLACES)
@settings(deadline=None, max_examples=200)
@given(tree=trees.trees())
def test_tree_comes_back_as_it_was(place: str, tree: Any) -> None:
    assert trees.canonical(tree) == trees.canonical(_journey(tree, place))


@pytest.mark.parametrize("place", PLACES)
@settings(deadline=None, max_examples=100)
@given(tree=trees.trees())
def test_tensors_share_memory_exactly_where_they_did(place: str, tree: Any) -> None:
    before = trees.tensors_in(tree)
    after = trees.tensors_in(_journey(tree, place))
    assert len(before) == len(after)

    def sharing(found: list[torch.Tensor]) -> list[list[bool]]:
        places = [tensor.untyped_storage()._cdata for tensor in found]
        return [[a == b for b in places] for a in places]

    assert sharing(before) == sharing(after)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", trees.DTYPES, ids=str)
def test_every_dtype_keeps_its_bits(dtype: torch.dtype, place: str) -> None:
    storage = torch.arange(256, dtype=torch.uint8).untyped_storage()
    tensor = torch.empty(0, dtype=dtype)
    count = 256 // tensor.element_size()
    tensor.set_(storage, 0, [count], [1])
    scalar = torch.empty(0, dtype=dtype).set_(storage, 3, [], [])
    empty = torch.empty((0, 3), dtype=dtype)
    for keep_layout in (True, False):
        found = _journey([tensor, empty], place, keep_layout=keep_layout)
        assert trees.canonical([tensor, empty]) == trees.canonical(found)
    assert trees.canonical(scalar) == trees.canonical(_journey(scalar, place))


_VALUE = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "tensor",
    [
        pytest.param(torch.tensor(1.5), id="0-d"),
        pytest.param(torch.empty(3, 0), id="empty"),
        pytest.param(_VALUE.t(), id="transposed"),
        pytest.param(_VALUE[1:, ::2], id="strided_with_offset"),
        pytest.param(torch.ones(1, 3).expand(4, 3), id="expanded"),
        pytest.param(torch.arange(5).unfold(0, 3, 1), id="overlapping_windows"),
        pytest.param(torch.randn(2, dtype=torch.complex64).conj(), id="conj"),
        pytest.param(torch.randn(2, dtype=torch.complex64).conj().imag, id="neg"),
        pytest.param(torch.ones(2, requires_grad=True), id="requires_grad"),
        pytest.param(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), id="channels"),
    ],
)
def test_layout_is_kept(tensor: torch.Tensor) -> None:
    found = _journey(tensor)
    assert trees.canonical(tensor) == trees.canonical(found)
    assert torch.equal(tensor.resolve_conj().resolve_neg(), found.resolve_conj().resolve_neg())


def test_parameter_comes_back_as_a_leaf_that_requires_grad() -> None:
    found = _journey(torch.nn.Parameter(torch.ones(3)))
    assert type(found) is torch.Tensor
    assert found.requires_grad
    assert found.is_leaf


def test_result_of_autograd_comes_back_without_its_graph() -> None:
    given = torch.ones(3, requires_grad=True) * 2
    found = _journey(given)
    assert found.is_leaf
    assert found.requires_grad
    assert torch.equal(given, found)


def test_sparse_tensor_comes_back_dense() -> None:
    dense = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
    assert torch.equal(_journey(dense.to_sparse()), dense)


@pytest.mark.parametrize("number", [10**5000, -(1 << 100_000)], ids=["decimal", "binary"])
def test_integer_of_any_length_comes_back(number: int) -> None:
    assert _journey([number]) == [number]


class _Weekday(enum.IntEnum):
    MONDAY = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (_Weekday.MONDAY, 1),
        (np.str_("a"), "a"),
        (bytearray(b"ab"), b"ab"),
        (trees.Corner(1, 2), (1, 2)),
        (np.memmap, None),
    ],
    ids=["enum", "str_", "bytearray", "namedtuple", "class"],
)
def test_kin_of_plain_values(value: object, expected: object) -> None:
    if expected is None:
        with pytest.raises(UnsupportedValueError):
            pack(value, keep_layout=True)
    else:
        assert _journey(value) == expected


def test_numpy_values_are_copies_of_the_same_kind() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    frozen = array.copy()
    frozen.flags.writeable = False
    found = _journey([array, frozen, np.float16(0.5), np.array(7), {np.int64(3): 1}])
    assert trees.canonical([array, frozen, np.float16(0.5), np.array(7)]) == trees.canonical(
        found[:4]
    )
    assert found[4] == {3: 1}
    assert all(isinstance(key, np.int64) for key in found[4])
    found[1][0] = 9
    assert frozen[0, 0] == 0


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([1, object()], r"\[1\] is a builtins.object"),
        ({"a": [lambda: None]}, r"\['a'\]\[0\] is a builtins.function"),
        (trees.Box(iter(())), r"\.content is a builtins.tuple_iterator"),
        ({object(): 1}, "key is a builtins.object"),
        (torch.empty(3, device="meta"), "meta tensor"),
        (np.array(["x"]), "numpy.ndarray"),
        (np.array([None]), "numpy.ndarray"),
        (np.ma.masked_array([1, 2], [True, False]), "numpy.ma"),
        (torch.nn.ReLU(), "ReLU"),
    ],
    ids=["object", "function", "iterator", "key", "meta", "text", "objects", "masked", "module"],
)
def test_what_has_no_plain_form_is_named_with_its_place(value: object, where: str) -> None:
    with pytest.raises(UnsupportedValueError, match=where):
        pack(value, keep_layout=True)


def test_tensor_subclass_is_refused() -> None:
    class Sub(torch.Tensor):
        pass

    with pytest.raises(UnsupportedValueError, match=r"subclass, .*Sub"):
        pack(torch.ones(2).as_subclass(Sub), keep_layout=True)


@pytest.mark.parametrize("make", [list, tuple, lambda inner: {"k": inner}])
def test_nesting_without_end_is_refused(make: Any) -> None:
    tree: Any = 1
    for _ in range(10_000):
        tree = make([tree]) if make in (list, tuple) else make(tree)
    with pytest.raises(UnsupportedValueError, match="nested too deeply"):
        pack(tree, keep_layout=True)


def test_list_that_holds_itself_is_refused() -> None:
    tree: list[object] = []
    tree.append(tree)
    with pytest.raises(UnsupportedValueError, match="nested too deeply"):
        pack(tree, keep_layout=True)


def test_refused_tree_leaves_no_descriptor_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(UnsupportedValueError):
            pack([torch.ones(3), object()], keep_layout=True)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@settings(deadline=None, max_examples=100)
@given(trees.trees(), st.integers(0, 255))
def test_what_a_receiver_writes_stays_with_it(tree: Any, byte: int) -> None:
    with closing(pack(tree, keep_layout=True)) as packed:
        first = unpack(packed.spec, packed.fd)
        for tensor in trees.tensors_in(first):
            tensors.storage_bytes(tensor.untyped_storage()).fill_(byte)
        assert trees.canonical(tree) == trees.canonical(unpack(packed.spec, packed.fd))


def test_memory_that_was_given_back_is_told() -> None:
    for left in (0, 4):
        tensor = torch.ones(8)
        tensor.untyped_storage().resize_(left)
        with pytest.raises(
            UnsupportedValueError, match=f"takes 32 bytes, and its storage has {left}"
        ):
            pack({"a": tensor}, keep_layout=False)
    with closing(pack(torch.ones(0, 3), keep_layout=False)) as packed:
        assert packed.spec["segments"] == [[0, 0]]


def test_names_that_are_no_text_hurt_nobody() -> None:
    class Liar(complex):
        @property
        def real(self) -> Any:
            return object()

    liar = type("Tuple", (tuple,), {"_fields": (object(), 2)})
    with closing(pack([liar((1, 2)), Liar(1 + 2j)], keep_layout=False)) as packed:
        json.dumps(packed.spec)
        assert unpack(packed.spec, packed.fd) == [(1, 2), 1 + 2j]


def test_the_place_of_tensors_does_not_depend_on_a_default_device() -> None:
    before = [torch.ones(3, dtype=torch.float16)[1:], torch.ones(0), torch.ones(2).bool()]
    with torch.device("meta"), closing(pack(before, keep_layout=True)) as packed:
        found = unpack(packed.spec, packed.fd)
        assert [tensor.device.type for tensor in found] == ["cpu"] * 3
    assert all(torch.equal(*pair) for pair in zip(found, before, strict=True))

"""Outputs are handed over by value: bounded by what they show, and resolved."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings

from pytest_tritonverify.execution.tensors import pack, storage_bytes, unpack
from tests.support import trees

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


def _journey(tree: Any) -> Any:
    with closing(pack(tree, keep_layout=False)) as packed:
        return unpack(packed.spec, packed.fd)


def _values(tensor: torch.Tensor) -> bytes:
    plain = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bool:
        # A copy makes every byte that isn't zero a one.
        return bytes(plain.reshape(-1).tolist())
    plain = plain.clone(memory_format=torch.contiguous_format)
    return bytes(storage_bytes(plain.untyped_storage()).tolist())


@settings(deadline=None, max_examples=100)
@given(trees.trees())
def test_outputs_keep_their_values(tree: Any) -> None:
    before = trees.tensors_in(tree)
    assume(before and all(tensor.dtype in trees.COMPUTED for tensor in before))
    for old, new in zip(before, trees.tensors_in(_journey(tree)), strict=True):
        assert (new.dtype, new.shape) == (old.dtype, old.shape)
        assert not new.is_conj()
        assert not new.is_neg()
        assert new.untyped_storage().nbytes() <= old.numel() * old.element_size()
        assert _values(old) == _values(new)


def test_corner_of_a_large_buffer_travels_alone() -> None:
    large = torch.zeros(1000, 1000)
    large[3:5, 3:5] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with closing(pack([large[3:5, 3:5]], keep_layout=False)) as packed:
        assert os.fstat(packed.fd).st_size < 100
        (found,) = unpack(packed.spec, packed.fd)
    assert found.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with closing(pack([large[3:5, 3:5]], keep_layout=True)) as packed:
        assert os.fstat(packed.fd).st_size == 4_000_000


def test_expanded_output_takes_no_more_room_than_it_did() -> None:
    wide = torch.ones(1, 1).expand(1 << 20, 1 << 20)
    with closing(pack(wide, keep_layout=False)) as packed:
        assert os.fstat(packed.fd).st_size == 4
        found = unpack(packed.spec, packed.fd)
    assert found.shape == wide.shape
    assert found.untyped_storage().nbytes() == 4


def test_transposed_output_is_not_copied() -> None:
    given = torch.arange(6.0).reshape(2, 3).t()
    found = _journey(given)
    assert found.stride() == given.stride()
    assert torch.equal(found, given)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_conj_and_neg_views_are_resolved(dtype: torch.dtype) -> None:
    base = torch.tensor([1 + 2j, 3 - 4j], dtype=dtype)
    conj, neg = _journey([base.conj(), base.conj().imag])
    assert conj.tolist() == [1 - 2j, 3 + 4j]
    assert neg.tolist() == [-2.0, 4.0]
    assert not conj.is_conj()
    assert not neg.is_neg()
    # The bytes too, for whoever reads them without torch.
    assert storage_bytes(conj.untyped_storage()).view(dtype).tolist() == [1 - 2j, 3 + 4j]


def test_parts_of_one_buffer_are_handed_over_apart() -> None:
    buffer = torch.arange(4.0)
    first, second = _journey([buffer[:2], buffer[2:]])
    assert first.tolist() == [0.0, 1.0]
    assert second.tolist() == [2.0, 3.0]
    first.fill_(9)
    assert second.tolist() == [2.0, 3.0]


def test_same_output_twice_is_written_once() -> None:
    output = torch.ones(1000)
    with closing(pack([output, output, {"again": output}], keep_layout=False)) as packed:
        assert os.fstat(packed.fd).st_size == 4000


def test_empty_tensor_after_an_odd_number_of_bytes() -> None:
    tree = [torch.ones(5, dtype=torch.uint8), torch.empty(0), torch.ones(3, dtype=torch.int8)]
    with closing(pack(tree, keep_layout=True)) as packed:
        found = unpack(packed.spec, packed.fd)
    assert [tensor.tolist() for tensor in found] == [[1] * 5, [], [1] * 3]

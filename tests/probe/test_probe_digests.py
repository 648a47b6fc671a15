"""A digest tells two tensors apart exactly when their bits differ, however they lie in memory."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify.probe import digests
from tests.support.trees import COMPUTED

if TYPE_CHECKING:
    import pytest


def _bytes(tensor: torch.Tensor) -> bytes:
    """The slow way: element by element in row-major order."""
    rows = tensor.reshape(-1) if tensor.is_contiguous() else tensor.contiguous().reshape(-1)
    return bytes(rows.clone().unsqueeze(-1).view(torch.uint8).reshape(-1).tolist())


@st.composite
def _tensors(draw: Any) -> torch.Tensor:
    """Small tensors of all dtypes, with few different bytes so that some are equal."""
    dtype = draw(st.sampled_from([d for d in COMPUTED if d is not torch.bool]))
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    size = torch.empty(0, dtype=dtype).element_size()
    count = torch.Size(shape).numel()
    raw = draw(st.lists(st.sampled_from([0, 1, 128, 255]), min_size=count, max_size=count))
    data = torch.tensor(raw, dtype=torch.uint8).repeat_interleave(size)
    whole = torch.empty(0, dtype=dtype).set_(data.untyped_storage(), 0, (count,), (1,))
    tensor: torch.Tensor = whole.reshape(shape)
    if draw(st.booleans()) and tensor.dim() > 1:
        # The same values with other strides.
        tensor = tensor.transpose(0, -1).contiguous().transpose(0, -1)
    return tensor


@given(_tensors(), _tensors())
def test_digests_agree_exactly_where_bytes_do(first: torch.Tensor, second: torch.Tensor) -> None:
    assert (digests.bits(first) == digests.bits(second)) == (_bytes(first) == _bytes(second))


@given(_tensors())
def test_layout_does_not_count(tensor: torch.Tensor) -> None:
    room = torch.zeros((*tensor.shape, 2), dtype=torch.uint8).repeat_interleave(
        tensor.element_size(), -1
    )
    padded = room.view(tensor.dtype)[..., 0]
    padded.copy_(tensor)
    assert digests.facts(padded) == digests.facts(tensor)


@given(_tensors())
def test_transposed_digest_is_that_of_the_transpose(tensor: torch.Tensor) -> None:
    found = digests.facts(tensor)["transposed"]
    if tensor.dim() == 2:
        assert found == digests.facts(tensor.t().contiguous())["digest"]
        assert digests.facts(tensor.t())["transposed"] == digests.facts(tensor)["digest"]
    else:
        assert found is None


def test_large_tensors_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randn(7, 5, 3).transpose(0, 2)
    expected = digests.bits(tensor.contiguous())
    for limit in (1, 16, 64, 100):
        monkeypatch.setattr(digests, "_CHUNK_BYTES", limit)
        assert digests.bits(tensor) == expected


def _floats(*words: int) -> torch.Tensor:
    return torch.frombuffer(bytearray(struct.pack(f"{len(words)}I", *words)), dtype=torch.float32)


def test_nan_payloads_and_signs_of_zero_count() -> None:
    quiet, other, zero, minus = 0x7FC00000, 0x7FC00001, 0, 0x80000000
    assert digests.bits(_floats(quiet, zero)) == digests.bits(_floats(quiet, zero))
    assert digests.bits(_floats(quiet)) != digests.bits(_floats(other))
    assert digests.bits(_floats(zero)) != digests.bits(_floats(minus))


def test_lazy_views_are_resolved() -> None:
    tensor = torch.randn(2, 3, dtype=torch.complex64)
    assert digests.bits(tensor.conj()) == digests.bits(tensor.conj().resolve_conj())
    assert digests.bits(tensor.conj()) != digests.bits(tensor)
    assert digests.bits(tensor.conj().imag) == digests.bits(-tensor.imag)


def test_sparse_tensors_go_by_what_they_consist_of() -> None:
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    first, second = dense.to_sparse(), (2 * dense).to_sparse()
    assert digests.bits(first) == digests.bits(dense.to_sparse())
    assert digests.bits(first) != digests.bits(second)


def test_tensors_without_values_have_no_digest() -> None:
    found = digests.facts(torch.empty(2, 3, device="meta"))
    assert found == {"dtype": "float32", "shape": [2, 3], "digest": None, "transposed": None}


class _Liar(torch.Tensor):
    """Tells of other values, another shape and another dtype than it has."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("nothing is said")

    shape = property(lambda _: torch.Size([99]))
    dtype = property(lambda _: torch.int8)

    def detach(self) -> torch.Tensor:
        return torch.zeros(99)


def test_subclass_with_methods_of_its_own_is_read_by_its_memory() -> None:
    tensor = torch.randn(2, 3)
    found = digests.facts(tensor.as_subclass(_Liar))
    assert found == digests.facts(tensor)
    assert digests.count(tensor.as_subclass(_Liar)) == 6

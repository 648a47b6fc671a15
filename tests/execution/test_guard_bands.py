"""Memory between bands: it looks like any other, and writes beside it show."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution import guard_bands, running, tensors
from pytest_tritonverify.execution.guard_bands import BAND_BYTES, Bands

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """Functions of torch that can be asked for bands, for these tests alone."""
    places = [(torch, guard_bands._FUNCTIONS), (torch.Tensor, guard_bands._METHODS)]
    before = [(owner, name, getattr(owner, name)) for owner, names in places for name in names]
    guard_bands.install()
    yield
    for owner, name, function in before:
        setattr(owner, name, function)
    guard_bands._originals.clear()


@contextlib.contextmanager
def guarded() -> Iterator[Bands]:
    """Bands on the CPU, where a store can go anywhere."""
    bands = Bands("cpu", "/nowhere/")
    with bands.active():
        yield bands
    bands.close()


def poke(tensor: torch.Tensor, at: int, value: int) -> None:
    """Write a byte at a distance from a tensor's first one."""
    memory: Any = torch._C._construct_storage_from_data_pointer(
        tensor.data_ptr() + at, torch.device("cpu"), 1
    )
    torch.empty(0, dtype=torch.uint8).set_(memory).fill_(value)


def seen(bands: Bands, **named: torch.Tensor) -> list[tuple[str, str, int, int]]:
    found = bands.found(list(named.items()))
    return [(one["tensor"], one["side"], one["count"], one["reach"]) for one in found]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_it_looks_like_any_other_memory(dtype: torch.dtype) -> None:
    with guarded() as bands:
        source = torch.arange(24).reshape(2, 12).to(dtype)
        moved = bands.moved(source)
        made = {
            "empty": torch.empty(3, 4, dtype=dtype),
            "empty_like": torch.empty_like(source),
            "new_empty": moved.new_empty((5,)),
            "empty_strided": torch.empty_strided((2, 3), (1, 2), dtype=dtype),
            "empty_permuted": torch.empty_permuted((2, 3), (1, 0), dtype=dtype),
            "keywords": torch.empty(size=(7,), dtype=dtype, device="cpu"),
        }
        assert seen(bands) == []
    assert torch.equal(moved.view(torch.uint8), source.view(torch.uint8))
    wanted = {
        "empty": torch.empty(3, 4, dtype=dtype),
        "empty_like": source,
        "new_empty": torch.empty(5, dtype=dtype),
        "empty_strided": torch.empty_strided((2, 3), (1, 2), dtype=dtype),
        "empty_permuted": torch.empty_permuted((2, 3), (1, 0), dtype=dtype),
        "keywords": torch.empty(7, dtype=dtype),
    }
    for name, tensor in [*made.items(), ("moved", moved)]:
        like = wanted.get(name, source)
        assert type(tensor) is torch.Tensor
        assert (tensor.dtype, tensor.size(), tensor.stride()) == (
            like.dtype,
            like.size(),
            like.stride(),
        )
        assert tensor.storage_offset() == 0
        assert tensor.untyped_storage().nbytes() == like.untyped_storage().nbytes()
        assert tensor.data_ptr() % 64 == 0
        assert not tensor._is_view()
        assert tensor.is_leaf
        tensor.zero_()


@settings(deadline=None, max_examples=20)
@given(
    size=st.integers(1, 100),
    pokes=st.lists(st.integers(-BAND_BYTES, BAND_BYTES - 1), max_size=3, unique=True),
    dtype=st.sampled_from(DTYPES),
    fresh=st.booleans(),
)
def test_each_byte_beside_it_counts(
    size: int, pokes: list[int], dtype: torch.dtype, fresh: bool
) -> None:
    with guarded() as bands:
        source = torch.zeros(size, dtype=dtype)
        tensor = torch.empty(size, dtype=dtype) if fresh else bands.moved(source)
        length = size * tensor.element_size()
        for at in pokes:
            poke(tensor, at if at < 0 else length + at, 0x55)
        name = f"o ({dtype}, shape [{size}])"
        expected = []
        before, after = [-at for at in pokes if at < 0], [at + 1 for at in pokes if at >= 0]
        if before:
            expected.append((name, "before", len(before), max(before)))
        if after:
            expected.append((name, "after", len(after), max(after)))
        assert seen(bands, o=tensor) == expected


def test_what_is_read_there_is_no_number() -> None:
    with guarded() as bands:
        tensor = bands.moved(torch.ones(4))
        behind: Any = torch._C._construct_storage_from_data_pointer(
            tensor.data_ptr() + 16, torch.device("cpu"), BAND_BYTES
        )
        assert torch.empty(0).set_(behind).isnan().all()
        assert torch.empty(0, dtype=torch.float16).set_(behind).isnan().all()


def test_inputs_keep_layout_and_sharing() -> None:
    base = torch.arange(60.0)
    call = [
        base[3:27].reshape(4, 6).t(),
        base[10:20],
        torch.ones(3, 1).expand(3, 5),
        base.new_zeros(0),
    ]
    packed = tensors.pack(call, keep_layout=True)
    try:
        with guarded() as bands:
            # The host's memory stands for a device's: only a device has tensors moved.
            reader = tensors.unpack(packed.spec, packed.fd, "elsewhere", bands.moved)
    finally:
        packed.close()
    for mine, its in zip(call, reader, strict=True):
        assert torch.equal(mine, its)
        assert mine.stride() == its.stride()
        assert mine.storage_offset() == its.storage_offset()
    reader[1].fill_(-1)
    assert (reader[0] == -1).sum() == 10


def test_memory_that_is_let_go_of_is_looked_at_before_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard_bands, "_MOST_KEPT", 4000)
    with guarded() as bands:
        for k in range(20):
            scratch = torch.empty(400)
            if k == 3:
                poke(scratch, 1600, 1)
            del scratch
        assert len(bands._guarded) < 5
        ((tensor, side, count, reach),) = seen(bands)
    assert (side, count, reach) == ("after", 1, 1)
    assert tensor == "(torch.float32, shape [400])"


def test_more_than_can_be_kept_has_no_bands_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_bands, "_MOST_KEPT", 1 << 20)
    with guarded() as bands:
        held = [torch.empty(1 << 17) for _ in range(3)]
        assert bands.problem == "the run asked for more than 1 MiB of fresh memory"
        poke(held[1], 4 << 17, 1)
        poke(held[0], -1, 1)
        assert [side for _, side, _, _ in seen(bands)] == ["before", "after"]


def test_what_has_to_change_its_size_says_so() -> None:
    with guarded():
        out = torch.empty(4)
        with pytest.raises(RuntimeError) as error:
            out.resize_(100)
    assert guard_bands.is_fixed(error.value)
    assert not guard_bands.is_fixed(RuntimeError("something else"))


def test_other_devices_and_empty_tensors_are_left_alone() -> None:
    with guarded() as bands:
        assert torch.empty(3, device="meta").is_meta
        assert torch.empty(0).untyped_storage().nbytes() == 0
        assert torch.empty(3, requires_grad=True).requires_grad
        assert torch.add(torch.ones(2), 1, out=torch.empty(0)).tolist() == [2, 2]
        assert len(bands._guarded) == 1
    assert list(running.tensor_leaves([], "")) == []

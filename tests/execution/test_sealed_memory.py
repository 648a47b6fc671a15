"""Memory that crosses a border of trust can't change after it was handed over."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import torch

from pytest_tritonverify.execution import wire
from pytest_tritonverify.execution.tensors import pack, unpack
from pytest_tritonverify.execution.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADD_SEALS = 1033
_SEALS = {"seal": 0x1, "shrink": 0x2, "grow": 0x4, "write": 0x8}


@pytest.fixture
def memory() -> Iterator[int]:
    """An unsealed memory file of one page."""
    fd = wire.new_memory("test")
    os.write(fd, b"x" * 4096)
    yield fd
    os.close(fd)


def test_sealed_memory_is_accepted_and_nobody_can_change_it(memory: int) -> None:
    wire.seal(memory)
    wire.require_sealed(memory)
    with pytest.raises(PermissionError):
        os.pwrite(memory, b"y", 0)
    for size in (0, 10, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(memory, size)
    with pytest.raises(PermissionError):
        mmap.mmap(memory, 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        fcntl.fcntl(memory, _ADD_SEALS, 0x10)
    assert os.pread(memory, 3, 0) == b"xxx"


@pytest.mark.parametrize("missing", [*_SEALS, None])
def test_memory_without_every_seal_is_refused(memory: int, missing: str | None) -> None:
    seals = sum(bit for name, bit in _SEALS.items() if missing not in (None, name))
    if seals:
        fcntl.fcntl(memory, _ADD_SEALS, seals)
    with pytest.raises(WireError, match="not sealed"):
        wire.require_sealed(memory)


def test_memory_that_somebody_maps_for_writing_cannot_be_sealed(memory: int) -> None:
    with (
        closing(mmap.mmap(memory, 4096, flags=mmap.MAP_SHARED)),
        pytest.raises(OSError, match="busy"),
    ):
        wire.seal(memory)


def test_other_descriptors_are_refused() -> None:
    here, there = socket.socketpair()
    with tempfile.TemporaryFile() as file, here, there:
        null = os.open(os.devnull, os.O_RDONLY)
        for fd in (file.fileno(), here.fileno(), null):
            with pytest.raises(WireError, match="no sealable memory file"):
                wire.require_sealed(fd)
        os.close(null)


def test_packed_memory_is_sealed() -> None:
    with closing(pack([torch.ones(3)], keep_layout=True)) as packed:
        wire.require_sealed(packed.fd)
    with closing(pack([], keep_layout=True)) as packed:
        wire.require_sealed(packed.fd)


def test_copy_survives_the_descriptor() -> None:
    packed = pack(torch.arange(5.0), keep_layout=True)
    found = unpack(packed.spec, packed.fd)
    packed.close()
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_memory_that_can_only_be_written_is_an_error_of_its_sender() -> None:
    with closing(pack(torch.ones(3), keep_layout=True)) as packed:
        blind = os.open(f"/proc/self/fd/{packed.fd}", os.O_WRONLY)
        wire.require_sealed(blind)
        with pytest.raises(WireError, match="can't be mapped"):
            unpack(packed.spec, blind)
        os.close(blind)


@pytest.mark.parametrize("size", [1 << 50, (1 << 63) - 1])
def test_memory_of_absurd_size_is_an_error_of_its_sender(size: int) -> None:
    fd = wire.new_memory("huge")
    os.ftruncate(fd, size)
    wire.seal(fd)
    # The judge reads no memory that nobody has paid for.
    with pytest.raises(WireError, match="holes"):
        wire.require_sealed(fd)
    spec = {"tree": {"k": "none"}, "segments": [[0, size]]}
    with pytest.raises(WireError):
        unpack(spec, fd)
    os.close(fd)


def test_holes_of_sparse_memory_cost_nothing_until_they_are_read() -> None:
    fd = wire.new_memory("sparse")
    os.ftruncate(fd, 1 << 32)
    wire.seal(fd)
    node = {"k": "tensor", "s": 0, "dtype": "uint8", "off": 0, "shape": [1 << 32], "stride": [1]}
    spec = {
        "tree": {**node, "conj": False, "neg": False, "grad": False},
        "segments": [[0, 1 << 32]],
    }
    found = unpack(spec, fd)
    assert found.shape == (1 << 32,)
    assert os.fstat(fd).st_blocks == 0
    os.close(fd)

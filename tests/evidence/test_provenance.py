"""Storages whose bytes change are told from those whose bytes do not."""

from __future__ import annotations

import torch

from pytest_tritonverify.observing.provenance import HOST, INPUT, LAUNCH, Ledger

HERE = ("f.py", 3)


def test_bytes_that_change_behind_its_back_are_met() -> None:
    ledger, tensor = Ledger(), torch.zeros(6)
    ledger.know([tensor], INPUT)
    assert ledger.check(tensor[2:], "here", HERE) is None
    tensor.numpy()[5] = 1
    assert ledger.check(tensor[:2], "there", HERE) == "write"
    assert ledger.check(tensor, "there", HERE) is None
    assert ledger.events == [
        {"kind": "write", "tensor": "float32[2]", "where": "there", "file": "f.py", "line": 3}
    ]


def test_a_tensor_from_nowhere_is_the_hosts_until_a_launch_writes_it() -> None:
    ledger, tensor = Ledger(), torch.zeros(6)
    assert ledger.check(tensor, "here", HERE) == "host"
    assert ledger.check(tensor, "here", HERE) == "host"
    assert ledger.marks(tensor) == {HOST}
    assert not ledger.launched(tensor)
    assert ledger.check(tensor, "here", HERE) == "host"
    tensor += 1
    assert ledger.launched(tensor)
    assert ledger.marks(tensor) == {LAUNCH}
    assert ledger.check(tensor, "here", HERE) is None


def test_an_address_that_is_used_again_is_another_storage() -> None:
    ledger = Ledger()
    for number in range(50):
        tensor = torch.full((1 << 16,), float(number))
        assert not ledger.known(tensor)
        ledger.know([tensor], INPUT)
        del tensor
    assert ledger.events == []


def test_large_storages_are_read_in_pieces() -> None:
    ledger = Ledger(nonce=7)
    large = torch.zeros(1 << 26, dtype=torch.uint8)
    ledger.know([large], INPUT)
    large[: 1 << 25] = 1
    assert ledger.check(large, "here", HERE) == "write"


def test_what_has_no_memory_is_left_alone() -> None:
    ledger = Ledger()
    for tensor in (torch.empty(0), torch.empty(3, device="meta"), torch.eye(2).to_sparse()):
        assert ledger.check(tensor, "here", HERE) is None
        assert not ledger.launched(tensor)

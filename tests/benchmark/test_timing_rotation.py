"""Sets of inputs that take turns in the same tensors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import torch

from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.running import tensor_leaves
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.execution.timing import packing, sets
from pytest_tritonverify.execution.timing.rotation import Rotation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def packed() -> Iterator[Any]:
    """Pack arguments, and close the memory files with the test."""
    fds: list[int] = []

    def pack(wanted: int, *args: object, **kwargs: object) -> tuple[dict[str, Any], int]:
        case, fd = packing.pack_sets(Arguments(args, kwargs), Arguments(), wanted)
        fds.append(fd)
        return case, fd

    yield pack
    for fd in fds:
        os.close(fd)


def calls(case: dict[str, Any]) -> list[Any]:
    return [sets.case_of(case, number)["call"] for number in range(len(case["sets"]))]


def test_addresses_and_versions_stay_and_values_change(packed: Any) -> None:
    case, fd = packed(3, torch.randn(4, 5))
    rotation = Rotation(calls(case), fd, "cpu")
    seen, facts = [], set()
    for number in range(6):
        (tensor,) = rotation.turn(number).args
        assert isinstance(tensor, torch.Tensor)
        seen.append(tensor.clone())
        facts.add((id(tensor), tensor.data_ptr(), tensor._version))
    assert len(facts) == 1
    for number in range(3):
        assert torch.equal(seen[number], seen[number + 3])
        assert not torch.equal(seen[number], seen[(number + 1) % 3])


def test_the_first_set_is_the_tasks_own(packed: Any) -> None:
    given = torch.randn(4, 5)
    case, fd = packed(4, given, scale=2)
    assert len(case["sets"]) == 4
    call = tensors.unpack(calls(case)[0], fd)
    assert torch.equal(call["args"][0], given)
    assert call["kwargs"] == {"scale": 2}


def test_every_run_has_the_same_sets(packed: Any) -> None:
    given = torch.randn(6, 3)
    runs = [packed(3, given) for _ in range(2)]
    for one, other in zip(*(calls(case) for case, _ in runs), strict=True):
        (first,), (second,) = (
            tensors.unpack(call, fd)["args"]
            for call, fd in ((one, runs[0][1]), (other, runs[1][1]))
        )
        assert torch.equal(first, second)


def test_what_a_forward_did_to_its_inputs_is_undone(packed: Any) -> None:
    given = torch.randn(4, 5)
    case, fd = packed(1, given, [torch.ones(2), "text"])
    rotation = Rotation(calls(case), fd, "cpu")
    call = rotation.turn(0)
    tensor, container = call.args
    assert isinstance(tensor, torch.Tensor)
    assert isinstance(container, list)
    container.clear()
    tensor.zero_().t_()
    again, restored = rotation.turn(1).args
    assert again is tensor
    assert torch.equal(again, given)
    assert isinstance(restored, list)
    assert restored[1] == "text"
    assert torch.equal(restored[0], torch.ones(2))


def test_strides_and_shared_memory_are_kept(packed: Any) -> None:
    base = torch.randn(8, 6)
    case, fd = packed(2, base, base[::2, 1:], base[0].expand(3, 6))
    rotation = Rotation(calls(case), fd, "cpu")
    for number in range(2):
        whole, part, wide = rotation.turn(number).args
        assert isinstance(whole, torch.Tensor)
        assert isinstance(part, torch.Tensor)
        assert isinstance(wide, torch.Tensor)
        assert part.stride() == (12, 1)
        assert wide.stride() == (0, 1)
        assert torch.equal(part, whole[::2, 1:])
        assert torch.equal(wide[2], whole[0])


def test_no_more_sets_are_made_than_fit(packed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BUDGET", 5 * 4096)
    case, _ = packed(100, torch.randn(1024))
    assert len(case["sets"]) == 5
    monkeypatch.setattr(packing, "BUDGET", 1)
    case, _ = packed(100, torch.randn(1024))
    assert len(case["sets"]) == 2
    monkeypatch.setattr(packing, "LARGEST", 1)
    case, _ = packed(100, torch.randn(1024))
    assert len(case["sets"]) == 1


def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BUDGET", 1)


@pytest.mark.parametrize("kind", ["floats", "integers", "mixed", "odd"])
def test_no_forward_has_the_values_of_an_earlier_one(
    packed: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    few_sets(monkeypatch)
    torch.manual_seed(1)
    rows, index = torch.randn(1, 7, 3), torch.randperm(11)
    sparse, empty = torch.eye(3).to_sparse(), torch.empty(0, 4)
    kinds: dict[str, tuple[object, ...]] = {
        "floats": (rows,),
        "integers": (index,),
        "mixed": (index, [rows], torch.randn(5)),
        "odd": (sparse, empty, rows, {"a": rows[0, :2], "b": 3}, index),
    }
    case, fd = packed(100, *kinds[kind])
    assert len(case["sets"]) == 2
    rotation, seen = Rotation(calls(case), fd, "cpu", case["turning"]), set()
    for number in range(-4, 10):
        call = tensors.unpack(sets.case_of(case, number)["call"], fd)
        told, put = call["args"], rotation.turn(number).args
        for one, other in zip(flat(told), flat(put), strict=True):
            assert torch.equal(one, other)
        seen.add(tuple(map(str, flat(told))))
        if kind == "mixed":
            assert torch.equal(told[0], index)
    assert len(seen) == 14


def flat(values: Any) -> list[torch.Tensor]:
    return [tensor for _, tensor in tensor_leaves(list(values), "")]


def test_what_the_order_of_rows_may_matter_to_stays(
    packed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_sets(monkeypatch)
    half = torch.randn(4, 4)
    base = torch.randn(8, 6)
    given = (torch.arange(5.0), half @ half.T, base[::2, 1:], torch.randn(3).expand(4, 3))
    case, fd = packed(9, *given)
    assert case["turning"] == []
    first, third = (tensors.unpack(sets.case_of(case, n)["call"], fd)["args"] for n in (0, 2))
    for one, other in zip(first, third, strict=True):
        assert torch.equal(one, other)


def test_rows_stay_where_there_is_a_set_for_every_forward(packed: Any) -> None:
    case, _ = packed(3, torch.randn(4, 5))
    assert (len(case["sets"]), case["turning"]) == (3, [])


def test_inputs_without_tensors_have_one_set(packed: Any) -> None:
    case, _ = packed(10, 3, "text")
    assert len(case["sets"]) == 1

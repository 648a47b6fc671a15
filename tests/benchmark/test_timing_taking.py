"""Outputs that are taken apart: honest ones stay what they are, lazy ones compute right away."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.timing.taking import seized, taken


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    value: Any
    _hidden: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


class Level(enum.IntEnum):
    LOW = 1


TENSOR = torch.arange(6.0).reshape(2, 3).t()
LEAVES = [
    *(None, True, 7, -1.5, 2j, "text", b"bytes", torch.float16, torch.Size((2, 3)), Level.LOW),
    *(slice(1, 2), range(3), Ellipsis, torch.device("cpu"), TENSOR, torch.nn.Parameter(TENSOR)),
    *(np.float64(0.5), np.arange(3), np.int8(4)),
]
TREES = [
    *LEAVES,
    LEAVES,
    tuple(LEAVES),
    {"a": TENSOR, 3: [TENSOR, {"b": (TENSOR, TENSOR)}]},
    OrderedDict(b=1, a=[TENSOR]),
    Pair(TENSOR, [Pair(None, TENSOR)]),
    Record(TENSOR, {"a": Record(1)}),
    Frozen((TENSOR, Frozen(2.0))),
    {1, 2, "three"},
    frozenset({None}),
    torch.max(TENSOR, 0),
]


def packed(tree: object) -> Any:
    found = tensors.pack(tree, keep_layout=False)
    found.close()
    return found.spec


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
def test_what_is_taken_travels_like_what_was_returned(tree: object) -> None:
    assert packed(taken(tree)) == packed(tree)
    # Each copy has memory of its own, which begins where the copy does.
    places = re.compile(r"'(s|off|grad)': \w+")
    one, other = (str(packed(value)["tree"]) for value in (seized(taken(tree)), tree))
    assert places.sub("", one) == places.sub("", other)


def test_what_is_seized_no_longer_changes() -> None:
    tensor, zeros = torch.zeros(2), torch.zeros(2)
    copies = seized(taken([tensor, {"a": (tensor,)}, Pair(tensor, None), Record(tensor)]))
    tensor.add_(1)
    separate = [zeros, {"a": (zeros.clone(),)}, Pair(zeros.clone(), None), Record(zeros.clone())]
    assert packed(copies) == packed(separate)
    assert [float(copies[0].sum()), float(copies[3].value.sum())] == [0.0, 0.0]


class LazyDict(dict[str, Any]):
    def items(self) -> Any:
        return [(key, value()) for key, value in super().items()]


class LazyList(list[Any]):
    def __iter__(self) -> Any:
        return (value() for value in super().__iter__())


class LazyTuple(namedtuple("LazyTuple", "value")):  # noqa: PYI024, SLOT002 - as somebody may
    def __iter__(self) -> Any:
        return (value() for value in super().__iter__())


@dataclasses.dataclass
class LazyRecord:
    value: Any

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return found() if name == "value" else found


class LazyFloat(float):
    def __float__(self) -> float:
        CALLS.append(0)
        return 2.0


CALLS: list[int] = []


def work() -> torch.Tensor:
    CALLS.append(0)
    return torch.ones(2)


@pytest.mark.parametrize(
    "lazy",
    [
        LazyDict(a=work),
        LazyList([work]),
        LazyTuple(work),
        LazyRecord(work),
        LazyFloat(),
        [{"a": LazyDict(b=work)}],
    ],
    ids=lambda lazy: type(lazy).__name__,
)
def test_what_computes_when_it_is_looked_into_is_looked_into_once(lazy: object) -> None:
    CALLS.clear()
    plain = taken(lazy)
    assert CALLS == [0]
    packed(seized(plain))
    assert CALLS == [0]


def test_subclasses_of_tensors_are_left_to_be_refused() -> None:
    class Odd(torch.Tensor):
        pass

    odd = torch.ones(2).as_subclass(Odd)
    found = seized(taken([odd]))
    assert found[0] is odd
    with pytest.raises(tensors.UnsupportedValueError, match="subclass"):
        packed(found)

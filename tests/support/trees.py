"""Hypothesis strategies for trees of tensors and plain values, and what makes two of them equal."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from pytest_tritonverify.execution import tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Corner(NamedTuple):
    """A named tuple for trees."""

    x: object
    y: object


@dataclasses.dataclass
class Box:
    """A dataclass for trees."""

    content: object
    _hidden: object = None


@dataclasses.dataclass(frozen=True)
class Label:
    """A dataclass that can be a key."""

    text: str


def _of_which(
    dtypes: Iterable[torch.dtype], works: Callable[[torch.dtype], object]
) -> list[torch.dtype]:
    """Return the dtypes for which something works."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in dtypes:
            try:
                if works(dtype) is not False:
                    found.append(dtype)
            except (RuntimeError, TypeError):
                continue
    return sorted(found, key=str)


# Every dtype of which this torch can make plain tensors.
DTYPES = _of_which(
    {value for value in vars(torch).values() if isinstance(value, torch.dtype)},
    lambda dtype: not torch.empty(1, dtype=dtype).is_quantized,
)
# Those with which it can work: of the others it can't even make copies with other strides.
COMPUTED = _of_which(DTYPES, lambda dtype: torch.empty((2, 2), dtype=dtype).t().contiguous())
_NEGATED = _of_which(
    DTYPES, lambda dtype: torch._neg_view(torch.empty(2, dtype=dtype).conj()).clone()
)


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """A tensor to be: on the storage of that number, with that layout, as far as it fits."""

    storage: int
    dtype: torch.dtype
    layout: list[tuple[int, int]]
    offset: int
    flags: int

    def made(self, storages: list[torch.UntypedStorage]) -> torch.Tensor:
        storage = storages[self.storage % len(storages)]
        shape = [n for n, _ in self.layout]
        stride = [s for _, s in self.layout]
        offset = self.offset
        if not storage.nbytes():
            shape, stride, offset = [0, *shape[1:]], stride or [1], 0
        tensor = torch.empty(0, dtype=self.dtype)
        tensor.set_(storage, offset, shape, stride)
        if self.dtype.is_complex and self.flags & 1:
            tensor = tensor.conj()
        if self.dtype in _NEGATED and self.flags & 2:
            tensor = torch._neg_view(tensor)
        if (self.dtype.is_complex or self.dtype.is_floating_point) and self.flags & 4:
            tensor = tensor.detach().requires_grad_()
        return tensor


def _storages(seed: int, sizes: list[int]) -> list[torch.UntypedStorage]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(256, (n,), dtype=torch.uint8, generator=generator).untyped_storage()
        for n in sizes
    ]


def _tree(seed: int, sizes: list[int], plan: Any) -> Any:
    storages = _storages(seed, sizes)

    def made(value: Any) -> Any:
        if isinstance(value, _Recipe):
            return value.made(storages)
        if isinstance(value, Corner):
            return Corner(made(value.x), made(value.y))
        if isinstance(value, Box):
            return Box(made(value.content), made(value._hidden))
        if type(value) in (list, tuple):
            return type(value)([made(item) for item in value])
        if isinstance(value, dict):
            return {key: made(item) for key, item in value.items()}
        return value

    return made(plan)


def _array(dtype: str, shape: list[int], form: int) -> Any:
    array = np.arange(3, 3 + math.prod(shape)).reshape(shape).astype(dtype)
    if form == 1:
        return array.T
    if form == 2 and array.ndim:
        return array[::-1]
    if form == 3 and array.size:
        return array.reshape(-1)[0]
    return array


_ARRAYS = st.builds(
    _array,
    st.sampled_from(["?", "i1", "u1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(0, 3),
)
_PLAIN = (
    st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(max_size=10)
    | st.binary(max_size=10)
    | st.builds(range, st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([1, 2, -1]))
    | st.lists(st.integers(0, 5), max_size=3).map(torch.Size)
    | st.builds(Label, st.text(max_size=3))
    | st.sampled_from(
        [
            *(None, True, False, Ellipsis, 1 << 300, -(1 << 63)),
            *("\ud800", "\x00", "ab\udcff", -0.0, float("inf")),
            *(torch.float32, torch.strided, torch.channels_last),
            *(torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")),
            *(np.int64(3), np.float32(0.5), np.float64(-0.0)),
        ]
    )
)
# What can be a key or a member of a set.
_HASHABLE = _PLAIN | st.lists(_PLAIN, max_size=3).map(tuple) | st.frozensets(_PLAIN, max_size=3)
_RECIPES = st.builds(
    _Recipe,
    st.integers(0, 2),
    st.sampled_from(DTYPES),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=3),
    st.integers(0, 8),
    st.integers(0, 7),
)
_NUMBERS = st.none() | st.integers(-9, 9)
_LEAVES = (
    _RECIPES
    | _HASHABLE
    | _ARRAYS
    | st.just(float("nan"))
    | st.builds(slice, _NUMBERS, _NUMBERS, _NUMBERS)
)
_PLANS = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_HASHABLE, inner, max_size=3)
        | st.sets(_HASHABLE, max_size=3)
        | st.builds(Corner, inner, inner)
        | st.builds(Box, inner, inner)
    ),
    max_leaves=6,
)
_SIZES = st.lists(st.sampled_from([1024, 1027, 0]), min_size=1, max_size=3)


def trees() -> st.SearchStrategy[Any]:
    """Nested containers of plain values and of tensors that share storages."""
    return st.builds(_tree, st.integers(0, 1 << 16), _SIZES, st.deferred(lambda: _PLANS))


def canonical(value: object) -> object:  # noqa: PLR0911 - one case a type
    """Return a hashable form that two trees have in common exactly when they are equal.

    Equal means: the same bits (NaN is NaN, -0.0 is not 0.0), the same types (by name, as classes
    are rebuilt), and for tensors the same layout on the same storage content.
    """
    name = type(value).__name__
    if isinstance(value, torch.Tensor):
        return (
            name,
            value.dtype,
            value.shape,
            value.stride(),
            value.storage_offset(),
            value.is_conj(),
            value.is_neg(),
            value.requires_grad,
            bytes(tensors.storage_bytes(value.untyped_storage()).tolist()),
        )
    if isinstance(value, np.ndarray):
        return name, value.dtype.str, value.shape, value.tobytes()
    if dataclasses.is_dataclass(value):
        return name, canonical(vars(value))
    if isinstance(value, dict):
        return name, tuple(canonical(pair) for pair in value.items())
    if isinstance(value, (set, frozenset)):
        return name, frozenset(canonical(item) for item in value)
    if isinstance(value, (list, tuple)):
        return name, getattr(value, "_fields", None), tuple(canonical(item) for item in value)
    return name, hex(value) if isinstance(value, int) else repr(value)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """Return a tree's tensors in a fixed order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        tree = list(vars(tree).values())
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [tensor for item in tree for tensor in tensors_in(item)]
    return []

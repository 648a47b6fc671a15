"""A description of values may be forged: whatever it says, the reader refuses it or reads it."""

from __future__ import annotations

import copy
import gc
import os
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution.tensors import (
    MOST_VALUES,
    UnsupportedValueError,
    pack,
    unpack,
)
from pytest_tritonverify.execution.wire import WireError
from tests.support import trees

# What the honest description holds is varied; the judge runs with warnings as errors here.
_TREE = {
    "outputs": [
        torch.arange(6.0).reshape(2, 3).t(),
        torch.ones(2, dtype=torch.complex64).conj(),
        trees.Corner(1, None),
        trees.Box("text", 2.5),
        (True, 1 + 2j, b"bytes", slice(1, None), range(3), torch.float16, torch.device("cpu")),
        frozenset({1, 2}),
        torch.Size([2, 3]),
        np.arange(3),
    ],
    "changed": {"input[0]": torch.zeros(0)},
}
_PACKED = pack(_TREE, keep_layout=True)
_KINDS = (
    *("none", "ellipsis", "bool", "int", "float", "complex", "str", "bytes", "slice", "range"),
    *("size", "device", "torch", "tensor", "list", "tuple", "namedtuple", "dataclass", "dict"),
    *("set", "frozenset", "ndarray", "scalar"),
)
_FIELDS = (
    *("k", "v", "s", "dtype", "off", "shape", "stride", "conj", "neg", "grad"),
    *("name", "fields", "frozen", "tree", "segments"),
)
_WORDS = (
    *_KINDS,
    *_FIELDS,
    *("float32", "quint8", "int1", "bits16", "complex32", "float8_e8m0fnu", "half", "cuda:7"),
    *("load", "ops", "classes", "_dynamo", "__builtins__", "__class__", "__dict__", "__init__"),
    *("class", "x y", "x=print()", "\ud800", "\x00", "0x10", "nan", "inf", "1e999", "-1", "é"),
)
_NUMBERS = st.integers(-3, 70) | st.sampled_from(
    [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 10**400]
)
_LEAVES = (
    st.none()
    | st.booleans()
    | _NUMBERS
    | st.floats()
    | st.sampled_from(_WORDS)
    | st.text(max_size=5)
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(_FIELDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=6,
)
_FUZZ = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
# Values for the fuzz that hypothesis does not shrink but that tries ten times as many.
_VALUES: list[Any] = [
    *(None, True, 0, 1, -1, 2, 3, 7, 64, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 64, 10**400),
    *(0.5, float("nan"), float("inf"), [], {}, [[]], [0], [1, 2], [{}], {"k": "none"}),
    *_WORDS,
]


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every part of a description."""
    found = [path]
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, part in items:
        found += _places(part, (*path, key)) if isinstance(part, (dict, list)) else [(*path, key)]
    return found


_PLACES = _places(_PACKED.spec)[1:]


def _changed(spec: Any, path: tuple[Any, ...], action: str, value: Any) -> Any:
    """Return the description with one part replaced, dropped, doubled or moved."""
    spec = copy.deepcopy(spec)
    parent = spec
    for key in path[:-1]:
        try:
            parent = parent[key]
        except (KeyError, IndexError, TypeError):  # gone by an earlier change
            return spec
    try:
        if action == "drop":
            del parent[path[-1]]
        elif action == "wrap":
            parent[path[-1]] = [parent[path[-1]]]
        elif action == "graft":
            parent[path[-1]] = copy.deepcopy(_part(spec, value))
        else:
            parent[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return spec
    return spec


def _part(spec: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            spec = spec[key]
        except (KeyError, IndexError, TypeError):
            return None
    return spec


_CHANGES = st.one_of(
    st.tuples(st.sampled_from(_PLACES), st.just("replace"), _JSON),
    st.tuples(st.sampled_from(_PLACES), st.just("replace"), _NUMBERS | st.sampled_from(_WORDS)),
    st.tuples(st.sampled_from(_PLACES), st.sampled_from(["drop", "wrap"]), st.none()),
    st.tuples(st.sampled_from(_PLACES), st.just("graft"), st.sampled_from(_PLACES)),
)


def _read(spec: Any) -> None:
    """Unpack a description, and touch every tensor that it gives."""
    try:
        found = unpack(spec, _PACKED.fd)
    except WireError as error:
        # Whatever it quotes, it can be shown.
        assert len(str(error).encode()) < 3000  # noqa: PT017 - both ways are right
        return
    for tensor in trees.tensors_in(found):
        if tensor.numel() < 10_000 and tensor.dtype in trees.COMPUTED:
            tensor.detach().clone().contiguous()


@_FUZZ
@given(st.lists(_CHANGES, min_size=1, max_size=3))
def test_changed_description_is_refused_or_read(changes: list[tuple[Any, str, Any]]) -> None:
    spec: Any = _PACKED.spec
    for path, action, value in changes:
        spec = _changed(spec, path, action, value)
    _read(spec)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1 << 32))
def test_thousands_of_changed_descriptions_are_refused_or_read(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        spec: Any = _PACKED.spec
        for _ in range(random.randint(1, 3)):
            action = random.choice(["replace", "replace", "drop", "wrap", "graft"])
            value = random.choice(_PLACES if action == "graft" else _VALUES)
            spec = _changed(spec, random.choice(_PLACES), action, value)
        _read(spec)


@_FUZZ
@given(_JSON, _JSON)
def test_invented_description_is_refused_or_read(tree: Any, segments: Any) -> None:
    _read({"tree": tree, "segments": segments})
    _read(tree)


def _tensor_node(**changes: Any) -> dict[str, Any]:
    node = {
        "k": "tensor",
        "s": 0,
        "dtype": "float32",
        "off": 0,
        "shape": [2, 3],
        "stride": [3, 1],
        "conj": False,
        "neg": False,
        "grad": False,
    }
    return {**node, **changes}


@_FUZZ
@given(
    st.sampled_from([*map(str, trees.DTYPES), "torch.quint8"]),
    _NUMBERS,
    st.lists(st.tuples(_NUMBERS, _NUMBERS), max_size=4),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_tensor_never_reaches_beyond_its_memory(
    dtype: str, offset: int, layout: list[tuple[int, int]], flags: tuple[bool, bool, bool]
) -> None:
    shape, stride = [n for n, _ in layout], [s for _, s in layout]
    conj, neg, grad = flags
    node = _tensor_node(dtype=dtype.removeprefix("torch."), off=offset, shape=shape, stride=stride)
    spec = {"tree": {**node, "conj": conj, "neg": neg, "grad": grad}, "segments": [[0, 64]]}
    try:
        found = unpack(spec, _PACKED.fd)
    except WireError:
        return
    assert list(found.shape) == shape
    if found.numel():
        last = offset + sum((n - 1) * s for n, s in layout)
        assert 0 <= offset <= last
        assert (last + 1) * found.element_size() <= 64


@pytest.mark.parametrize(
    "changes",
    [
        {"off": 11},
        {"off": -1},
        {"shape": [2, 4], "stride": [13, 1]},
        {"shape": [1 << 40, 1 << 40], "stride": [0, 0]},
        {"shape": [2], "stride": [1 << 62]},
        {"stride": [-3, 1]},
        {"shape": [2, 3, 1]},
        {"shape": [1] * 65, "stride": [1] * 65},
        {"shape": 6, "stride": 1},
        {"shape": [2.0, 3.0]},
        {"shape": [True, 3]},
        {"s": 1},
        {"s": -1},
        {"s": "0"},
        {"dtype": "float33"},
        {"dtype": "Tensor"},
        {"dtype": "load"},
        {"dtype": "quint8"},
        {"dtype": ["float32"]},
        {"dtype": None},
        {"dtype": "int32", "grad": True},
    ],
    ids=str,
)
def test_wrong_tensor_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        unpack({"tree": _tensor_node(**changes), "segments": [[0, 64]]}, _PACKED.fd)


@pytest.mark.parametrize(
    "segments",
    [
        [[0, 1 << 40]],
        [[1 << 40, 1]],
        [[-64, 64]],
        [[0, -1]],
        [[3, 24]],
        [[0]],
        [[0, 1, 2]],
        [[0.0, 24.0]],
        [["0", "24"]],
        [0, 24],
        {"0": 24},
        None,
        "none",
    ],
    ids=str,
)
def test_wrong_segment_is_refused(segments: Any) -> None:
    with pytest.raises(WireError):
        unpack({"tree": {"k": "none"}, "segments": segments}, _PACKED.fd)
    with pytest.raises(WireError):
        unpack({"tree": _tensor_node(), "segments": segments}, None)


def test_endless_nesting_is_refused() -> None:
    node: dict[str, Any] = {"k": "none"}
    for _ in range(100):
        node = {"k": "list", "v": [node]}
    with pytest.raises(WireError, match="nested too deeply"):
        unpack({"tree": node, "segments": []}, None)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("X", ["a", "a"]),
        ("X", ["class", "b"]),
        ("X", ["__class__", "__dict__"]),
        ("X", ["a=print(1)", "b"]),
        ("X); import os; (", ["a", "b"]),
        ("X", ["a", 1]),
        (1, ["a", "b"]),
        ("X", ["a"]),
        ("X", "ab"),
        ("X", None),
    ],
)
@pytest.mark.parametrize("kind", ["namedtuple", "dataclass"])
def test_names_never_become_code(kind: str, name: Any, fields: Any) -> None:
    values = [{"k": "int", "v": "0x1"}, {"k": "int", "v": "0x2"}]
    node = {"k": kind, "name": name, "fields": fields, "frozen": False, "v": values}
    try:
        found = unpack({"tree": node, "segments": []}, None)
    except WireError:
        return
    assert type(found) in (tuple, dict) or type(found).__name__ == "X"


def test_refused_descriptions_leave_no_memory_mapped() -> None:
    with closing(pack(torch.zeros(1 << 20), keep_layout=True)) as packed:
        for _ in range(200):
            with pytest.raises(WireError):
                unpack({**packed.spec, "tree": _tensor_node(dtype="none")}, packed.fd)
        gc.collect()
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        assert maps.count("memfd:tritonverify") <= 3
        assert os.fstat(packed.fd).st_size == 4 << 20


def _costly() -> dict[str, dict[str, Any]]:
    """Descriptions of a megabyte or so that would keep their reader busy for minutes."""
    none: dict[str, Any] = {"k": "none"}
    # Python's hash of a whole number is its remainder by this one.
    alike = [{"k": "int", "v": hex(((1 << 61) - 1) * n)} for n in range(20_000)]
    record = {"k": "dataclass", "name": "A", "fields": ["a"], "frozen": True, "v": [none]}
    names = [f"a{n}" for n in range(5000)]
    return {
        "dict": {"k": "dict", "v": [[key, none] for key in alike]},
        "set": {"k": "set", "v": alike},
        "tuples": {"k": "frozenset", "v": [{"k": "tuple", "v": [key]} for key in alike]},
        "records": {"k": "list", "v": [record] * 5000},
        "fields": {**record, "k": "namedtuple", "fields": names, "v": [none] * len(names)},
        "values": {"k": "list", "v": [none] * (MOST_VALUES + 1)},
    }


@pytest.mark.parametrize("name", _costly())
def test_what_takes_long_to_rebuild_is_refused_where_that_matters(name: str) -> None:
    with pytest.raises(WireError, match="more than"):
        unpack({"tree": _costly()[name], "segments": []}, None, bounded=True)


def test_an_honest_result_is_within_bounds() -> None:
    large = {f"key{n}": [n, float(n)] for n in range(20_000)}
    with closing(pack(large, keep_layout=False)) as packed:
        assert unpack(packed.spec, packed.fd, bounded=True) == large
    with pytest.raises(UnsupportedValueError, match="hand over long lists as tensors"):
        pack([0] * MOST_VALUES, keep_layout=False)

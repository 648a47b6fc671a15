"""What a case feeds in, as its name and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution import describing, naming
from pytest_tritonverify.results.result_file import SCHEMA_PATH, finite

# Neither a deadline nor a verdict on speed: other work may load the machine.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

DTYPES = sorted(
    {value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str
)


class Point(NamedTuple):
    x: object
    y: object


@dataclass
class Options:
    scale: float
    table: dict[str, Any] = field(default_factory=dict)


# Names


@pytest.mark.parametrize(
    ("values", "name", "dtype"),
    [
        ([torch.zeros(2, 3)], "case7-float32-2x3", "float32"),
        ([torch.tensor(1)], "case7-int64-scalar", "int64"),
        ([torch.zeros(0, 5, dtype=torch.bfloat16)], "case7-bfloat16-0x5", "bfloat16"),
        ([3, "x", None], "case7-no_tensor", "no_tensor"),
        ([], "case7-no_tensor", "no_tensor"),
        ([2, [torch.zeros(4, dtype=torch.int8)], torch.zeros(1)], "case7-int8-4", "int8"),
        ([(), {"a": 1, "b": [torch.zeros(4, dtype=torch.bool)]}], "case7-bool-4", "bool"),
        ([Point(1, torch.zeros(2))], "case7-float32-2", "float32"),
        ([np.zeros(3)], "case7-no_tensor", "no_tensor"),
        ([torch.zeros(2, 3).to_sparse()], "case7-float32-2x3", "float32"),
        ([torch.zeros(2, 3, device="meta")], "case7-float32-2x3", "float32"),
        ([torch.nn.Parameter(torch.zeros(2).t())], "case7-float32-2", "float32"),
    ],
)
def test_names(values: list[object], name: str, dtype: str) -> None:
    assert naming.case_name(7, values) == name
    assert naming.dtype_word(values) == dtype


# Of torch, on experimental and deprecated dtypes.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_has_a_name_that_command_lines_take(dtype: torch.dtype) -> None:
    tensor = torch.empty(0, dtype=dtype, device="meta")
    assert re.fullmatch(r"case1-\w+-0", naming.case_name(1, [tensor]), re.ASCII)


SHAPES = st.lists(st.sampled_from([1, 2, 0]), max_size=60)


@CALM
@given(number=st.integers(1, 10**6), shape=SHAPES)
def test_names_are_ascii_short_and_differ(number: int, shape: list[int]) -> None:
    # A view of one number has any shape.
    name = naming.case_name(number, [torch.empty((), dtype=torch.float8_e4m3fn).expand(shape)])
    assert re.fullmatch(r"case(\d+)-float8_e4m3fn-(\d+(x\d+)*x?|scalar)", name, re.ASCII)
    assert len(name) <= 80
    assert name.startswith(f"case{number}-")


# Descriptions

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=300)
    | st.text(st.characters(categories=["Cs", "Ll"]))
    | st.binary(max_size=20)
    | st.complex_numbers()
    | st.sampled_from([torch.zeros(2, 3), torch.float16, torch.Size([2, 3]), np.float32("nan")])
    | st.sampled_from([np.int64(3), np.zeros(2), slice(1, None), object, print, 10**400, ...])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.floats(), inner)
        | st.builds(Point, inner, inner)
        | st.builds(Options, st.floats(), st.dictionaries(st.text(), inner))
    ),
    max_leaves=12,
)


def strict(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


@CALM
@given(VALUES)
def test_descriptions_are_strict_json(value: object) -> None:
    described = describing.describe(value)
    json.loads(strict(described))
    strict(finite(described)).encode()


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (
            torch.zeros(2, 3, dtype=torch.float16),
            {"type": "tensor", "shape": [2, 3], "dtype": "torch.float16"},
        ),
        (torch.tensor(3), {"type": "tensor", "shape": [], "dtype": "torch.int64"}),
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("mean", "mean"),
        (float("nan"), {"type": "float", "value": "nan"}),
        (float("-inf"), {"type": "float", "value": "-inf"}),
        ([1, (2,)], {"type": "list", "items": [1, {"type": "tuple", "items": [2]}]}),
        ({"a": None, 3: 4}, {"type": "dict", "items": {"a": None, "3": 4}}),
        (Point(1, 2), {"type": "Point", "items": [1, 2]}),
        (
            Options(0.5),
            {"type": "Options", "items": {"scale": 0.5, "table": {"type": "dict", "items": {}}}},
        ),
        (torch.Size([2, 3]), {"type": "Size", "items": [2, 3]}),
        (torch.float16, {"type": "dtype", "value": "torch.float16"}),
        (slice(1, 2), {"type": "slice", "value": "slice(1, 2, None)"}),
    ],
)
def test_descriptions(value: object, described: object) -> None:
    assert describing.describe(value) == described


def test_nested_tensors_are_described_in_full() -> None:
    value = {"q": [torch.zeros(1), (torch.zeros(2, dtype=torch.int8), {"k": torch.zeros(3)})]}
    text = strict(describing.describe(value))
    assert all(f'"shape": [{n}]' in text for n in (1, 2, 3))


class Unprintable:
    def __repr__(self) -> str:
        raise SystemError


def test_what_is_long_or_deep_or_hostile_is_cut() -> None:
    loop: list[object] = []
    loop.append(loop)
    for value in ("x" * 10**6, list(range(10**5)), loop, Unprintable(), b"x" * 10**6):
        assert len(strict(describing.describe(value))) < 3000
    assert describing.describe(list(range(300)))["items"][-1] == "... 44 more"
    assert "repr raised SystemError" in strict(describing.describe(Unprintable()))


def test_the_schema_takes_every_description() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    inputs = {**schema["$defs"]["input"], "$defs": schema["$defs"]}
    for value in (torch.zeros(2), None, 1, "x", [1], {"a": 2}, Unprintable(), float("nan")):
        jsonschema.validate(describing.describe(value), inputs)

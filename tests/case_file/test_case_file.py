"""Cases from NPUKernelBench's data files: reading, and what is said of mistakes."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from pytest_tritonverify.case_file import (
    CaseFileError,
    TensorListSpec,
    TensorSpec,
    ValueSpec,
    build_inputs,
    load_case_specs,
)
from tests.support.case_files import X, attr, built, spec_of, write

DATA = Path(__file__).parents[1] / "data" / "npukernelbench"


def complaint(file: Path) -> CaseFileError:
    with pytest.raises(CaseFileError) as caught:
        load_case_specs(file)
    return caught.value


# --- published files


def test_indices_stay_within_the_indexed_dimension() -> None:
    specs = load_case_specs(DATA / "18_Index.json")
    assert [spec.line for spec in specs] == [1, 2, 3, 4]
    assert specs[3].inputs == (
        TensorSpec("x", "float16", (128, 128)),
        ValueSpec("dim", 0),
        TensorSpec("index", "int64", (32,), (0, 127)),
    )
    for spec in specs:
        x, dim, index = cast("list[Any]", build_inputs(spec))
        assert torch.index_select(x, dim, index).shape[dim] == len(index)


def test_a_list_of_tensors_is_one_input() -> None:
    specs = load_case_specs(DATA / "13_Cat.json")
    assert specs[2].inputs[0] == TensorListSpec(
        "tensors",
        tuple(
            TensorSpec(f"tensors[{index}]", "float32", (64, columns))
            for index, columns in enumerate((128, 256, 64))
        ),
    )
    tensors, dim = cast("list[Any]", build_inputs(specs[2]))
    assert isinstance(tensors, list)
    assert torch.cat(tensors, dim).shape == (64, 448)
    assert {tensor.dtype for tensor in cast("list[Any]", build_inputs(specs[3])[0])} == {
        torch.bfloat16
    }


# --- forms of files

CASES = [{"inputs": [X]}, {"inputs": [attr(7, "int")]}, {"inputs": []}]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n".join(map(json.dumps, CASES)), [1, 2, 3]),
        ("\ufeff\n\n" + "\r\n \n".join(map(json.dumps, CASES)) + "\n\n", [3, 5, 7]),
        (json.dumps(CASES), [1, 1, 1]),
        ("\n[\n" + ",\n".join(map(json.dumps, CASES)) + "\n]\n", [3, 4, 5]),
        ("\n".join(json.dumps(case, indent=1) for case in CASES), [1, 15, 26]),
    ],
    ids=["lines", "blank-lines", "array", "array-over-lines", "objects-over-lines"],
)
def test_lines_arrays_and_spread_objects_are_read(
    tmp_path: Path, text: str, lines: list[int]
) -> None:
    file = tmp_path / "op.json"
    file.write_text(text, encoding="utf-8", newline="")
    specs = load_case_specs(file)
    assert [spec.line for spec in specs] == lines
    assert {spec.file for spec in specs} == {"op.json"}
    assert [spec.inputs for spec in specs] == [
        (TensorSpec("x", "float32", (2, 3)),),
        (ValueSpec("a", 7),),
        (),
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "holds no case"),
        ("[]", None, "holds no case"),
        ('{"inputs": []}\n{"inputs": [}\n{"inputs": []}', 2, "isn't valid JSON: Expecting value"),
        ('{"inputs": []}\n{"inputs": []\n{"inputs": []}', 2, "noticed in line 3"),
        ('{"inputs": []},\n{"inputs": []}', 1, "isn't valid JSON"),
        ('[{"inputs": []},\n{"inputs"}]', 2, "isn't a JSON array"),
        ('{"inputs": []}\n{"case_id": "0", "dtype": "float16"}', 2, "['case_id', 'dtype']"),
        ('{"inputs": []}\n{"inputs": {"x": 1}}', 2, 'with a list "inputs"'),
        ("[1]", 1, "got int"),
        ('{"inputs": [3]}', 1, "input 1 must be an object, got 3"),
    ],
)
def test_a_broken_file_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int | None, problem: str
) -> None:
    file = tmp_path / "op.json"
    file.write_text(text)
    error = complaint(file)
    assert error.line == line
    assert problem in error.problem
    assert str(error).startswith("op.json: " if line is None else f"op.json, line {line}: ")
    assert '{"inputs": [' in error.example


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    assert "can't be read" in str(complaint(tmp_path / "absent.json"))
    (tmp_path / "latin.json").write_bytes(b'{"inputs": []} \xff')
    assert "can't be read" in str(complaint(tmp_path / "latin.json"))


# --- mistakes in a case


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            {"name": "r", "type": "range", "low": 0},
            "\"type\" 'range'; the kinds are tensor, tensor",
        ),
        ({"name": "r"}, 'unknown "type" None'),
        ({**X, "required": "no"}, "\"required\" must be true or false, got 'no'"),
        ({**X, "shape": None}, '"shape" is missing'),
        ({**X, "shape": 128}, '"shape" must be a list of sizes, got 128'),
        ({**X, "shape": [2, -1]}, "[2, -1]"),
        ({**X, "shape": [True]}, "[True]"),
        ({**X, "dtype": None}, 'unknown "dtype" None; the dtypes are float64'),
        ({**X, "dtype": "hifloat32"}, "'hifloat32'"),
        ({**X, "range": [0]}, '"range" must be two numbers [low, high], got [0]'),
        ({**X, "range": [3, 1]}, "from low to high"),
        ({**X, "range": ["0", "1"]}, "two numbers"),
        ({**X, "range": [0, math.inf]}, "within float32"),
        ({**X, "range": [math.nan, 1]}, "within float32"),
        ({**X, "dtype": "float16", "range": [0, 1e5]}, "within float16, got [0, 100000.0]"),
        ({**X, "dtype": "complex64", "range": [0, 1e39]}, "within complex64"),
        ({**X, "dtype": "int8", "range": [0, 200]}, "within int8, got [0, 200]"),
        ({**X, "dtype": "uint8", "range": [-1, 2]}, "within uint8"),
        ({**X, "dtype": "bool", "range": [0, 2]}, "within bool"),
        ({**X, "dtype": "int32", "range": [0, 1.5]}, "two integers, got [0, 1.5]"),
        ({**X, "value": [1, 2]}, '"value" isn\'t supported: tensors are drawn at random'),
        ({**X, "shape": None, "data": [1]}, '"data" isn\'t supported'),
        ({"type": "tensor_list", "dtype": "int8"}, '"shapes" is missing'),
        ({"type": "tensor_list", "dtype": "int8", "shapes": 3}, "must be a list of shapes, got 3"),
        ({"type": "tensor_list", "dtype": "int8", "shapes": [[2], 3]}, "tensor 1: "),
        ({"type": "tensor_list", "dtype": ["int8"], "shapes": [[2], [3]]}, "2 shapes, but 1 dtype"),
        ({"type": "tensor_list", "tensors": [[2]]}, '"tensors" must be a list of objects'),
        ({"type": "tensor_list", "tensors": [{"dtype": "int8", "fill": 1}]}, '"fill" isn\'t'),
        ({"type": "attr", "dtype": "int"}, '"value" is missing'),
        (attr(2.5, "int"), "2.5 isn't a valid int"),
        (attr("2.5", "int"), "'2.5' isn't a valid int"),
        (attr([1, "x"], "int"), "'x' isn't a valid int"),
        (attr(math.inf, "int"), "inf isn't a valid int"),
        (attr({}, "int"), "{} isn't a valid int"),
        (attr(10**400, "float"), "isn't a valid float"),
        (attr("large", "float"), "'large' isn't a valid float"),
        (attr(2, "bool"), "2 isn't a valid bool"),
        (attr(3, "str"), '"value" must be a string, got 3'),
        (attr(3, "list[int]"), "of dtype 'list[int]' must be a list, got 3"),
        (attr("float7", "dtype"), "unknown \"dtype\" 'float7'"),
        (attr(1, "quaternion"), "unknown \"dtype\" 'quaternion' of an attribute; use int, float"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_an_example(
    tmp_path: Path, entry: dict[str, object], problem: str
) -> None:
    error = complaint(write(tmp_path, X, entry))
    assert (error.file, error.line) == ("op.json", 2)
    assert f'input 2 "{entry.get("name", "input 2")}": ' in error.problem
    assert problem in error.problem
    kind = entry.get("type")
    example = json.loads(error.example)
    if kind in ("tensor", "tensor_list", "attr"):
        assert example["type"] == kind
    else:
        assert "inputs" in example
    assert error.example in str(error)


@pytest.mark.parametrize("kind", ["tensor", "tensor_list", "attr"])
def test_every_example_is_itself_sound(tmp_path: Path, kind: str) -> None:
    file = write(tmp_path, {"name": "x", "type": kind})
    example = json.loads(complaint(file).example)
    assert len(built(tmp_path, example)) == 1


def test_the_error_survives_pickling() -> None:
    error = CaseFileError("op.json", 3, "problem", "{}")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes


def test_a_dtype_that_the_installed_torch_lacks_is_reported_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(tmp_path, {**X, "dtype": "float8_e4m3fnuz"})
    monkeypatch.delattr(torch, "float8_e4m3fnuz", raising=False)
    with pytest.raises(CaseFileError, match=r"op.json, line 2: torch .* has no dtype float8_e4m3f"):
        build_inputs(spec)


# --- optional inputs and attributes


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "bias", "type": "tensor", "required": False, "dtype": "float16", "shape": None},
        {"name": "bias", "type": "tensor", "required": False, "value": None},
        {"name": "rest", "type": "tensor_list", "required": False, "shapes": None},
        {"name": "dim", "type": "attr", "required": False, "dtype": "int"},
        {"name": "dim", "type": "attr", "required": True, "dtype": "int", "value": None},
        {"name": "dim", "type": "attr", "dtype": "list", "value": None},
        {"name": "dim", "type": "attr", "dtype": "none", "value": None},
    ],
)
def test_an_input_without_content_is_none(tmp_path: Path, entry: dict[str, object]) -> None:
    (x, nothing) = built(tmp_path, X, entry)
    assert x.shape == (2, 3)
    assert nothing is None


def test_an_optional_tensor_with_a_shape_is_drawn(tmp_path: Path) -> None:
    assert built(tmp_path, {**X, "required": False})[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "int", 3),
        (3.0, "int64", 3),
        ("3", "long", 3),
        ("3.0", "int", 3),
        ([4, 8], "int", [4, 8]),
        ([4, 8], "list", [4, 8]),
        ([4, 8.0], "list[int]", [4, 8]),
        ([4, 8], "int[]", [4, 8]),
        ([4, 8], "list_int", [4, 8]),
        ([[1, 2], [3]], "list", [[1, 2], [3]]),
        ([4, 8], "tuple", (4, 8)),
        ([4, 8], "tuple[float, ...]", (4.0, 8.0)),
        ([None, 1], "int", [None, 1]),
        (1, "float", 1.0),
        (1e-5, "float32", 1e-5),
        ("1e-5", "double", 1e-5),
        ("inf", "float", math.inf),
        ("-Infinity", "float", -math.inf),
        (-math.inf, "float", -math.inf),
        (True, "bool", True),
        (0, "bool", False),
        ("False", "bool", False),
        ("tanh", "str", "tanh"),
        ("int64", "str", "int64"),
        ("bf16", "dtype", torch.bfloat16),
        ("torch.int32", "torch.dtype", torch.int32),
        ("float16", "float16", torch.float16),
        (["half", "int8"], "dtype", [torch.float16, torch.int8]),
        (2, "scalar", 2),
        ({"a": [1]}, "dict", {"a": [1]}),
        ([1, "x"], None, [1, "x"]),
    ],
)
def test_an_attribute_has_the_type_that_its_dtype_says(
    tmp_path: Path, value: object, dtype: str | None, expected: object
) -> None:
    (found,) = built(tmp_path, attr(value, dtype))
    # A representation tells 1 from 1.0 and from True, at any depth.
    assert repr(found) == repr(expected)


def test_nan_is_a_float_attribute(tmp_path: Path) -> None:
    assert all(math.isnan(item) for item in built(tmp_path, attr("nan", "float"), attr(math.nan)))


def test_every_build_gives_new_objects(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, attr([1, [2]]), {"type": "tensor_list", **X, "shapes": [[2]]})
    first, _ = cast("list[Any]", build_inputs(spec))
    first[1].append(3)
    assert build_inputs(spec)[0] == [1, [2]]


def test_loading_imports_no_torch() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from pytest_tritonverify.case_file import load_case_specs\n"
        f"load_case_specs(Path({str(DATA / '18_Index.json')!r}))\n"
        "print([n for n in ('torch', 'triton', 'numpy') if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert result.stdout.strip() == "[]"

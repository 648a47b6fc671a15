"""Cases from a data file, for tasks that make no inputs themselves.

The file has the form of NPUKernelBench: JSON Lines (or one JSON array), a case an object
`{"inputs": [...]}` whose entries stand in the order of the parameters of `Model.forward`:

* `tensor`: `dtype`, `shape` and, optionally, `range` `[low, high]`, both ends included;
* `tensor_list`: `shapes` with one `dtype` or a list of them (`dtypes`), or `tensors`, a list of
  `{"dtype", "shape", "range"}`;
* `attr`: `value`, converted to `dtype`.

An entry with `"required": false` and without a shape or a value is None. Keys that are not named
here are ignored.

Loading checks everything that can be checked without torch, so that a mistake is reported with
its line before anything runs. Building draws from torch's global generator; seeding is up to the
caller. It runs under `FakeTensorMode` as well.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from pytest_tritonverify import case_drawing

_EXAMPLES = {
    "case": '{"inputs": [{"name": "x", "type": "tensor", "dtype": "float16", "shape": [64, 128]}, '
    '{"name": "dim", "type": "attr", "dtype": "int", "value": -1}]}',
    "tensor": '{"name": "index", "type": "tensor", "required": true, "dtype": "int64", '
    '"shape": [32], "range": [0, 127]}',
    "tensor_list": '{"name": "tensors", "type": "tensor_list", "required": true, '
    '"dtype": "float32", "shapes": [[64, 128], [64, 256]]}',
    "attr": '{"name": "dim", "type": "attr", "required": false, "dtype": "int", "value": 0}',
}

_SEQUENCE = re.compile(r"(list|tuple)(?:[\[_](\w+)(?:, *\.\.\.)?\]?)?|(\w+)\[\]")


class CaseFileError(ValueError):
    """A case file can't be used; the text names the file, the line and the expected form."""

    def __init__(self, file: str, line: int | None, problem: str, example: str) -> None:
        super().__init__(file, line, problem, example)
        self.file = file
        self.line = line
        self.problem = problem
        self.example = example

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.problem}\nexpected for instance: {self.example}"


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to draw.

    Attributes:
        name: The parameter's name.
        dtype: The canonical name of a torch dtype, for instance `float16`.
        shape: Its sizes; empty for a 0-d tensor.
        bounds: Lowest and highest value, both included, or None where none are given.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class TensorListSpec:
    """A list of tensors to draw, in order."""

    name: str
    tensors: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class ValueSpec:
    """A plain value: an attribute, or None for an optional input that is left out."""

    name: str
    value: object


InputSpec: TypeAlias = TensorSpec | TensorListSpec | ValueSpec


@dataclass(frozen=True)
class CaseSpec:
    """One case of a file.

    Attributes:
        file: The file's name.
        line: The line, from 1, where the case begins.
        inputs: In the order of the parameters of `Model.forward`.
    """

    file: str
    line: int
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True)
class _DtypeName:
    """A dtype among attribute values; torch's object exists only when inputs are built."""

    name: str


@dataclass(frozen=True)
class _Place:
    """Where an entry stands, for the errors about it."""

    file: str
    line: int | None
    prefix: str = ""
    form: str = "case"

    def fail(self, problem: str) -> NoReturn:
        raise CaseFileError(self.file, self.line, self.prefix + problem, _EXAMPLES[self.form])


def load_case_specs(path: Path) -> list[CaseSpec]:
    """Read the cases of a file, without drawing any input.

    Args:
        path: JSON Lines or one JSON array, in UTF-8. Objects may also span lines.

    Returns:
        The cases in the order of the file, at least one.

    Raises:
        CaseFileError: The file can't be read, holds no case, or has a mistake in one.
    """
    file = _Place(path.name, None)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        file.fail(f"can't be read ({error})")
    specs = [_case(value, _Place(path.name, line)) for line, value in _values(text, file)]
    if not specs:
        file.fail("holds no case")
    return specs


def build_inputs(spec: CaseSpec) -> list[object]:
    """Draw the inputs of a case from torch's global generator, on the CPU.

    Floating and complex tensors are drawn like `torch.randn`, or evenly from their range;
    integers like `torch.randint`, from their range or else from 0 to 9; bool from False and True.

    Args:
        spec: A case of `load_case_specs`.

    Returns:
        The inputs in the order of the parameters of `Model.forward`, new ones in each call.

    Raises:
        CaseFileError: The installed torch lacks a dtype that the case asks for.
    """
    try:
        return [_build(item) for item in spec.inputs]
    except case_drawing.MissingDtypeError as error:
        raise CaseFileError(spec.file, spec.line, str(error), _EXAMPLES["tensor"]) from None


# Reading


# Nested too deeply, or a number of too many digits.
_UNREADABLE = (RecursionError, ValueError)


def _values(text: str, file: _Place) -> Iterator[tuple[int, object]]:
    """Yield the top-level values of a file with the lines where they begin."""
    decoder = json.JSONDecoder()
    start, separator, end = 0, re.compile(r"\s*"), ""
    if text.lstrip().startswith("["):
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            _Place(file.file, error.lineno).fail(f"isn't a JSON array: {error}")
        except _UNREADABLE as error:
            file.fail(f"can't be read: {error}")
        start, separator, end = text.index("[") + 1, re.compile(r"[\s,]*"), "]"
    line, counted = 1, 0
    while True:
        start = _end_of(separator, text, start)
        line, counted = line + text.count("\n", counted, start), start
        if text[start : start + 1] == end:
            return
        try:
            value, start = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # Reported for the line where the object begins: what is missing at the end of a line
            # is noticed only on the next one.
            noticed = f"noticed in line {error.lineno}, column {error.colno}"
            _Place(file.file, line).fail(f"isn't valid JSON: {error.msg} ({noticed})")
        except _UNREADABLE as error:
            _Place(file.file, line).fail(f"can't be read: {error}")
        yield line, value


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _case(value: object, place: _Place) -> CaseSpec:
    if not isinstance(value, dict) or not isinstance(value.get("inputs"), list):
        found = f"keys {sorted(value)}" if isinstance(value, dict) else type(value).__name__
        place.fail(f'a case is an object with a list "inputs", got {found}')
    entries = enumerate(value["inputs"], 1)
    inputs = tuple(_input(entry, number, place) for number, entry in entries)
    return CaseSpec(place.file, place.line or 1, inputs)


def _input(entry: object, number: int, place: _Place) -> InputSpec:
    if not isinstance(entry, dict):
        place.fail(f"input {number} must be an object, got {entry!r}")
    name = str(entry.get("name", f"input {number}"))
    kind = entry.get("type")
    place = replace(place, prefix=f'input {number} "{name}": ')
    if not isinstance(kind, str) or kind not in _PARSERS:
        place.fail(f'unknown "type" {kind!r}; the kinds are {", ".join(_PARSERS)}')
    place = replace(place, form=kind)
    if kind != "attr":
        _refuse_values(entry, place)
    required = entry.get("required", True)
    if not isinstance(required, bool):
        place.fail(f'"required" must be true or false, got {required!r}')
    content = {"tensor": ("shape",), "tensor_list": ("shapes", "tensors"), "attr": ("value",)}[kind]
    if all(entry.get(key) is None for key in content):
        # A null is a value of its own for an attribute, even a required one.
        if required and not (kind == "attr" and "value" in entry):
            place.fail(f'"{content[0]}" is missing')
        return ValueSpec(name, None)
    return _PARSERS[kind](entry, name, place)


def _refuse_values(entry: dict[str, Any], place: _Place) -> None:
    for key in ("value", "data", "fill"):
        if entry.get(key) is not None:
            place.fail(
                f'"{key}" isn\'t supported: tensors are drawn at random; give a range, '
                "or make the inputs in get_input_groups() of the task file"
            )


def _tensor(entry: dict[str, Any], name: str, place: _Place) -> TensorSpec:
    dtype = _dtype_name(entry.get("dtype"), place)
    shape = entry["shape"]
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        place.fail(f'"shape" must be a list of sizes, got {shape!r}')
    return TensorSpec(name, dtype, tuple(shape), _bounds(entry.get("range"), dtype, place))


def _tensor_list(entry: dict[str, Any], name: str, place: _Place) -> TensorListSpec:
    if entry.get("shapes") is None:
        elements = entry["tensors"]
        if not isinstance(elements, list) or not all(isinstance(item, dict) for item in elements):
            place.fail(f'"tensors" must be a list of objects, got {elements!r}')
    else:
        shapes, dtypes = entry["shapes"], entry.get("dtypes", entry.get("dtype"))
        if not isinstance(shapes, list):
            place.fail(f'"shapes" must be a list of shapes, got {shapes!r}')
        if not isinstance(dtypes, list):
            dtypes = [dtypes] * len(shapes)
        if len(dtypes) != len(shapes):
            place.fail(f"{len(shapes)} shapes, but {len(dtypes)} dtypes")
        elements = [
            {"shape": shape, "dtype": dtype} for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
    shared = {"shape": None, "dtype": entry.get("dtype"), "range": entry.get("range")}
    tensors: list[TensorSpec] = []
    for index, item in enumerate(elements):
        inner = replace(place, prefix=f"{place.prefix}tensor {index}: ")
        _refuse_values(item, inner)
        tensors.append(_tensor(shared | item, f"{name}[{index}]", inner))
    return TensorListSpec(name, tuple(tensors))


def _dtype_name(value: object, place: _Place) -> str:
    name = case_drawing.canonical(value)
    if name not in case_drawing.DTYPES:
        place.fail(f'unknown "dtype" {value!r}; the dtypes are {", ".join(case_drawing.DTYPES)}')
    return name


def _bounds(value: object, dtype: str, place: _Place) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = value if isinstance(value, list) else []
    if [type(number) in (int, float) for number in numbers] != [True, True]:
        place.fail(f'"range" must be two numbers [low, high], got {value!r}')
    low, high = numbers
    if case_drawing.is_integer(dtype):
        if not all(isinstance(number, int) or number.is_integer() for number in numbers):
            place.fail(f'"range" of {dtype} must be two integers, got {value!r}')
        low, high = int(low), int(high)
    lowest, highest = case_drawing.limits(dtype)
    if not lowest <= low <= high <= highest:
        place.fail(f'"range" must run from low to high within {dtype}, got {value!r}')
    return low, high


# Attributes


def _attr(entry: dict[str, Any], name: str, place: _Place) -> ValueSpec:
    return ValueSpec(name, _convert(entry["value"], entry.get("dtype"), place))


def _convert(value: object, dtype: object, place: _Place) -> object:
    kind = "any" if dtype is None else str(dtype).strip().lower().removeprefix("torch.")
    sequence = _SEQUENCE.fullmatch(kind)
    if sequence and value is not None:
        if not isinstance(value, list):
            place.fail(f'"value" of dtype {dtype!r} must be a list, got {value!r}')
        kind = sequence[2] or sequence[3] or "any"
        items = [_convert(item, kind, place) for item in value]
        return tuple(items) if sequence[1] == "tuple" else items
    if value is None or kind in ("any", "number", "scalar", "dict", "object"):
        return value
    if isinstance(value, list):
        # The form gives a list of integers the dtype of its elements.
        return [_convert(item, dtype, place) for item in value]
    return _convert_scalar(value, kind, place)


def _convert_scalar(value: Any, kind: str, place: _Place) -> object:
    if kind in ("str", "string"):
        if not isinstance(value, str):
            place.fail(f'"value" must be a string, got {value!r}')
        return value
    category = case_drawing.canonical(kind)
    if kind == "dtype" or (isinstance(value, str) and category == case_drawing.canonical(value)):
        # A dtype may also be given under its own name, as in "dtype": "float16".
        return _DtypeName(_dtype_name(value, place))
    try:
        if category == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[str(value).lower()]
        if case_drawing.is_integer(category):
            return _integer(value)
        if case_drawing.is_floating(category):
            return float(value)
    except (KeyError, OverflowError, TypeError, ValueError):
        place.fail(f'"value" {value!r} isn\'t a valid {kind}')
    return place.fail(
        f'unknown "dtype" {kind!r} of an attribute; use int, float, bool, str, dtype, list, tuple, '
        "list[int] and the like, or any to keep the value as it is"
    )


def _integer(value: Any) -> int:
    number = float(value) if isinstance(value, str) and "." in value else value
    if isinstance(number, float) and not number.is_integer():
        raise ValueError(value)
    return int(number)


_PARSERS: Mapping[str, Callable[[dict[str, Any], str, _Place], InputSpec]] = {
    "tensor": _tensor,
    "tensor_list": _tensor_list,
    "attr": _attr,
}


# Building


def _build(item: InputSpec) -> object:
    if isinstance(item, TensorSpec):
        return case_drawing.draw(item.dtype, item.shape, item.bounds)
    if isinstance(item, TensorListSpec):
        return [_build(tensor) for tensor in item.tensors]
    return _materialise(item.value)


def _materialise(value: object) -> object:
    if isinstance(value, _DtypeName):
        return case_drawing.torch_dtype(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(_materialise(item) for item in value)
    if isinstance(value, dict):
        return {key: _materialise(item) for key, item in value.items()}
    return value

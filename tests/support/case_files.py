"""Files with cases in NPUKernelBench's form, and what is built from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pytest_tritonverify.case_file import CaseSpec, build_inputs, load_case_specs

if TYPE_CHECKING:
    from pathlib import Path

X = {"name": "x", "type": "tensor", "required": True, "dtype": "float32", "shape": [2, 3]}


def write(folder: Path, *inputs: object) -> Path:
    """Write a file of one sound case and, in line 2, a case of these inputs."""
    file = folder / "op.json"
    cases = [{"inputs": [X]}, {"inputs": list(inputs)}]
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return file


def spec_of(folder: Path, *inputs: object) -> CaseSpec:
    return load_case_specs(write(folder, *inputs))[1]


def built(folder: Path, *inputs: object) -> list[Any]:
    return cast("list[Any]", build_inputs(spec_of(folder, *inputs)))


def attr(value: object, dtype: object = None) -> dict[str, object]:
    return {"name": "a", "type": "attr", "required": True, "dtype": dtype, "value": value}

"""Where a task's cases come from: its functions, its data files, and under which name it runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.execution import loading

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.workers import Bench

_MODEL = """
import json
import os
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x
"""
# As authors write it: the data file has the task's own name, ...
DERIVED = (
    _MODEL
    + """
def get_input_groups():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        os.path.basename(__file__).replace(".py", ".json"))
    with open(path) as file:
        return [[torch.ones(n)] for n in json.load(file)]
"""
)
# ... or a name that stands in the file, ...
HARD_CODED = (
    _MODEL
    + """
def get_input_groups():
    with open(os.path.join(os.path.dirname(__file__), "op.json")) as file:
        return [[torch.ones(n)] for n in json.load(file)]
"""
)
# ... or is looked for in the current folder.
RELATIVE = (
    _MODEL
    + """
def get_input_groups():
    with open("op.json") as file:
        return [[torch.ones(n)] for n in json.load(file)]
"""
)


def _pair(folder: Path, source: str) -> Pair:
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair("op", "ascend_impl", folder / "op_torch.py", folder / "op_triton_ascend_impl.py")
    pair.task.write_text(source)
    return pair


def _listed(bench: Bench, pair: Pair) -> Any:
    """Return the shapes of a task's inputs as listed, or the error; the reference must agree."""
    listing = bench.ask(bench.ready("describe", pair), {"op": "describe", "fake": True}).message
    reference = bench.ready("reference", pair)
    first = bench.ask(reference, {"op": "inputs", "case_idx": 1}).message
    if "error" in listing:
        assert first["error"]["type"] == listing["error"]["type"]
        return listing["error"]["message"]
    described = [case["input_desc"] for case in listing["cases"]]
    if described:
        assert first["input_desc"] == described[0]
    return [desc[0]["shape"][0] for desc in described]


@pytest.mark.parametrize("source", [DERIVED, HARD_CODED, RELATIVE], ids=["own", "fixed", "cwd"])
def test_data_file_beside_the_task(bench: Bench, tmp_path: Path, source: str) -> None:
    pair = _pair(tmp_path, source)
    (tmp_path / "op.json").write_text("[3, 4]")
    assert _listed(bench, pair) == [3, 4]


def test_data_file_of_the_tasks_own_name(bench: Bench, tmp_path: Path) -> None:
    pair = _pair(tmp_path, DERIVED)
    (tmp_path / "op_torch.json").write_text("[5]")
    assert _listed(bench, pair) == [5]
    # It comes before the one of the operator's name.
    (tmp_path / "op.json").write_text("[6]")
    assert _listed(bench, pair) == [5]


@pytest.mark.parametrize("source", [DERIVED, HARD_CODED], ids=["own", "fixed"])
@pytest.mark.parametrize("levels", [1, 2, 4])
def test_data_file_of_the_original_task_above(
    bench: Bench, tmp_path: Path, levels: int, source: str
) -> None:
    (tmp_path / "op.json").write_text("[7, 8]")
    (tmp_path / "op.py").write_text("")
    pair = _pair(tmp_path.joinpath(*"abcd"[:levels]), source)
    assert _listed(bench, pair) == [7, 8]


def test_data_file_too_far_above_is_not_found(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "op.json").write_text("[7]")
    (tmp_path / "op.py").write_text("")
    pair = _pair(tmp_path.joinpath(*"abcde"), DERIVED)
    assert "op_torch.json" in _listed(bench, pair)


def test_data_file_above_without_the_original_task_is_somebody_elses(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "op.json").write_text("[7]")
    assert "op_torch.json" in _listed(bench, _pair(tmp_path / "a", DERIVED))


def test_nearest_data_file_wins(tmp_path: Path) -> None:
    task = _pair(tmp_path / "a" / "b", DERIVED).task
    for folder in (tmp_path, tmp_path / "a"):
        (folder / "op.json").write_text("[]")
        (folder / "op.py").write_text("")
    assert loading.data_file(task, "op") == tmp_path / "a" / "op.json"
    assert loading.apparent_file(task, "op") == tmp_path / "a" / "op.py"
    (task.parent / "op.json").write_text("[]")
    assert loading.apparent_file(task, "op") == task.parent / "op.py"
    (task.parent / "op_torch.json").write_text("[]")
    assert loading.apparent_file(task, "op") is None


def test_task_without_data_files_keeps_its_name(bench: Bench, tmp_path: Path) -> None:
    source = _MODEL + "def get_inputs():\n    return [torch.ones(len(os.path.basename(__file__)))]"
    assert _listed(bench, _pair(tmp_path, source)) == [len("op_torch.py")]


def _spec(*sizes: int) -> str:
    lines = [
        {"inputs": [{"name": "x", "type": "tensor", "dtype": "float32", "shape": [size]}]}
        for size in sizes
    ]
    return "\n".join(json.dumps(line) for line in lines)


def test_case_file_makes_the_inputs_of_a_task_that_has_no_function(
    bench: Bench, tmp_path: Path
) -> None:
    pair = _pair(tmp_path, _MODEL)
    (tmp_path / "op.json").write_text(_spec(2, 3))
    assert _listed(bench, pair) == [2, 3]
    (tmp_path / "op_torch.json").write_text(_spec(9))
    assert _listed(bench, pair) == [9]


def test_groups_come_before_single_inputs_and_the_case_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "op.json").write_text(_spec(2))
    single = _MODEL + "def get_inputs():\n    return [torch.ones(5)]\n"
    assert _listed(bench, _pair(tmp_path, single)) == [5]
    both = single + "def get_input_groups():\n    return [[torch.ones(6)], [torch.ones(7)]]\n"
    assert _listed(bench, _pair(tmp_path, both)) == [6, 7]


def test_task_without_any_inputs_says_what_it_could_have(bench: Bench, tmp_path: Path) -> None:
    message = _listed(bench, _pair(tmp_path, _MODEL))
    for word in ("get_input_groups()", "get_inputs()", "op_torch.json", "op.json"):
        assert word in message


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("5", "group 1 of get_input_groups() must be a list or tuple"),
        ("'ab'", "group 1"),
        ("{1: torch.ones(2)}", "group 1"),
        ("None", "not NoneType"),
    ],
)
def test_group_of_a_wrong_form_is_described(
    bench: Bench, tmp_path: Path, returned: str, words: str
) -> None:
    source = f"{_MODEL}def get_input_groups():\n    return [{returned}]\n"
    assert words in _listed(bench, _pair(tmp_path, source))


def test_task_without_a_model_says_what_it_defines(bench: Bench, tmp_path: Path) -> None:
    source = _MODEL.replace("class Model", "class Net") + "def get_inputs():\n    return []\n"
    message = _listed(bench, _pair(tmp_path, source))
    assert "has no class `Model`" in message
    assert "Net" in message

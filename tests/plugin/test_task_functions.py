"""A task's input functions that are not what they should be: named by function, line and form."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution import task_faults
from pytest_tritonverify.execution.task import Task, TaskError
from tests.support.pairs import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Runner

MODEL = """\
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x
"""


def complaint(folder: Path, functions: str) -> tuple[str, tuple[str, int] | None]:
    path = folder / "scale_torch.py"
    path.write_text(MODEL + textwrap.dedent(functions))
    with pytest.raises(TaskError) as info:
        Task(path, "scale").input_groups()
    return str(info.value), info.value.place


@pytest.mark.parametrize(
    ("functions", "line", "words"),
    [
        (
            "get_input_groups = [[torch.ones(3)]]\n",
            9,
            (
                "get_input_groups (scale_torch.py, line 9) must be a function, but it is a list of "
                "1; write `def get_input_groups():`"
            ),
        ),
        (
            "\ndef get_input_groups():\n    groups = [[torch.ones(3)]]\n",
            10,
            (
                "get_input_groups (scale_torch.py, line 10) returned None instead of a list with "
                "one list of arguments for each case, as [[x], [y]]; is its `return` missing?"
            ),
        ),
        (
            "def get_inputs():\n    inputs = [torch.ones(3)]\n",
            9,
            (
                "get_inputs (scale_torch.py, line 9) returned None instead of a list of the "
                "arguments of one case, as [x, y]; is its `return` missing?"
            ),
        ),
        (
            "def get_inputs():\n    return [[torch.ones(k)] for k in range(1, 5)]\n",
            9,
            (
                "get_inputs (scale_torch.py, line 9) returned 4 lists, but it makes the arguments "
                "of one case, and Model.forward(self, x) can't be called with 4 of them; if every "
                "list is a case, call the function get_input_groups"
            ),
        ),
        (
            "def get_input_groups():\n    return {'x': [1]}\n",
            9,
            "get_input_groups (scale_torch.py, line 9) returned a dict of 1 instead of a list",
        ),
        (
            "def get_input_groups():\n    return ['x']\n",
            9,
            "group 1 of get_input_groups() must be a list or tuple",
        ),
    ],
)
def test_the_function_its_line_and_the_expected_form_are_named(
    tmp_path: Path, functions: str, line: int, words: str
) -> None:
    text, place = complaint(tmp_path, functions)
    assert text.startswith(words)
    assert place == (str(tmp_path / "scale_torch.py"), line)


@pytest.mark.parametrize(
    "functions",
    [
        # A list of lists may be what one case's arguments are.
        "def get_inputs():\n    return [[torch.ones(2), torch.ones(3)]]\n",
        "def get_input_groups():\n    yield [torch.ones(2)]\n",
        "def get_input_groups():\n    return ([torch.ones(2)],)\n",
    ],
)
def test_forms_that_are_in_use_are_taken(tmp_path: Path, functions: str) -> None:
    path = tmp_path / "scale_torch.py"
    path.write_text(MODEL + functions)
    assert len(Task(path, "scale").input_groups()) == 1


def test_definitions_are_found_wherever_the_module_makes_them(tmp_path: Path) -> None:
    path = tmp_path / "a_torch.py"
    path.write_text("x: int = 1\ndef f():\n    y = 2\nf = 3\nasync def g(): pass\n")
    lines = {name: task_faults.line_of(path, name) for name in "xfgy"}
    assert lines == {"x": 1, "f": 4, "g": 5, "y": None}
    path.write_text("def f(:")
    assert task_faults.line_of(path, "f") is None


def test_failures_of_the_task_stand_at_the_task(runner: Runner) -> None:
    good = write_pair(runner.path / "both", cases=1)
    with good.task.open("a") as stream:
        stream.write("\n\ndef get_inputs():\n    return []\n")
    empty = write_pair(runner.path / "empty", cases=0)
    many = write_pair(runner.path / "many", cases=1)
    many.task.write_text(many.task.read_text().replace("[[torch", "[[1, 2, torch"))
    line = 1 + many.task.read_text().splitlines().index("class Model(torch.nn.Module):")

    run = runner.run("--verify-dir=.")

    # What is raised in PyTorch's own code, called by the judge, has no line of the user's.
    assert f"many/double_torch.py:{line}: TypeError" in run.out
    assert "empty/double_torch.py:11: NoCases" in run.out
    assert "get_input_groups (double_torch.py, line 11) returned no group instead of" in run.out
    assert empty.result()["total_cases"] == 0
    warning = "warning: both/double_torch.py defines get_inputs() too, which is not used"
    assert run.out.count(warning) == 1

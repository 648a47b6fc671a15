"""`validate-task`: what is no task is found by its line, and every case is really run."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.workflow import task_source

if TYPE_CHECKING:
    from tests.workflow.conftest import Commands

MULTI = '''\
"""Element-wise sums."""

import json
import os

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, scale):
        if x.shape[0] == 7:
            raise RuntimeError("no seven")
        return x * scale


def get_input_groups():
    path = os.path.join(os.path.dirname(__file__), "scale.json")
    with open(path) as stream:
        cases = [json.loads(line) for line in stream if line.strip()]
    return [[torch.randn(c["inputs"][0]["shape"]), c["inputs"][1]["value"]] for c in cases]


def get_init_inputs():
    return []
'''


ENDS = "def get_inputs(): ...\ndef get_init_inputs(): ...\n"


def lines(*rows: int) -> str:
    return "".join(
        json.dumps(
            {
                "inputs": [
                    {"name": "x", "type": "tensor", "dtype": "float32", "shape": [n, 4]},
                    {"name": "scale", "type": "attr", "dtype": "float", "value": 2.0},
                ]
            }
        )
        + "\n"
        for n in rows
    )


GOOD = MULTI.replace('"scale.json"', 'os.path.basename(__file__)[:-3] + ".json"')


def write(folder: Path, source: str, data: str | None = None, name: str = "scale") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    if data is not None:
        path.with_suffix(".json").write_text(data, encoding="utf-8")
    return path


def found(path: Path) -> set[tuple[str, int | None]]:
    checked = task_source.check(path, path.read_bytes())
    return {(finding.code, finding.line) for finding in checked.findings}


@pytest.mark.usefixtures("shared_host")
def test_every_case_is_run_and_counted(tmp_path: Path, commands: Commands) -> None:
    source = write(tmp_path / "source", MULTI, lines(1, 2, 3))
    copied = shutil.copytree(tmp_path / "source", tmp_path / "copy") / "scale.py"
    code, report = commands.json("validate-task", copied, "--source", source, "--device", "cpu")
    assert (code, report["valid"], report["findings"]) == (0, True, [])
    assert (report["cases_tested"], report["cases_passed"]) == (3, 3)
    assert report["static_check"]["missing"] == []
    assert set(report["static_check"]["found"]) == {
        "Model",
        "forward",
        "get_input_groups",
        "get_init_inputs",
    }


@pytest.mark.usefixtures("shared_host")
def test_a_case_that_fails_is_told_with_its_line(tmp_path: Path, commands: Commands) -> None:
    path = write(tmp_path, MULTI, lines(1, 7, 3, 7))
    code, report = commands.json("validate-task", path, "--device", "cpu")
    assert (code, report["valid"]) == (1, False)
    assert (report["cases_tested"], report["cases_passed"]) == (4, 2)
    assert [(f["line"], f["message"]) for f in report["findings"]] == [
        (13, "case 2 of 4: RuntimeError: no seven"),
        (13, "case 4 of 4: RuntimeError: no seven"),
    ]
    assert report["runtime_check"]["error"] == "case 2 of 4: RuntimeError: no seven"
    answer = commands.run("validate-task", path, "--static-only")
    assert answer.code == 0
    assert answer.out.startswith("[VALID] ")


@pytest.mark.usefixtures("shared_host")
@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("import os; os._exit(0)", "WorkerCrash: the process ended"),
        ("import time; time.sleep(600)", "VerifyTimeout: 验证超时（3秒）"),
    ],
)
def test_a_reference_that_leaves_or_hangs_is_told(
    tmp_path: Path, commands: Commands, behaviour: str, message: str
) -> None:
    source = MULTI.replace('raise RuntimeError("no seven")', behaviour)
    path = write(tmp_path, source, lines(1, 7, 2))
    arguments = ("--device", "cpu", "--timeout", "3" if "sleep" in behaviour else "300")
    code, report = commands.json("validate-task", path, *arguments)
    assert code == 1
    assert message in report["findings"][0]["message"]
    # A slow machine may not get through the first case in the time.
    assert report["cases_passed"] in ((0, 1) if "sleep" in behaviour else (2,))


@pytest.mark.usefixtures("shared_host")
def test_cases_that_get_lost_are_noticed(tmp_path: Path, commands: Commands) -> None:
    cut = MULTI.replace("if line.strip()]", "if line.strip()][:1]")
    _, report = commands.json(
        "validate-task", write(tmp_path, cut, lines(1, 2, 3)), "--device", "cpu"
    )
    (finding,) = report["findings"]
    assert (finding["code"], finding["severity"]) == ("cases_lost", "warning")
    assert "holds 3 cases, and the task makes 1" in finding["message"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(:\n", {("syntax", 1)}),
        ("x = 1\n", {("no_model", None), ("no_init_inputs", None), ("no_inputs", None)}),
        (
            "class Model:\n    pass\n" + ENDS,
            {("no_module", 1), ("no_forward", 1)},
        ),
        (
            "import torch\nclass B(torch.nn.Module):\n    forward = 1\nclass Model(B):\n    pass\n"
            + ENDS,
            set(),
        ),
        (
            GOOD + "\n\nif __name__ == '__main__':\n    print(Model())\n",
            {("test_driver", 28)},
        ),
        (GOOD + "\n\ndef test_model():\n    pass\n", {("test_driver", 28)}),
        (GOOD + "\nprint(get_init_inputs())\n", {("test_driver", 27)}),
        (GOOD + "\nget_init_inputs()\n", {("test_driver", 27)}),
        (GOOD + "\nimport pytest\n", {("test_driver", 27)}),
        (GOOD + "\ntorch.manual_seed(0)\n", set()),
        (MULTI, {("no_data_file", 18)}),
    ],
)
def test_what_the_source_shows(
    tmp_path: Path, source: str, expected: set[tuple[str, int | None]]
) -> None:
    assert found(write(tmp_path, source)) == expected


def test_a_file_that_is_no_task_is_not_run(tmp_path: Path, commands: Commands) -> None:
    path = write(tmp_path, "open('ran', 'w')\n")
    code, report = commands.json("validate-task", path)
    assert (code, report["runtime_check"]) == (1, None)
    assert report["suggestion"]
    assert not (tmp_path / "ran").exists()


def test_data_of_another_name_is_a_warning_and_broken_lines_are_errors(tmp_path: Path) -> None:
    path = write(tmp_path, MULTI, lines(1), name="other")
    (tmp_path / "scale.json").write_text(lines(1), encoding="utf-8")
    assert found(path) == {("data_file_name", 18)}
    path.with_suffix(".json").write_text(lines(1) + "{\n" + lines(2), encoding="utf-8")
    assert found(path) == {("data_file_name", 18), ("data_file", 2)}


def test_copies_must_be_exact(tmp_path: Path, commands: Commands) -> None:
    source = write(tmp_path / "source", MULTI, lines(1, 2))
    path = write(tmp_path / "copy", MULTI.replace("x * scale", "x * 2.0"), lines(1))
    code, report = commands.json("validate-task", path, "--source", source, "--static-only")
    assert code == 1
    assert [(f["code"], f["file"], f["line"]) for f in report["findings"]] == [
        ("not_identical", "scale.py", 14),
        ("not_identical", "scale.json", 2),
    ]
    path = write(tmp_path / "lost", GOOD)
    source.write_text(GOOD, encoding="utf-8")
    _, report = commands.json("validate-task", path, "--source", source, "--static-only")
    assert [f["code"] for f in report["findings"]] == ["no_data_file"]


@pytest.mark.parametrize("pair", ["softmax", "swiglu", "layer_norm", "quantize"])
def test_tasks_of_the_examples_pass_the_static_half(pair: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / pair
    (path,) = folder.glob("*_torch.py")
    assert {code for code, _ in found(path)} <= {"data_file_name"}


def test_forms_of_tasks_are_told_and_copied_byte_for_byte(
    tmp_path: Path, commands: Commands
) -> None:
    source = write(tmp_path / "source", MULTI, lines(1, 2))
    work = tmp_path / "work"
    code, built = commands.json("build-task", source, "--output", work)
    assert (code, built["mode"], built["gpu_mode"]) == (0, "multi_case", False)
    assert (work / "scale.py").read_bytes() == source.read_bytes()
    assert (work / "scale.json").read_bytes() == source.with_suffix(".json").read_bytes()

    single = MULTI.partition("def get_input_groups")[0] + (
        "def get_inputs():\n    return [torch.ones(2), 2.0]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    path = write(tmp_path / "single", single, name="one")
    code, built = commands.json("build-task", path, "--output", work)
    assert (code, built["mode"]) == (0, "single_case")
    assert (work / "one.py").read_bytes() == path.read_bytes()
    assert built["files"] == [str(work / "one.py")]

"""The page on workflows: its commands print what it says, and it names every module and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from pytest_tritonverify.workflow import command
from tests.support.workdirs import TASK, Builder, record
from tests.workflow.conftest import schema
from tests.workflow.test_workflow_gpu import CSV, KERNEL

if TYPE_CHECKING:
    from tests.workflow.conftest import Commands

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "workflow.md").read_text("utf-8")
PROMPT = "$ python -m pytest_tritonverify "

BROKEN = '''\
"""A task that lacks something, and has something too many."""

import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    return [torch.ones(2)]

if __name__ == "__main__":
    print(Model())
'''


def examples() -> list[tuple[str, str]]:
    """Return the page's commands with what they print."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    found = []
    for block in blocks:
        first, _, rest = block.partition("\n")
        assert first.startswith(PROMPT)
        found.append((first.removeprefix(PROMPT), rest))
    return found


def prepare(folder: Path) -> None:
    """Lay out what the page's commands name."""
    kernels = folder / "kernels"
    kernels.mkdir()
    (kernels / "softmax.py").write_text(_single(), encoding="utf-8")
    (kernels / "broken.py").write_text(BROKEN, encoding="utf-8")
    gpu = folder / "gpu_kernels"
    gpu.mkdir()
    (gpu / "rotary.py").write_text(KERNEL, encoding="utf-8")
    (gpu / "vllm_gpu_perf.csv").write_text(CSV, encoding="utf-8")
    data = {"x_ptr": torch.ones(8), "out_ptr": torch.zeros(8), "HEAD_DIM": 8}
    torch.save({"input_data": data, "gpu_output": torch.ones(8)}, gpu / "rotary.pt")


def _single() -> str:
    head, _, tail = TASK.partition("def get_input_groups")
    end = tail.partition("\n\n\n")[2]
    return f"{head}def get_inputs():\n    return [torch.randn(3, 8)]\n\n\n{end}"


def fill(folder: Path) -> None:
    """Add the rounds that the page speaks of to its work directories."""
    work = Builder(folder / "op_softmax")
    text = "AccuracyError: 3 of {} elements differ\nHint: does the last block need a mask?"
    failing = [record(k, "AccuracyError", text.format(8 * k)) for k in (2, 3)]
    work.iteration(0, [record(1), *failing])
    work.optimisation(0, work.iteration(1))
    violated = Builder(folder / "op_violated")
    folder_0 = violated.iteration(0, [record(1), record(2, "AccuracyError"), record(3)])
    copy = violated.output / "generated_code.py"
    copy.write_bytes((folder_0 / "generated_code.py").read_bytes())


def matches(shown: str, printed: str) -> bool:
    """Compare output with that of the page, where `...` stands for anything within a line."""
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, printed) is not None


@pytest.mark.usefixtures("shared_host")
def test_the_examples_print_what_the_page_says(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    filled = False
    for line, shown in examples():
        name = line.split()[0]
        if name == "explain" and not filled:
            fill(tmp_path)
            filled = True
        more = ["--no-fingerprint"] if name == "gate" else []
        more += ["--device", "cpu"] if name == "validate-task" else []
        answer = commands.run(*line.split(), *more)
        assert matches(shown, answer.out), f"{line}\n{answer.out}{answer.err}"
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    exec(source, {})  # noqa: S102 - the page's own lines


def test_every_command_has_its_section_and_its_options() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    command.register(commands)
    assert set(re.findall(r"^## ([a-z]+(?:-[a-z]+)?)$", PAGE, re.MULTILINE)) == set(
        commands.choices
    )
    options = {
        option
        for one in commands.choices.values()
        for action in one._actions
        for option in action.option_strings
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", PAGE))
    others = {"--skip_framework", "--framework_latency_ms"}
    assert named - others <= options


def test_every_module_is_named() -> None:
    modules = {
        path.name
        for path in (ROOT / "pytest_tritonverify" / "workflow").glob("*.py")
        if not path.name.startswith("__")
    }
    assert set(re.findall(r"`(\w+\.py)`", PAGE.partition("## Modules")[2])) == modules


def test_every_schema_is_one_and_none_is_left_unused() -> None:
    names = {
        path.name.removesuffix(".schema.json")
        for path in (ROOT / "pytest_tritonverify" / "workflow" / "schemas").iterdir()
    }
    assert names == {
        *("summary", "explain", "decide", "gate", "validate_task", "build_task", "batch")
    }
    for name in names:
        found = schema(name)
        assert found["title"]


def test_the_figures_that_the_page_quotes_are_right() -> None:
    speedups = (1.82, 2.15, 2.31)
    mean = (speedups[0] * speedups[1] * speedups[2]) ** (1 / 3)
    assert f"{mean:.4f}" == "2.0831"
    assert f"{1.2345 / 0.5678:.4f}" != "2.1746"
    assert f"{0.42 / 0.002072:.1f}" == "202.7"

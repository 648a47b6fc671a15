"""An implementation can't read the task that it is judged by, and is told so."""

from __future__ import annotations

import py_compile
from typing import TYPE_CHECKING

import pytest

from tests.support.workers import attack

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from tests.support.workers import Bench

TOP = """
import importlib, importlib.machinery, importlib.util, io, pathlib, runpy, shutil
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TASK = os.path.join(HERE, "op_torch.py")
LINK = os.path.join(HERE, "harmless.txt")

def load(loader):
    spec = importlib.util.spec_from_loader("stolen", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)

def renamed():
    os.rename(TASK, LINK)
    try:
        open(LINK).close()
    finally:
        os.rename(LINK, TASK)

class Road(os.PathLike):
    def __fspath__(self):
        return TASK
"""
ROADS = [
    "import op_torch",
    "from op_torch import Model",
    "importlib.import_module('op_torch')",
    "__import__('op_torch')",
    "load(importlib.machinery.SourceFileLoader('stolen', TASK))",
    "runpy.run_path(TASK)",
    "exec(open(TASK).read())",
    "open(os.fsencode(TASK))",
    "open(Road())",
    "pathlib.Path(TASK).read_text()",
    "io.open_code(TASK)",
    "io.FileIO(TASK)",
    "io.FileIO(pathlib.Path(TASK))",
    "os.open(TASK, os.O_RDONLY)",
    "os.open(pathlib.Path(TASK), os.O_RDONLY)",
    "np.fromfile(TASK, np.uint8)",
    "shutil.copy(TASK, LINK)",
    "open(HERE + '//./op_torch.py')",
    "open(HERE + '/../' + os.path.basename(HERE) + '/op_torch.py')",
    "open('/proc/self/root' + TASK)",
    "os.chdir(HERE); open('op_torch.py')",
    "os.open('op_torch.py', os.O_RDONLY, dir_fd=os.open(HERE, os.O_RDONLY))",
    "os.symlink(TASK, LINK); open(LINK)",
    "os.symlink('op_torch.py', LINK); open(LINK)",
    "os.link(TASK, LINK); open(LINK)",
    "renamed()",
]


def _refused(bench: Bench, pair: Pair) -> bool:
    """Say whether the implementation was refused in so many words."""
    (sides,) = bench.both(pair)
    error = sides.actual.message.get("error", {})
    if not error:
        return False
    assert error["type"] == "PermissionError", error
    assert "the implementation may not read op_torch.py" in error["message"]
    assert error["file"] == str(pair.implementation)
    return True


@pytest.mark.parametrize("road", ROADS)
def test_no_road_leads_to_the_task(bench: Bench, tmp_path: Path, road: str) -> None:
    assert _refused(bench, attack(tmp_path, road, TOP))


def test_task_is_out_of_reach_at_import_too(bench: Bench, tmp_path: Path) -> None:
    pair = attack(tmp_path, "pass", f"{TOP}\nimport op_torch")
    (record,) = bench.verdict(pair)
    assert (record.error_type, record.phase) == ("PermissionError", "import")
    assert record.error_msg is not None
    assert "it must compute the result itself, without the reference" in record.error_msg


@pytest.mark.parametrize("where", ["", "opt-1", "beside"])
@pytest.mark.parametrize("source_stays", [True, False])
def test_compiled_task_is_out_of_reach_too(
    bench: Bench, tmp_path: Path, where: str, source_stays: bool
) -> None:
    pair = attack(tmp_path, "pass")
    compiled = py_compile.compile(
        str(pair.task),
        cfile=str(tmp_path / "op_torch.pyc") if where == "beside" else None,
        optimize=1 if where == "opt-1" else 0,
    )
    road = f"load(importlib.machinery.SourcelessFileLoader('stolen', {compiled!r}))"
    attack(tmp_path, road, TOP)
    assert _refused(bench, pair)
    attack(tmp_path, f"open({compiled!r}, 'rb')", TOP)
    assert _refused(bench, pair)
    if where == "beside" and source_stays:
        return
    attack(tmp_path, "import op_torch", TOP)
    assert _refused(bench, pair)


@pytest.mark.parametrize(
    "road",
    [
        "open(os.path.join(HERE, 'op.json')).close()",
        "open(os.path.join(HERE, 'elsewhere', 'op_torch.py')).close()",
        "open(__file__).close()",
        "open(os.path.join(HERE, 'my_op_torch.py'), 'w').close()",
        "os.stat(TASK)",
        "import inspect; inspect.getsource(ModelNew)",
        "os.open(HERE, os.O_RDONLY)",
    ],
)
def test_other_files_can_be_read(bench: Bench, tmp_path: Path, road: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "op_torch.py").write_text("")
    (tmp_path / "op.json").write_text("[]")
    assert not _refused(bench, attack(tmp_path, road, TOP))


def test_missing_file_is_still_a_missing_file(bench: Bench, tmp_path: Path) -> None:
    (sides,) = bench.both(attack(tmp_path, "open('/nowhere/op_torch.txt')", TOP))
    assert sides.actual.message["error"]["type"] == "FileNotFoundError"


def test_guard_outlives_the_attempt_to_read(bench: Bench, tmp_path: Path) -> None:
    forward = "try: open(TASK)\nexcept PermissionError: pass\nopen(TASK)"
    assert _refused(bench, attack(tmp_path, forward, TOP))

"""Run the idioms of each file once: the stand-in must not come into pytest's own process."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

IDIOMS = Path(__file__).parents[1] / "cases" / "standin"
KINDS = ("cuda", "npu")


@functools.cache
def results(kind: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(IDIOMS / "run.py"), kind, str(IDIOMS / f"on_{kind}.py")],
        # As in a run on the CPU: no GPU of this machine is to be seen.
        env={
            **os.environ,
            "TRITON_INTERPRET": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "CUDA_VISIBLE_DEVICES": "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        # For all of them, rather than a run for each.
        return dict.fromkeys(names(kind), done.stderr)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def names(kind: str) -> list[str]:
    tree = ast.parse((IDIOMS / f"on_{kind}.py").read_text("utf-8"))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("idiom_")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "idiom" in metafunc.fixturenames:
        found = [(kind, name) for kind in KINDS for name in names(kind)]
        ids = [f"{kind}-{name.removeprefix('idiom_')}" for kind, name in found]
        values = [functools.partial(_result, kind, name) for kind, name in found]
        metafunc.parametrize("idiom", values, ids=ids)


def _result(kind: str, name: str) -> str:
    return results(kind)[name]

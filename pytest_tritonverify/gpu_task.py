"""The task file of GPU-kernel mode: stored inputs, and the GPU's stored outputs as the golden."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from pytest_tritonverify import figures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REFERENCE_NAME = "GPU_REFERENCE_MS"

_TEMPLATE = '''\
"""Task `{op}`: what the GPU kernel returned for the inputs in {op}.pt is the reference."""

import functools
import hashlib
from pathlib import Path

import torch

# Milliseconds of the GPU kernel; None where they are not known.
{reference_name} = {reference}
PT_SHA256 = "{digest}"
INPUTS = {inputs}


@functools.lru_cache(maxsize=None)
def _stored():
    here = Path(__file__).resolve()
    places = [folder / "{op}.pt" for folder in list(here.parents)[:5]]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"there is no {op}.pt in {{here.parent}} or four folders above it")
    if hashlib.sha256(found.read_bytes()).hexdigest() != PT_SHA256:
        raise ValueError(f"{{found}} is not the file that this task was made from: make it again")
    return torch.load(found, map_location="cpu", weights_only=True)


class Model(torch.nn.Module):
    def forward(self, *inputs):
        return _stored()["gpu_output"]


def get_inputs():
    stored = _stored()["input_data"]
    return [stored[name] for name in INPUTS]


def get_init_inputs():
    return []
'''


def source(op: str, inputs: Sequence[str | int], digest: str, reference_ms: float | None) -> str:
    """Return the text of a task.

    Args:
        op: the operator.
        inputs: keys of `input_data`, in the order in which `forward` takes them.
        digest: sha256 of `<op>.pt`, so that a verdict on the task is one on the data, too.
        reference_ms: the GPU's time in milliseconds.
    """
    return _TEMPLATE.format(
        op=op,
        reference_name=REFERENCE_NAME,
        reference=repr(reference_ms),
        digest=digest,
        inputs=ast.unparse(ast.parse(repr(list(inputs)))),
    )


def input_order(parameters: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the keys of `input_data` as `forward` takes them.

    In the order of the kernel's parameters; what the kernel has no parameter for comes last.

    Args:
        parameters: the kernel's parameters.
        keys: the keys that are stored.
    """
    first = [name for name in parameters if name in keys]
    return [*first, *(name for name in keys if name not in first)]


def reference_of(task: Path) -> float | None:
    """Return the GPU's time in milliseconds that a task made here names; nothing is run.

    Args:
        task: a task file, under whatever name it was copied.

    Returns:
        None for any other task, and where the time is not known.
    """
    found = _constants(task)
    return figures.positive(found.get(REFERENCE_NAME)) if "PT_SHA256" in found else None


def returns_stored_output(task: Path) -> bool:
    """Say whether a task was made here: its model computes nothing, so its time means nothing."""
    found = _constants(task)
    return REFERENCE_NAME in found and "PT_SHA256" in found


def benchmark_options(reference_ms: float | None) -> list[str]:
    """Return the benchmark's options by which it takes the GPU's time for the reference's."""
    if reference_ms is None:
        return []
    return ["--skip_framework", "--framework_latency_ms", repr(reference_ms)]


def _constants(task: Path) -> dict[str, object]:
    try:
        source = task.read_bytes()
        if REFERENCE_NAME.encode() not in source:
            # Any other task, which may be long.
            return {}
        with warnings.catch_warnings():
            # Of the user's code.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

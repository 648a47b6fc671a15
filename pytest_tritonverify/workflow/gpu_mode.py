"""GPU-kernel mode: by which of the documented rules a description file enters it, and its files."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.workflow import files, gpu_perf

if TYPE_CHECKING:
    from pathlib import Path

# The mode's own name, and that of the collection of such kernels.
_PATH = re.compile(r"gpu[\s_-]*kernel|TritonNPUKernelBench", re.IGNORECASE)
_OPERATOR = re.compile(r"[\w.-]+")
_ADVICE = "give a description file (.py)"


@dataclass(frozen=True)
class GpuMode:
    """A description file in GPU-kernel mode.

    Attributes:
        rules: the rules that apply, by number, with what they saw.
        op_name: the operator.
        pt_file: its inputs, and outputs where they are stored.
        reference: the GPU's time; None where there is none.
        warning: why there is none.
    """

    rules: dict[int, str]
    op_name: str
    pt_file: Path
    reference: gpu_perf.Reference | None
    warning: str | None


def rules_of(
    path: Path, source: bytes, pt_file: Path | None = None, gpu_perf_csv: Path | None = None
) -> dict[int, str]:
    """Return which of the three rules put a description file into GPU-kernel mode.

    1. Its path holds the mode's name.
    2. It defines a function that `@triton.jit` decorates.
    3. The user has named the GPU's data or times.

    Args:
        path: the file, as the user has named it.
        source: its content.
        pt_file: the data, where the user has named it.
        gpu_perf_csv: the times, likewise.
    """
    found = {}
    match = _PATH.search(str(path))
    if match:
        found[1] = f"the path holds `{match[0]}`"
    line = _jit_line(source)
    if line is not None:
        found[2] = f"line {line} has @triton.jit"
    named = [n for n, given in (("pt_file", pt_file), ("gpu_perf_csv", gpu_perf_csv)) if given]
    if named:
        found[3] = f"{' and '.join(named)} given"
    return found


def detect(
    path: Path, pt_file: Path | None = None, gpu_perf_csv: Path | None = None
) -> GpuMode | None:
    """Return the files of a description file in GPU-kernel mode, None for any other task.

    Args:
        path: the file, as the user has named it.
        pt_file: the inputs; by default `<op>.pt` beside the file.
        gpu_perf_csv: the GPU's times; by default looked for in the folder and three above it.

    Raises:
        files.FileError: the file can't be read, or there is no `<op>.pt`.
    """
    source = files.read_bytes(path, _ADVICE)
    rules = rules_of(path, source, pt_file, gpu_perf_csv)
    if not rules:
        return None
    folder = path.resolve().parent
    if not _OPERATOR.fullmatch(path.stem):
        raise files.FileError(f"{path}: name the file like an operator: letters, digits, _ and -")
    data = pt_file or folder / f"{path.stem}.pt"
    if not data.is_file():
        why = "; ".join(rules.values())
        raise files.FileError(
            f"there is no {data}: GPU-kernel mode ({why}) needs it, so put a file of that name "
            "there (torch.save of a dict with input_data, and gpu_output where there is one) or "
            "name one with --pt-file; what is no GPU kernel belongs into a folder of another name",
            missing=True,
        )
    reference, warning = _reference(folder, path.stem, gpu_perf_csv)
    return GpuMode(rules, path.stem, data, reference, warning)


def _reference(
    folder: Path, op_name: str, given: Path | None
) -> tuple[gpu_perf.Reference | None, str | None]:
    if given is not None:
        # What the user has named must be usable.
        return gpu_perf.read(given, op_name), None
    found = gpu_perf.find(folder)
    if found is None:
        text = f"no {gpu_perf.FILE_NAME} in {folder} and {gpu_perf.LEVELS_UP} folders above it"
        return None, f"{gpu_perf.NOT_FOUND}: {text}"
    try:
        return gpu_perf.read(found, op_name), None
    except files.FileError as error:
        return None, f"{gpu_perf.NOT_FOUND}: {error}"


def _jit_line(source: bytes) -> int | None:
    """Return the line of the first `@triton.jit`, called or not; None where there is none."""
    try:
        with warnings.catch_warnings():
            # Of the user's code.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        match = re.search(rb"^[ \t]*@triton\.jit\b", source, re.MULTILINE)
        return source[: match.start()].count(b"\n") + 1 if match else None
    lines = [
        decorator.lineno
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for decorator in node.decorator_list
        if _is_jit(decorator)
    ]
    return min(lines, default=None)


def kernel_parameters(source: bytes, op_name: str) -> list[str]:
    """Return the parameters of the kernel that an operator's description file defines.

    Of several kernels it is the one of the operator's name, else the last one: helpers that a
    kernel calls stand before it.

    Args:
        source: the description file.
        op_name: the operator.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    kernels = {
        node.name: node.args
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list))
    }
    if not kernels:
        return []
    chosen = kernels.get(op_name) or list(kernels.values())[-1]
    return [arg.arg for arg in (*chosen.posonlyargs, *chosen.args, *chosen.kwonlyargs)]


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (
        isinstance(target, ast.Attribute)
        and target.attr == "jit"
        and isinstance(target.value, ast.Name)
        and target.value.id == "triton"
    )

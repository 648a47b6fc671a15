"""Which accelerator code asks for, by its source: nothing is imported or run.

What counts is what names a device in code: strings such as "cuda:0", attributes such as `.cuda` or
`is_npu`, modules such as torch_npu. Comments, messages and doc strings don't, nor does what a run
by this plugin never reaches: a `__main__` block, and the functions of an implementation's file
that make inputs.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CUDA = "cuda"
NPU = "npu"
OFF = "off"
AUTO = "auto"
CHOICES = (AUTO, NPU, CUDA, OFF)

_DEVICE = re.compile(r"(cuda|npu)(:\d*)?")
_TENSOR_TYPE = re.compile(r"torch\.(cuda|npu)\.\w+")
# Whether a tensor is on a GPU: code for an NPU asks that, too.
_QUESTION = "cuda?"
_ATTRIBUTES = {
    "cuda": CUDA,
    "is_cuda": _QUESTION,
    "is_npu": NPU,
    "npu": NPU,
    "multi_processor_count": CUDA,
    "get_autocast_gpu_dtype": CUDA,
    "cann": NPU,
    "ascend": NPU,
    "set_default_tensor_type": CUDA,
}
# Of the device's properties, as Triton's driver calls them.
_STRINGS = {
    "multiprocessor_count": CUDA,
    "max_num_regs": CUDA,
    "warpSize": CUDA,
    "num_vectorcore": NPU,
    "num_aicore": NPU,
    "vector_core_num": NPU,
    "cube_core_num": NPU,
}
_CORES = {
    **{name: kind for name, kind in _STRINGS.items() if "core" in name or "count" in name},
    "multi_processor_count": CUDA,
}
_NAMES = {
    "_cuda_getCurrentRawStream": CUDA,
    "_empty_strided_cuda": CUDA,
    "get_raw_stream": CUDA,
    "has_triton": CUDA,
    "pin_memory": CUDA,
}
_MODULES = {"torch_npu": NPU, "torch.npu": NPU, "torch.cuda": CUDA, "triton.backends.nvidia": CUDA}
# Something of a device, of whichever kind.
_ANY = ("get_active_torch_device", "get_device_module", "accelerator")
_ANY_KIND = "any"
_NEVER_RUN = ("get_inputs", "get_init_inputs", "get_input_groups", "main")
_IMPORTS_NPU = "import torch_npu"
_OF_ASCEND = tuple(
    f"triton.{part}."
    for part in ("language.extra.cann", "language.extra.ascend", "backends.ascend")
)
_DEEPEST = 3


def choose(option: str, task: Path, implementation: Path | None = None) -> str:
    """Return the stand-in for a run: "cuda", "npu" or "off".

    Both files may ask for either. Where both kinds are asked for, it is "npu" if torch_npu or the
    language of triton-ascend is imported for certain, if only the cores of an NPU are counted, or
    if nothing but `is_cuda` asks for CUDA, and "cuda" otherwise. Where nothing is asked for it is
    "off", and nothing will be changed for such code. Files that can't be read or parsed ask for
    nothing. Modules beside the files that they import count too.

    Args:
        option: what the user wants, one of `CHOICES`; all but "auto" are final.
        task: the task's file.
        implementation: the implementation's file; None for processes that run only the task.
    """
    if option != AUTO:
        return option
    asked = _asked_by(task, by_task=True)
    if implementation is not None:
        asked |= _asked_by(implementation, by_task=False)
    if NPU in asked and (CUDA not in asked or _IMPORTS_NPU in asked):
        return NPU
    return CUDA if asked else OFF


def _asked_by(path: Path, *, by_task: bool) -> set[str]:
    asked: set[str] = set()
    waiting, seen = [(path, 0)], {path}
    while waiting:
        file, depth = waiting.pop()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the file's own, for its author to see
                tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        left_out = () if by_task else _NEVER_RUN
        nodes = list(_reached(tree, left_out))
        asked.update(kind for node in nodes for kind in _asks(node))
        tried = {id(n) for node in nodes if isinstance(node, ast.Try) for n in ast.walk(node)}
        if any(_is_of_ascend(node) for node in nodes if id(node) not in tried):
            asked.add(_IMPORTS_NPU)
        if _counts_cores(nodes) == {NPU}:
            asked.add(_IMPORTS_NPU)
        if depth < _DEEPEST:
            for name in _imported(nodes):
                beside = path.parent / f"{name}.py"
                if beside not in seen and beside.is_file():
                    seen.add(beside)
                    waiting.append((beside, depth + 1))
    return asked


def _reached(tree: ast.AST, left_out: tuple[str, ...]) -> Iterator[ast.AST]:
    """Yield the nodes of a module without those that no run by this plugin comes to."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_main(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.FunctionDef) and node.name in left_out:
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Name) and part.id == "__name__"
        for part in (test.left, *test.comparators)
    )


def _asks(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield from _asks_text(node.value)
    elif isinstance(node, ast.Attribute):
        yield from _asks_attribute(node)
    elif isinstance(node, ast.Call):
        # Of a kernel, which is then asked for its registers.
        if _last_name(node.func) == "warmup" and any(k.arg == "grid" for k in node.keywords):
            yield _ANY_KIND
        if any(k.arg == "pin_memory" for k in node.keywords):
            yield CUDA
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from _asks_imports(node)
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _NAMES[node.id]


def _counts_cores(nodes: Iterable[ast.AST]) -> set[str]:
    """Return whose cores a grid is sized by."""
    names = [
        getattr(node, "attr", None) or getattr(node, "value", None)
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Constant))
    ]
    return {_CORES[name] for name in names if isinstance(name, str) and name in _CORES}


def _is_of_ascend(node: ast.AST) -> bool:
    """Whether an import is one of triton-ascend's own modules."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return False
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    start = f"{modules[0]}." if modules else ""
    modules += [start + alias.name for alias in node.names]
    return any(f"{module}.".startswith(_OF_ASCEND) for module in modules)


def _asks_attribute(node: ast.Attribute) -> Iterator[str]:
    for known in (_ATTRIBUTES, _STRINGS, _NAMES):
        if node.attr in known:
            yield known[node.attr]
    if node.attr in _ANY or (node.attr == "active" and _last_name(node.value) == "driver"):
        yield _ANY_KIND


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _asks_text(text: str) -> Iterator[str]:
    for pattern in (_DEVICE, _TENSOR_TYPE):
        match = pattern.fullmatch(text)
        if match:
            yield match[1]
    if text in _STRINGS:
        yield _STRINGS[text]


def _asks_imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name}" for name in names]
    for name in names:
        for module, kind in _MODULES.items():
            if name == module or name.startswith(f"{module}."):
                yield kind
                if module == "torch_npu":
                    yield _IMPORTS_NPU
        if ".cann" in name or ".ascend" in name:
            yield NPU
        last = name.rpartition(".")[2]
        if last in _NAMES:
            yield _NAMES[last]


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]

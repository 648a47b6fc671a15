"""Find pairs of task file and implementation by their names. Imports none of them."""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import itertools
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tritonverify import plain_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

TASK_SUFFIX = "_torch"
_SEPARATOR = "_triton_"
DEFAULT_VARIANT = "ascend_impl"


@dataclass(frozen=True, order=True)
class Pair:
    """A task file and an implementation of it.

    Attributes:
        op: the operator's name.
        variant: what follows `<op>_triton_` in the implementation's name.
        task: `<op>_torch.py`.
        implementation: `<op>_triton_<variant>.py`.
    """

    op: str
    variant: str
    task: Path
    implementation: Path

    @property
    def impl_name(self) -> str:
        """The `triton_impl_name` of the documented command lines: `triton_<variant>`."""
        return f"triton_{self.variant}"

    @property
    def label(self) -> str:
        """The pair's name for people."""
        return f"{self.op} ({self.impl_name})"


@dataclass(frozen=True)
class Selection:
    """Which pairs take part: fnmatch patterns, any of which may match; empty ones admit all."""

    ops: tuple[str, ...] = ()
    impls: tuple[str, ...] = ()

    def admits(self, pair: Pair) -> bool:
        """Say whether a pair takes part."""
        return _any_match(pair.op, self.ops) and _any_match(pair.impl_name, self.impls)


def _any_match(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def pair_of(implementation: Path) -> Pair | None:
    """Return the pair of an implementation file, or None where there is no task for it.

    Both `<op>` and `<variant>` may hold `_triton_`: the split for which a task file exists
    wins, the longest operator name first. A task that has implementations of its own is none,
    whatever lies beside it: `a_triton_torch.py` can be named like both.
    """
    if implementation.suffix != ".py":
        return None
    for op, variant in _splits(implementation.stem):
        task = implementation.with_name(f"{op}{TASK_SUFFIX}.py")
        if task.is_file():
            if is_task(implementation) and implementations_of(implementation):
                return None
            return Pair(op, variant, task, implementation)
    return None


def _splits(stem: str) -> list[tuple[str, str]]:
    found = []
    start = stem.rfind(_SEPARATOR)
    while start >= 0:
        op, variant = stem[:start], stem[start + len(_SEPARATOR) :]
        if op and variant:
            found.append((op, variant))
        start = stem.rfind(_SEPARATOR, 0, start + len(_SEPARATOR) - 1)
    return found


def is_task(path: Path) -> bool:
    """Say whether a file is named like a task."""
    return path.suffix == ".py" and path.stem.endswith(TASK_SUFFIX) and path.stem != TASK_SUFFIX


def implementations_of(task: Path) -> list[Pair]:
    """Return the pairs of a task file, sorted by variant."""
    op = task.stem.removesuffix(TASK_SUFFIX)
    found = task.parent.glob(f"{_escaped(op)}{_SEPARATOR}*.py")
    pairs = (pair_of(path) for path in found if path.is_file())
    return sorted(pair for pair in pairs if pair is not None and pair.task == task)


def pairs_in(folder: Path) -> Iterator[Pair]:
    """Yield the pairs that lie directly in a folder, in no particular order."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if _SEPARATOR in entry.name and entry.is_file():
                pair = pair_of(folder / entry.name)
                if pair is not None:
                    yield pair


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


@dataclass(frozen=True)
class Findings:
    """What a folder holds.

    Attributes:
        pairs: sorted by path.
        lonely: half pairs, each with a sentence on what is missing.
        intruders: files that pytest itself would import or obey.
    """

    pairs: tuple[Pair, ...]
    lonely: tuple[tuple[Path, str], ...]
    intruders: tuple[Path, ...]


def walk(folders: Collection[Path], ignored: Callable[[Path], bool]) -> Findings:
    """Search folders for pairs.

    Args:
        folders: absolute paths.
        ignored: says of a file or folder below them that pytest would not collect it.
    """
    files = sorted({p for folder in folders for p in _files(folder, ignored)})
    pairs = {path: pair for path in files if (pair := pair_of(path)) is not None}
    tasks = {pair.task for pair in pairs.values()}
    lonely: dict[Path, str] = {}
    intruders: list[Path] = []
    for path in files:
        if path.name == "conftest.py":
            intruders.append(path)
        elif path in pairs:
            continue
        elif is_task(path):
            # To look into the folder for each task would take long where there are many.
            if path not in tasks and not implementations_of(path):
                op = path.stem.removesuffix(TASK_SUFFIX)
                text = f"no implementation {op}{_SEPARATOR}<variant>.py beside it"
                lonely[path] = text + _meant(path, op)
        elif splits := _splits(path.stem):
            wanted = " or ".join(f"{op}{TASK_SUFFIX}.py" for op, _ in splits)
            lonely[path] = f"no task file {wanted} beside it" + _meant(path, splits[0][0])
    return Findings(tuple(pairs.values()), tuple(lonely.items()), tuple(intruders))


def _meant(path: Path, op: str) -> str:
    """Name a file beside a half pair whose name was perhaps meant to be the other half's.

    Args:
        path: the task or implementation that is alone.
        op: its operator.
    """
    wants_task = not is_task(path)
    for other in sorted(path.parent.glob("*.py")):
        words = other.stem.replace("-", "_").split("_")
        name = f"{op}{TASK_SUFFIX}.py"
        if not wants_task:
            rest = [word for word in words[op.count("_") + 1 :] if word.lower() != "triton"]
            name = f"{op}{_SEPARATOR}{'_'.join(rest) or DEFAULT_VARIANT}.py"
        marked = wants_task or any(word.lower() == "triton" for word in words)
        stem = "_".join(words).lower()
        ours = stem.startswith(f"{op.lower()}_")
        if wants_task:
            ours = stem == f"{op}{TASK_SUFFIX}".lower()
        if other not in {path, path.with_name(name)} and marked and ours and other.is_file():
            return f"; is {other.name} meant to be {name}?"
    return ""


def holds_pair(folder: Path, most: int = 2000) -> bool:
    """Say whether a folder holds a pair, looking at so many files and folders at most.

    Folders above others are looked at first; hidden ones, and links to folders, are left out.
    """
    folders = [folder]
    # The list grows while it is walked.
    for parent in folders:
        try:
            with os.scandir(parent) as entries:
                for entry in itertools.islice(entries, most):
                    most -= 1
                    path = parent / entry.name
                    if entry.is_dir(follow_symlinks=False):
                        folders += [] if entry.name.startswith((".", "_")) else [path]
                    elif _SEPARATOR in entry.name and pair_of(path) is not None:
                        return True
        except OSError:
            continue
        if most <= 0:
            return False
    return False


def _files(folder: Path, ignored: Callable[[Path], bool]) -> Iterator[Path]:
    # pytest follows links to folders; one that leads back to a folder above would never end.
    seen: set[str] = set()
    for parent, names, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:
            names.clear()
            continue
        seen.add(real)
        names[:] = sorted(n for n in names if not ignored(Path(parent, n)))
        for name in files:
            if name.endswith(".py") and not ignored(Path(parent, name)):
                yield Path(parent, name)


def class_line(path: Path, name: str) -> int | None:
    """Return the line, from 1, of the last class of a name that the module defines, or None.

    Classes within functions and within other classes are none of the module's.
    """
    try:
        with warnings.catch_warnings():
            # Of the user's code; they would stand in pytest's summary without a file name.
            warnings.simplefilter("ignore")
            tree = ast.parse(plain_files.read(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines: list[int] = []
    pending: list[ast.AST] = [tree]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if isinstance(node, ast.ClassDef) and node.name == name:
                lines.append(node.lineno)
            elif not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                pending.append(node)
    return max(lines, default=None)


def is_real_pair(pair: Pair) -> bool:
    """Say whether both files define the class that makes them a pair.

    Names alone decide below a verify dir. Where a file is merely named on pytest's command
    line, a project's own test file may have such a name by chance.
    """
    sources = ((pair.task, "Model"), (pair.implementation, "ModelNew"))
    try:
        return all(
            re.search(
                rf"^\s*class\s+{name}\b", path.read_text("utf-8-sig", "replace"), re.MULTILINE
            )
            for path, name in sources
        )
    except OSError:
        return False

"""Load a user's file as a module of its own, and find what belongs to it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

# A task of a benchmark collection sits up to this many folders below its data file.
_DATA_SEARCH_LEVELS = 4


class MissingNameError(AttributeError):
    """A user's module lacks a class or function that it must define."""


def load_module(path: Path, *, file: Path | None = None) -> ModuleType:
    """Execute a Python file under its own name.

    The folder of the file is searched last for imports: helper modules beside it are found,
    while a `torch.py` dropped there can't take the place of the real one.

    Args:
        path: the file to execute.
        file: what the module sees as its `__file__`; default: the path itself.
    """
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = re.sub(r"\W", "_", path.stem)
    if name in sys.modules or not name.isidentifier():
        name = f"tritonverify_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    if file is not None:
        module.__file__ = str(file)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Make a folder the current one for a while, where a task looks for relative paths."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def require(module: ModuleType, name: str, path: Path) -> object:
    """Return a name that the module must define.

    Raises:
        MissingNameError: it doesn't; the message lists what it does define.
    """
    found = getattr(module, name, None)
    if found is None:
        public = sorted(
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        )
        have = f"it defines {', '.join(public)}" if public else "it defines no class"
        raise MissingNameError(f"{path.name} has no class `{name}` ({have})")
    return found


def data_candidates(task: Path, op: str) -> list[list[Path]]:
    """Return where a task's cases may be, best place first.

    `<op>_torch.json` and `<op>.json` beside the task, then `<op>.json` beside an `<op>.py` in up
    to four parent folders, where workflows keep the original task. All files of an entry must
    be there; its first one holds the cases.
    """
    beside = [[task.parent / f"{task.stem}.json"], [task.parent / f"{op}.json"]]
    folders = list(task.parent.parents)[:_DATA_SEARCH_LEVELS]
    return beside + [[folder / f"{op}.json", folder / f"{op}.py"] for folder in folders]


def data_file(task: Path, op: str) -> Path | None:
    """Return the JSON file that holds a task's cases, or None."""
    for files in data_candidates(task, op):
        if all(path.is_file() for path in files):
            return files[0]
    return None


def apparent_file(task: Path, op: str) -> Path | None:
    """Return the `__file__` under which a task finds its data, or None for its own.

    A task that derives the data file's name from its own looks for `<op>_torch.json`, one that
    hard-codes it for `<op>.json`: both are found where the module takes itself for `<op>.py`.
    """
    data = data_file(task, op)
    if data is None or data.name == f"{task.stem}.json":
        return None
    return data.with_suffix(".py")

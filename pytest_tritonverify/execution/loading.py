"""Load a user's file as a module of its own, and find what belongs to it."""

from __future__ import annotations

import importlib.util
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
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


def data_file(task: Path, op: str) -> Path | None:
    """Return the JSON file that holds a task's cases, or None.

    Looked for: `<op>_torch.json` and `<op>.json` beside the task, then `<op>.json` beside an
    `<op>.py` in up to four parent folders, where workflows keep the original task.
    """
    for name in (f"{task.stem}.json", f"{op}.json"):
        if (task.parent / name).is_file():
            return task.parent / name
    for folder in list(task.parent.parents)[:_DATA_SEARCH_LEVELS]:
        if (folder / f"{op}.json").is_file() and (folder / f"{op}.py").is_file():
            return folder / f"{op}.json"
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

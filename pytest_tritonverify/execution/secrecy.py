"""Keep an implementation's process from reading the task that it is judged by."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any


def forbid_reading(task: Path) -> None:
    """Refuse to open the task file and its compiled forms in this process, by whatever name.

    Audit hooks can't be taken out again by Python code. Other processes and native code can
    still read the file; the trust model says so.
    """
    compiled = re.compile(re.escape(task.stem) + r"(\..*)?\.pyc")
    folders = {
        folder.resolve()
        for folder in (
            task.parent,
            task.parent / "__pycache__",
            Path(importlib.util.cache_from_source(str(task))).parent,
        )
    }
    original = _identity(task)

    def forbidden(path: Path) -> bool:
        # By identity, because links give a file other names; the task may be replaced meanwhile.
        found = _identity(path)
        if found is not None and found in (original, _identity(task)):
            return True
        if path.name != task.name and not compiled.fullmatch(path.name):
            return False
        # A relative name that isn't there is relative to the descriptor of some other folder.
        return found is None or path.resolve().parent in folders

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or isinstance(arguments[0], int):
            return
        with contextlib.suppress(TypeError, ValueError):
            if forbidden(Path(os.fsdecode(arguments[0]))):
                raise PermissionError(
                    f"the implementation may not read {task.name}: it must compute the result "
                    "itself, without the reference"
                )

    sys.addaudithook(hook)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file apart from all others, whatever it is called."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino

"""What a run was given: values of the command line, and those of the ini file below them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Given:
    """The values that a user gave.

    Attributes:
        option: returns a command-line option's value by its dest, None where not given.
        ini: returns an ini value by name, None or empty where not given.
        cwd: folder that relative paths of the command line start from.
        ini_folder: folder that relative paths of the ini file start from.
    """

    option: Callable[[str], Any]
    ini: Callable[[str], Any]
    cwd: Path
    ini_folder: Path

    def __call__(self, name: str) -> Any:
        """Return the value of `--verify-<name>`, or else of the ini file's `verify_<name>`."""
        key = f"verify_{name.replace('-', '_')}"
        value = self.option(key)
        return self.ini(key) if value in (None, []) else value

    def seconds(self, name: str, default: float) -> float:
        """Return the number of seconds that is given under a name, or the default.

        Raises:
            ValueError: the value is none, or not positive.
        """
        value = self(name) or default
        option = f"--verify-{name.replace('_', '-')}"
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{option}: {value!r} is no number of seconds") from None
        if not 0 < seconds < math.inf:
            raise ValueError(f"{option}: {value!r} is no positive number of seconds")
        return seconds

    def file(self, name: str) -> Path | None:
        """Return the absolute path that is given under a name; None where there is none."""
        key = f"verify_{name}"
        path = self.option(key)
        if not path and self.ini(key):
            path = self.ini_folder / self.ini(key)
        return (self.cwd / path).absolute() if path else None

"""What a check of a task file finds: places and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing about a task.

    Attributes:
        code: for programs.
        message: for people.
        file: the file's name; the task's own unless said otherwise.
        line: from 1; None where the file as a whole is meant.
        severity: an error keeps the task from being one, a warning doesn't.
    """

    code: str
    message: str
    file: str
    line: int | None = None
    severity: Severity = "error"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as builtins."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.file,
            "line": self.line,
            "message": self.message,
        }

    def to_text(self) -> str:
        """Return the finding for people."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"

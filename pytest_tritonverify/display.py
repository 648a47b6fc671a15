"""How a failing item looks in pytest's report: a message at file:line, no Python traceback.

The only module that uses pytest's private representation classes; they are what pytest's own
doctest items and other collectors build on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest._code.code import ReprEntry, ReprExceptionInfo, ReprFileLocation, ReprTraceback

if TYPE_CHECKING:
    from pathlib import Path


def failure(path: Path, line: int, error_type: str, message: str) -> ReprExceptionInfo:
    """Return the representation of a failure located in the user's file.

    Args:
        path: the file, as it is to be shown.
        line: from 1.
        error_type: the failure's name.
        message: its text; the first line is used where there is room for one only.
    """
    lines = [f"E   {text}" if text else "E" for text in message.splitlines()] or ["E"]
    summary = message.partition("\n")[0]
    if not summary.startswith(error_type):
        # Other plugins show this line alone.
        summary = f"{error_type}: {summary}"
    entry = ReprEntry(lines, None, None, ReprFileLocation(str(path), line, error_type), "short")
    return ReprExceptionInfo(
        ReprTraceback([entry], None, "short"), ReprFileLocation(str(path), line, summary)
    )

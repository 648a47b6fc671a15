"""A line for every case that starts and every one that ends, on disk before the next begins.

A run that is killed leaves the journal where its result file would be: what was finished is in
it, and which case was running.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any, Protocol

from pytest_tritonverify.results import result_file

if TYPE_CHECKING:
    from pathlib import Path


class Outcome(Protocol):
    """What came of a case, as plain data."""

    def to_json(self) -> dict[str, Any]:
        """Return it as builtins."""
        ...


class Journal:
    """An append-only file of JSON lines. A folder that can't be written only disables it."""

    def __init__(self, path: Path, op_name: str, impl_name: str, total: int) -> None:
        self.path = path
        self.problem: str | None = None
        try:
            result_file.make_folder(path.parent)
            # What lies there may be a link to something that is to stay as it is, or a pipe.
            path.unlink(missing_ok=True)
        except OSError as error:
            self.problem = f"{error.strerror}: {path}"
        self._append(
            {
                "event": "run",
                "op_name": op_name,
                "triton_impl_name": impl_name,
                "total_cases": total,
            }
        )

    def started(self, case_idx: int, name: str) -> None:
        """Note that a case begins."""
        self._append({"event": "started", "case_idx": case_idx, "name": name})

    def finished(self, record: Outcome) -> None:
        """Note how a case ended."""
        self._append({"event": "finished", **record.to_json()})

    def _append(self, entry: dict[str, Any]) -> None:
        if self.problem is not None:
            return
        try:
            with open(self.path, "a", encoding="utf-8", opener=_opened) as stream:
                json.dump(result_file.finite(entry), stream, ensure_ascii=False, allow_nan=False)
                stream.write("\n")
        except OSError as error:
            self.problem = f"{error.strerror}: {self.path}"

    def remove(self) -> None:
        """Delete the file: the result file holds everything now.

        Raises:
            OSError: it can't be deleted.
        """
        self.path.unlink(missing_ok=True)


def _opened(path: str, flags: int) -> int:
    """Open a file that this run has made, whatever somebody has put in its place meanwhile.

    Raises:
        OSError: there is a link, or something that is no plain file.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    return handle

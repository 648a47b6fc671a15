"""Files that other programs have left: read with care, and what is wrong with them said once."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


class FileError(ValueError):
    """A file that can't be used; the text is one sentence for the user.

    Attributes:
        missing: it is not there at all.
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


def read_bytes(path: Path, advice: str) -> bytes:
    """Read a regular file.

    Args:
        path: the file.
        advice: what to do where it is not there.

    Raises:
        FileError: it is not there, is no regular file, or can't be read.
    """
    require_file(path, advice)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} can't be read ({error.strerror or error}): {advice}") from None


def require_file(path: Path, advice: str) -> None:
    """Ask for a regular file.

    Raises:
        FileError: it is not there, or it is something else, such as a pipe, which never ends.
    """
    if path.is_file():
        return
    if not path.exists():
        raise FileError(f"there is no {path}: {advice}", missing=True)
    kind = "a folder" if path.is_dir() else "no regular file"
    raise FileError(f"{path} is {kind}: {advice}")


def read_object(path: Path, advice: str) -> dict[str, Any]:
    """Read a JSON object. Numbers that JSON lacks (NaN, Infinity) are read as null.

    Args:
        path: the file.
        advice: what to do where it can't be used.

    Raises:
        FileError: it can't be read, or it is no JSON object.
    """
    data = read_bytes(path, advice)
    try:
        content = json.loads(data, parse_constant=lambda _: None, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise FileError(f"{path} is no JSON ({reason}): {advice}") from None
    if not isinstance(content, dict):
        raise FileError(f"{path} holds no JSON object: {advice}")
    return content


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Which one of two counts, readers don't agree on.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def write_text(path: Path, text: str) -> None:
    """Write a text so that a reader finds the old file or the whole new one.

    Raises:
        FileError: the folder can't be written.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the whole new one.

    Raises:
        FileError: the folder can't be written.
    """
    temporary = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise FileError(f"{path} can't be written: {error.strerror or error}") from None


def write_object(path: Path, content: dict[str, Any]) -> None:
    """Write strict JSON, as `write_bytes` does.

    Raises:
        FileError: the folder can't be written.
    """
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")

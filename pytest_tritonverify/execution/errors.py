"""Turn an exception of user code into plain data, whatever it does to prevent that."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

# Enough for any honest message; a result keeps less, both ends of it.
_MESSAGE_LIMIT = 20_000
_LINE_LIMIT = 500


def clip(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters, keeping both ends."""
    if len(text) <= limit:
        return text
    note = f"\n... {len(text) - limit} characters left out ...\n"
    head = (limit - len(note)) * 2 // 3
    tail = limit - len(note) - head
    return text[:head] + note + text[len(text) - tail :]


def printable(text: str) -> str:
    """Replace what UTF-8 can't hold (lone surrogates of undecodable bytes)."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def message_of(error: BaseException) -> str:
    """Return the exception's text, also where `__str__` itself raises."""
    try:
        text = str(error)
    except BaseException as inner:  # noqa: BLE001 - user code
        text = f"<the message can't be shown: its __str__ raised {type(inner).__name__}>"
    return clip(printable(text), _MESSAGE_LIMIT)


def type_name(error: BaseException) -> str:
    """Return the exception's class name as plain text."""
    name = type.__getattribute__(type(error), "__name__")
    return clip(printable(str(name)), 200)


def describe(error: BaseException, phase: str, user_files: Collection[str]) -> dict[str, Any]:
    """Describe an exception for the judge.

    Args:
        error: what was raised.
        phase: what the worker was doing.
        user_files: files, or folders of files, that belong to the user: the traceback is cut
            to begin and to locate there.

    Returns:
        `type`, `message` (causes included), `phase`, `traceback` (text), and `file` and `line`
        of the innermost user frame, or null.
    """
    file, line = _location(error, user_files)
    message = message_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    seen = {id(error)}
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        text = message_of(cause)
        if text not in message:
            message = f"{message}\ncaused by {type_name(cause)}: {text}"
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return {
        "type": type_name(error),
        "message": clip(message, _MESSAGE_LIMIT),
        "phase": phase,
        "traceback": _traceback(error, user_files),
        "file": file,
        "line": line,
    }


def _is_user(filename: str, user_files: Collection[str]) -> bool:
    path = Path(filename)
    return any(filename == name or Path(name) in path.parents for name in user_files)


def _location(error: BaseException, user_files: Collection[str]) -> tuple[str | None, int | None]:
    if isinstance(error, SyntaxError) and error.filename:
        return printable(error.filename), error.lineno
    found: tuple[str | None, int | None] = (None, None)
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None and chain[-1].__cause__ not in chain:
        chain.append(chain[-1].__cause__)
    for link in chain:
        for frame in traceback.extract_tb(link.__traceback__):
            if _is_user(frame.filename, user_files):
                found = printable(frame.filename), frame.lineno
    return found


def _traceback(error: BaseException, user_files: Collection[str]) -> str:
    """Render the frames from the first user frame on; runs of other people's frames collapse."""
    if isinstance(error, SyntaxError):
        return printable("".join(traceback.format_exception_only(type(error), error))).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    first = next(
        (i for i, frame in enumerate(frames) if _is_user(frame.filename, user_files)), None
    )
    if first is None:
        return ""
    lines: list[str] = []
    foreign = 0
    last = len(frames) - 1
    for index, frame in enumerate(frames[first:], first):
        user = _is_user(frame.filename, user_files)
        if not user and index != last:
            foreign += 1
            continue
        if foreign:
            lines.append(f"  ... {foreign} frame{'s' if foreign > 1 else ''} outside")
            foreign = 0
        where = Path(frame.filename).name if user else frame.filename
        lines.append(f"  {where}:{frame.lineno} in {frame.name}")
        if frame.line:
            lines.append(f"    {clip(frame.line, _LINE_LIMIT)}")
    return printable("\n".join(lines))

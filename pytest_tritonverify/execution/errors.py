"""Turn an exception of user code into plain data, whatever it does to prevent that."""

from __future__ import annotations

import linecache
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import CodeType

# Enough for any honest message; a result keeps less, both ends of it.
_MESSAGE_LIMIT = 20_000
_LINE_LIMIT = 500
_KEPT_LINES = 20
# Of the exceptions that led to one, and of those that a group holds.
_MAX_CAUSES = 8
# Faults of a task's form have a place of their own; the module imports what this one must not.
_OF_TASKS = "pytest_tritonverify.execution.task"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# What moves a terminal's cursor, wipes what it shows, or turns the order of characters round: the
# control characters but for tab and new line, and those of text in two directions.
_CONTROLS = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - two digits
    for code in (
        *(n for n in range(0x20) if chr(n) not in "\t\n"),
        *range(0x7F, 0xA0),
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
    )
}


def clip(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters, keeping both ends."""
    if len(text) <= limit:
        return text
    note, kept = "", limit
    # Again and again: how long the note is decides how much more is left out.
    for _ in range(3):
        note = f"\n... {len(text) - kept} characters left out ...\n"
        kept = limit - len(note)
    if kept <= 0:
        return text[:limit]
    head = kept * 2 // 3
    return text[:head] + note + text[len(text) - (kept - head) :]


_OWN_FRAMES = (
    "/pytest_tritonverify/",
    'File "<string>", line 1 in <module>',
    "Extension modules: ",
)
_STACK = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\):")


def without_own_frames(output: str) -> str:
    """Return output without the lines of stack dumps that say nothing about user code."""
    kept: list[str] = []
    for line in output.splitlines():
        if any(word in line for word in _OWN_FRAMES):
            continue
        if kept and _STACK.match(kept[-1]) and not line.startswith("  "):
            # None of its frames is left.
            kept.pop()
        kept.append(line)
    if kept and _STACK.match(kept[-1]):
        kept.pop()
    return "\n".join(kept).strip()


def printable(text: str) -> str:
    """Replace what UTF-8 can't hold (lone surrogates) and what would command a terminal."""
    # Not the text's own method: a subclass may bring another one.
    plain = str.encode(text, "utf-8", "backslashreplace").decode("utf-8")
    if plain.isprintable():
        return plain
    lines = _COLOURS.sub("", plain).replace("\r\n", "\n").replace("\r", "\n")
    return lines.translate(_CONTROLS)


def one_line(text: str, limit: int) -> str:
    """Return a printable text of at most `limit` characters without its line breaks."""
    return clip(printable(text).replace("\n", "\\n"), limit).replace("\n", " ")


def message_of(error: BaseException) -> str:
    """Return the exception's text, also where `__str__` itself raises."""
    try:
        text = str(error)
    except BaseException as inner:  # noqa: BLE001 - user code
        text = f"<the message can't be shown: its __str__ raised {type_name(inner)}>"
    return clip(printable(text), _MESSAGE_LIMIT)


def type_name(error: BaseException) -> str:
    """Return the exception's class name as plain text."""
    # Not by attribute: a metaclass may answer for it.
    name = type.__dict__["__name__"].__get__(type(error))
    return one_line(str(name), 200)


def describe(error: BaseException, phase: str, user_files: Collection[str]) -> dict[str, Any]:
    """Describe an exception for the judge.

    Args:
        error: what was raised.
        phase: what the worker was doing.
        user_files: files, or folders of files, that belong to the user: the traceback is cut
            to begin and to locate there.

    Returns:
        `type`, `message` (with those of causes and of a group's members), `phase`, `traceback`
        (text), and of the innermost user frame `file` and `line`, or null, and the line's `code`.
    """
    told: dict[str, Any] = {"type": type_name(error), "phase": phase}
    try:
        return {**told, **_details(error, user_files)}
    except BaseException as inner:  # noqa: BLE001 - its attributes may be user code
        message = f"<it can't be described: that raised {type_name(inner)}>"
        return {**told, "message": message, "traceback": "", "file": None, "line": None, "code": ""}


def _details(error: BaseException, user_files: Collection[str]) -> dict[str, Any]:
    file, line = _location(error, user_files)
    code = printable(linecache.getline(file, line)) if file and line else ""
    message = "\n".join([message_of(error), *_notes(error)])
    related = [("holding", member) for member in _members(error)]
    related += [("caused by", link) for link in _causes(error, implicit=True)]
    for word, other in related:
        text = message_of(other)
        if text not in message:
            message = f"{message}\n{word} {type_name(other)}: {text}"
    return {
        "message": clip(message, _MESSAGE_LIMIT),
        "traceback": _traceback(error, user_files),
        "file": file,
        "line": line,
        "code": clip(code.strip(), _LINE_LIMIT),
    }


def _notes(error: BaseException) -> list[str]:
    """Return what was added to an exception on its way, as Python's traceback shows it."""
    notes = getattr(error, "__notes__", ())
    if not isinstance(notes, list):
        return []
    texts = [note for note in notes[:_MAX_CAUSES] if isinstance(note, str)]
    return [clip(printable(text), _MESSAGE_LIMIT) for text in texts]


def _causes(error: BaseException, *, implicit: bool) -> Iterator[BaseException]:
    """Yield the exceptions that led to one, the nearest first, as Python's traceback shows them.

    Args:
        error: the exception.
        implicit: follow exceptions that were being handled too, not only `raise ... from`.
    """
    # By identity: an exception's own `__eq__` or `__bool__` may do anything.
    seen = {id(error)}
    link = error
    for _ in range(_MAX_CAUSES):
        before = link.__cause__
        if before is None and implicit and not link.__suppress_context__:
            before = link.__context__
        if before is None or id(before) in seen:
            return
        seen.add(id(before))
        yield before
        link = before


def _members(error: BaseException) -> list[BaseException]:
    """Return the exceptions that a group holds. On Python 3.10 a backport may bring groups."""
    members = getattr(error, "exceptions", ())
    if not isinstance(members, tuple):
        return []
    return [member for member in members if isinstance(member, BaseException)][:_MAX_CAUSES]


def _is_user(filename: str, user_files: Collection[str]) -> bool:
    path = Path(filename)
    return any(filename == name or Path(name) in path.parents for name in user_files)


def _location(error: BaseException, user_files: Collection[str]) -> tuple[str | None, int | None]:
    """Return file and line of the innermost user frame, of the first cause where there is one."""
    found: tuple[str | None, int | None] = (None, None)
    if type(error).__module__ == _OF_TASKS and isinstance(error, ValueError):
        place: tuple[str, int] | None = getattr(error, "place", None)
        if place is not None:
            return place
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        line = error.lineno if isinstance(error.lineno, int) else None
        found = printable(error.filename), line
        if _is_user(error.filename, user_files):
            return found
    for link in (error, *_causes(error, implicit=False)):
        for frame in traceback.extract_tb(link.__traceback__):
            if _is_user(frame.filename, user_files):
                found = printable(frame.filename), frame.lineno
    return found


def _traceback(error: BaseException, user_files: Collection[str]) -> str:
    """Render the frames from the first user frame on; runs of other people's frames collapse."""
    if isinstance(error, SyntaxError):
        return _syntax_error(error)
    frames = _frames(error, user_files)
    users = [i for i, (_, frame) in enumerate(frames) if _is_user(frame.filename, user_files)]
    if not users:
        return ""
    lines: list[str] = []
    foreign = 0
    last = len(frames) - 1
    for index, (code, frame) in enumerate(frames[users[0] :], users[0]):
        user = index in users
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
            marker = _marker(code, frame) if index == users[-1] else ""
            lines += [f"    {marker}"] if marker else []
    return printable("\n".join(_shortened(lines)))


def _frames(
    error: BaseException, user_files: Collection[str]
) -> list[tuple[CodeType, traceback.FrameSummary]]:
    """Return an exception's frames, and those of its causes where user code raised them.

    Triton's interpreter raises an error of its own from that of a kernel: the kernel's line stands
    in the cause alone.
    """
    found = []
    for link in (error, *_causes(error, implicit=False)):
        codes = [frame.f_code for frame, _ in traceback.walk_tb(link.__traceback__)]
        frames = traceback.extract_tb(link.__traceback__)
        if link is error or any(_is_user(frame.filename, user_files) for frame in frames):
            found += list(zip(codes, frames, strict=False))
    return found


def _marker(code: CodeType, frame: traceback.FrameSummary) -> str:
    """Return the carets under the part of a line that raised; nothing where that is unknown.

    Python knows columns from 3.11 on.
    """
    positions = getattr(code, "co_positions", None)
    first: int | None = getattr(frame, "colno", None)
    end: int | None = getattr(frame, "end_colno", None)
    text = linecache.getline(frame.filename, frame.lineno or 0).rstrip()
    if positions is None or first is None or end is None or not text.isascii():
        return ""
    if getattr(frame, "end_lineno", None) != frame.lineno:
        end = len(text)
    start = len(text) - len(text.lstrip())
    if not start <= first < end <= min(len(text), _LINE_LIMIT) or end - first >= len(text) - start:
        return ""
    for line, _, column, _ in positions():
        # A kernel that stands in another function is compiled without its indentation.
        shown = linecache.getline(frame.filename, line or 0)
        if (
            line != code.co_firstlineno
            and column is not None
            and column < len(shown) - len(shown.lstrip())
        ):
            return ""
    return " " * (first - start) + "^" * (end - first)


def _syntax_error(error: SyntaxError) -> str:
    try:
        text = "".join(traceback.format_exception_only(type(error), error))
    except Exception:  # noqa: BLE001 - whoever made it may have given it any attributes
        return ""
    return clip(printable(text), _MESSAGE_LIMIT).rstrip()


def _shortened(lines: list[str]) -> list[str]:
    """Leave out the middle of a deep recursion."""
    if len(lines) <= 2 * _KEPT_LINES:
        return lines
    left_out = len(lines) - 2 * _KEPT_LINES
    return [*lines[:_KEPT_LINES], f"  ... {left_out} lines left out", *lines[-_KEPT_LINES:]]

"""From bytes to a syntax tree, whatever the bytes are."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from dataclasses import dataclass


class Unreadable(Exception):  # noqa: N818 - it says what the file is
    """A file that is no Python.

    Attributes:
        line: where, from 1; 0 where the file as a whole is meant.
        column: where, from 1.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Source:
    """A file that could be parsed.

    Attributes:
        tree: its syntax.
        lines: its text.
        statements: all its statements, those within others too.
    """

    tree: ast.Module
    lines: tuple[str, ...]
    statements: tuple[ast.stmt, ...]

    def text(self, node: ast.AST) -> str:
        """Return an expression's text, without line breaks; of a long one the first lines."""
        line, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if not 0 < line <= len(self.lines):
            return ""
        first = self.column(line, getattr(node, "col_offset", 0)) - 1
        last = self.column(end, getattr(node, "end_col_offset", 0) or 0) - 1
        parts = list(self.lines[line - 1 : min(end, line + _MOST_LINES - 1)])
        if end < line + _MOST_LINES:
            parts[-1] = parts[-1][:last]
        parts[0] = parts[0][first:]
        return "".join(part.strip() for part in parts)

    def column(self, line: int, offset: int) -> int:
        """Return the column of a byte offset, in characters from 1."""
        if not 0 < line <= len(self.lines):
            return offset + 1
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


def read(source: bytes | str) -> Source:
    """Parse a file.

    Args:
        source: its bytes, or its text; a text's own word on its encoding counts for nothing.

    Raises:
        Unreadable: it is no Python, or nested too deeply to be read.
        TypeError: it is neither bytes nor text.
    """
    if not isinstance(source, (bytes, str)):
        raise TypeError(f"a source is bytes or str, not {type(source).__name__}")
    if isinstance(source, str):
        text = source = source.removeprefix("\ufeff")
    else:
        text = _text(source)
    try:
        with warnings.catch_warnings():
            # An odd escape in a string is not this check's business.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        raise Unreadable(
            f"SyntaxError: {error.msg}", error.lineno or 0, error.offset or 0
        ) from error
    except (RecursionError, MemoryError) as error:
        raise Unreadable(
            "an expression is nested too deeply to be read; split it into several statements"
        ) from error
    except ValueError as error:  # null bytes
        raise Unreadable(f"the file can't be read as Python: {error}") from error
    return Source(tree, tuple(_split(text)), _statements(tree))


_MOST_LINES = 4
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def _statements(tree: ast.Module) -> tuple[ast.stmt, ...]:
    found: list[ast.stmt] = []
    todo: list[ast.AST] = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        for name in reversed(_BODIES):
            part = getattr(node, name, None)
            if isinstance(part, list):
                todo.extend(reversed(part))
    return tuple(found)


def _split(text: str) -> list[str]:
    # Only what the tokenizer takes for the end of a line, unlike str.splitlines.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _text(source: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Unreadable(f"the file's text can't be decoded: {error}") from error

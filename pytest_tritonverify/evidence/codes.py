"""Tell whether a code object is the one that a source text compiles to."""

from __future__ import annotations

import hashlib
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def digest(code: CodeType) -> str:
    """Return a digest of what a code object does, the same in every process of one interpreter.

    File names and line numbers are left out, and so are the traces of an interpreter that
    specialises its instructions as it runs.
    """
    found = hashlib.sha256()
    for part in _parts(code):
        found.update(repr(part).encode("utf-8", "backslashreplace") + b"\0")
    return found.hexdigest()


def _parts(code: CodeType) -> Iterator[object]:
    yield code.co_name, code.co_code, code.co_flags, code.co_names, code.co_varnames
    yield code.co_freevars, code.co_cellvars
    yield code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    yield [_constant(value) for value in code.co_consts]


def _constant(value: Any) -> object:
    if isinstance(value, CodeType):
        return digest(value)
    if isinstance(value, tuple):
        return tuple(_constant(item) for item in value)
    if isinstance(value, frozenset):
        return sorted(repr(item) for item in value)
    return type(value).__name__, value

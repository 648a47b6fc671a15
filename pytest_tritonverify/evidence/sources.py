"""The functions that an implementation's source defines, without running any of it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from pytest_tritonverify import plain_files
from pytest_tritonverify.evidence import codes

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRONG = (SyntaxError, ValueError, RecursionError, MemoryError)
# With -O, and with -OO, asserts and docstrings are left out of code.
_OPTIMISATIONS = (-1, 0, 1, 2)


def _bytes_of(path: Path) -> bytes:
    try:
        return plain_files.read(path)
    except OSError:
        return b""


@dataclass
class Sources:
    """What the files of one folder define.

    Args:
        implementation: the implementation's file; others count where they lie below its folder.
    """

    implementation: Path
    _texts: dict[Path, bytes] = field(default_factory=dict)
    _functions: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    _codes: dict[tuple[str, int], set[tuple[str, str]]] = field(default_factory=dict)
    _methods: dict[str, range | None] | None = None

    def __post_init__(self) -> None:
        """Read the implementation now: when it runs it may change its own file."""
        self._text(self.implementation)

    def _text(self, path: Path) -> bytes:
        if path not in self._texts:
            self._texts[path] = _bytes_of(path)
        return self._texts[path]

    @property
    def changed(self) -> bool:
        """Whether a file that was read is not what it was then."""
        return any(_bytes_of(path) != text for path, text in self._texts.items())

    def owns(self, file: str) -> bool:
        """Whether a file is the implementation, or a module beside it."""
        path = Path(file)
        return path == self.implementation or self.implementation.parent in path.parents

    def is_implementation(self, file: str) -> bool:
        """Whether a file is the implementation itself."""
        return Path(file) == self.implementation

    def defines(self, file: str, name: str, line: int) -> bool:
        """Whether a file defines a function of some name that begins at some line.

        A function begins at its first decorator; any line from there to its `def` will do,
        since versions of Python and of Triton count differently.
        """
        if not self.owns(file):
            return False
        if file not in self._functions:
            self._functions[file] = set(_functions(self._text(Path(file))))
        return (name, line) in self._functions[file]

    def is_entry(self, file: str, method: str, name: str, line: int) -> bool:
        """Whether a function may be what class ModelNew has as a method.

        Where the class defines the method, nothing else will do, unless it is decorated: the
        decorator may return any function of the file. An inherited one has the method's name.

        Args:
            file: where the function claims to stand.
            method: "forward" or "__call__".
            name: the function's own name.
            line: its first line.
        """
        if self._methods is None:
            self._methods = _methods_of(self._text(self.implementation), "ModelNew")
        if method not in self._methods:
            return name == method and self.defines(file, name, line)
        lines = self._methods[method]
        if lines is None:
            return self.owns(file)
        return self.is_implementation(file) and name == method and line in lines

    def compiles_to(self, file: str, name: str, digest: str) -> bool:
        """Whether a file's source compiles to a function of some name with some digest."""
        if not self.owns(file):
            return False
        return any((name, digest) in self._compiled(file, level) for level in _OPTIMISATIONS)

    def _compiled(self, file: str, level: int) -> set[tuple[str, str]]:
        key = file, level
        if key not in self._codes:
            self._codes[key] = set(_codes(self._text(Path(file)), file, level))
        return self._codes[key]


def _tree(text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except _WRONG:
        return ast.Module([], [])


def _functions(text: bytes) -> Iterator[tuple[str, int]]:
    for node in ast.walk(_tree(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for line in _lines(node):
                yield node.name, line


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
    return range(first, node.lineno + 1)


def _methods_of(text: bytes, name: str) -> dict[str, range | None]:
    """Return the lines of a class's methods; None for those that may be any function."""
    found: dict[str, range | None] = {}
    for node in ast.walk(_tree(text)):
        if not isinstance(node, ast.ClassDef) or node.name != name:
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef):
                found[part.name] = None if _made_anew(part) else _lines(part)
            elif isinstance(part, ast.Assign):
                targets = [target.id for target in part.targets if isinstance(target, ast.Name)]
                found.update(dict.fromkeys(targets))
    return found


def _made_anew(function: ast.FunctionDef) -> bool:
    """Whether a decorator of the file's own may put another function in the place of one."""
    roots = []
    for decorator in function.decorator_list:
        root: ast.expr = decorator
        while isinstance(root, (ast.Attribute, ast.Call)):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        roots.append(root.id if isinstance(root, ast.Name) else "")
    return any(root not in ("torch", "staticmethod", "classmethod") for root in roots)


def _codes(text: bytes, file: str, level: int) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pending = [compile(text, file, "exec", dont_inherit=True, optimize=level)]
    except _WRONG:
        return
    while pending:
        code = pending.pop()
        yield code.co_name, codes.digest(code)
        pending += [part for part in code.co_consts if isinstance(part, CodeType)]

"""Names that don't exist: what a file must have meant, and which names PyTorch has."""

from __future__ import annotations

import ast
import builtins
import difflib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TORCH = "torch"
TENSOR = "torch.Tensor"
MODULE = "torch.nn.Module"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_MODULES = _words(
    """
    __annotations__ __builtins__ __cached__ __class__ __dict__ __doc__ __file__ __loader__ __name__
    __package__ __path__ __spec__
    """
)
_BUILTINS = frozenset(dir(builtins)) | _OF_MODULES
# By these a file can define names that nobody reads in it.
_TRICKS = _words(
    """
    __builtins__ __dict__ __globals__ __setattr__ builtins delattr eval exec f_builtins f_globals
    f_locals globals locals modules vars
    """
)
# What torch_npu adds to PyTorch, and what is meant for PyTorch itself.
_OTHERS = ("npu", "_")
_IMPORTS = {
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "nn": "import torch.nn as nn",
    "np": "import numpy as np",
    "tl": "import triton.language as tl",
    "torch": "import torch",
    "triton": "import triton",
}


@lru_cache(maxsize=1)
def _table() -> dict[str, frozenset[str]]:
    text = Path(__file__).with_name("torch_names.txt").read_text("ascii")
    table = {}
    for part in text.split("[")[1:]:
        owner, _, names = part.partition("]")
        table[owner] = frozenset(names.split())
    return table


def names_of(owner: str) -> frozenset[str]:
    """Return what a module or class of PyTorch has, nothing for one that isn't in the table.

    The table holds the names of PyTorch 2.13, as `dir()` lists them.
    """
    return _table().get(owner, frozenset())


def meant(name: str, known: Iterable[str]) -> str:
    """Return the question after the name that was probably meant, or nothing."""
    private = name.startswith("_")
    slack = max(1, len(name) // 4)
    candidates = [
        other
        for other in known
        if other.startswith("_") == private and abs(len(other) - len(name)) <= slack
    ]
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.7)
    return f"; did you mean `{close[0]}`?" if close else ""


class Names:
    """What a file binds and mentions, by its syntax alone, in whatever scope.

    Args:
        tree: the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    @cached_property
    def _bound(self) -> frozenset[str]:
        return frozenset(name for node in ast.walk(self._tree) for name in _bound_by(node))

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """Strings, attributes that are set, and imported names: an attribute may be called so."""
        return frozenset(word for node in ast.walk(self._tree) for word in _words_of(node))

    @cached_property
    def _tricky(self) -> bool:
        read = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        read |= {node.attr for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)}
        return bool(_TRICKS & (self._bound | self._mentioned | read)) or "*" in self._mentioned

    def binds(self, name: str) -> bool:
        """Say whether a variable, function, class or module of the file has that name."""
        return name in self._bound

    def unset(self, name: str) -> bool:
        """Say whether nothing in the file sets an attribute of that name."""
        return name not in self._mentioned and not self._tricky

    def lacks(self, name: str) -> bool:
        """Say whether nothing in the file can define that name, as an attribute or otherwise."""
        return not self.binds(name) and self.unset(name)

    def undefined(self, name: str) -> str:
        """Return what is wrong with a name that is defined nowhere, or nothing.

        Nothing is said where `import *`, `exec`, `globals()` and the like may define it.
        """
        if name in _BUILTINS or not self.lacks(name):
            return ""
        text = f"NameError: name `{name}` is not defined"
        if name in _IMPORTS:
            return f"{text}; write `{_IMPORTS[name]}` at the top of the file"
        return text + meant(name, self._bound | _BUILTINS)

    def attribute(self, owner: str, name: str) -> str:
        """Return what is wrong with an attribute that something of PyTorch lacks, or nothing."""
        known = names_of(owner)
        if not known or name in known or name.startswith(_OTHERS) or not self.lacks(name):
            return ""
        what = "method" if owner == TENSOR else "function"
        return f"AttributeError: {owner} has no {what} `{name}`{meant(name, known)}"


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.alias):
        return [node.asname or node.name.partition(".")[0]]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    # Functions, classes, `except ... as`, patterns.
    names = [getattr(node, field, None) for field in ("name", "rest")]
    return [name for name in names if isinstance(name, str)]


def _words_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Attribute):
        return [] if isinstance(node.ctx, ast.Load) else [node.attr]
    return [node.name] if isinstance(node, ast.alias) else []


def inwards(node: ast.AST) -> Iterator[ast.AST]:
    """Yield an expression and what it is made from: of `f.run[grid](x)` at last the name `f`."""
    yield node
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
        yield node


def root(node: ast.AST) -> str | None:
    """Return the name that an expression begins with: `f` in `f.run[grid](x)`."""
    *_, last = inwards(node)
    return last.id if isinstance(last, ast.Name) else None

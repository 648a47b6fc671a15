"""What is wrong with a task's input functions, told by function, line, expected against got."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

from pytest_tritonverify import plain_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GROUPS = "get_input_groups"
INPUTS = "get_inputs"
INIT_INPUTS = "get_init_inputs"

GROUPS_FORM = "a list with one list of arguments for each case, as [[x], [y]]"
_INPUTS_FORM = "a list of the arguments of one case, as [x, y]"
_INIT_FORM = "a list of the constructor's arguments, as [64, 0.5], empty where it takes none"
_FORMS = {GROUPS: GROUPS_FORM, INPUTS: _INPUTS_FORM, INIT_INPUTS: _INIT_FORM}


def line_of(path: Path, name: str) -> int | None:
    """Return the line, from 1, of the last definition or assignment of a module's name, or None."""
    try:
        tree = ast.parse(plain_files.read(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = []
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        found = [t.id for t in targets if isinstance(t, ast.Name)]
        if (named and getattr(node, "name", None) == name) or name in found:
            lines.append(node.lineno)
    return max(lines, default=None)


def is_overridden(path: Path) -> bool:
    """Say whether a task defines `get_inputs` beside `get_input_groups`, which is what counts."""
    return all(line_of(path, name) is not None for name in (GROUPS, INPUTS))


def not_callable(path: Path, name: str, found: object) -> str | None:
    """Say that a name which must be a function is none; None where it can be called."""
    if callable(found):
        return None
    return (
        f"{_place(path, name)} must be a function, but it is {_described(found)}; write "
        f"`def {name}():` and return {_FORMS[name]}"
    )


def not_returned(path: Path, name: str, found: object) -> str | None:
    """Say that a function returned nothing that has the form of its result; None where it may."""
    if found is None:
        return (
            f"{_place(path, name)} returned None instead of {_FORMS[name]}; is its `return` "
            f"missing?"
        )
    if name == GROUPS and isinstance(found, (str, bytes, int, float, dict)):
        return f"{_place(path, name)} returned {_described(found)} instead of {GROUPS_FORM}"
    return None


def groups_as_inputs(path: Path, found: object, model_class: object) -> str | None:
    """Say that `get_inputs` returns the groups of all cases; None where it may be one case's.

    It is only said where `Model.forward` can be called with every group and not with them all.
    """
    if not isinstance(found, (list, tuple)) or not found:
        return None
    if not all(isinstance(group, (list, tuple)) for group in found):
        return None
    forward = getattr(model_class, "forward", None)
    if not callable(forward):
        return None
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return None
    if _binds(signature, found) or not all(_binds(signature, group) for group in found):
        return None
    return (
        f"{_place(path, INPUTS)} returned {len(found)} lists, but it makes the arguments of one "
        f"case, and Model.forward{signature} can't be called with {len(found)} of them; if every "
        f"list is a case, call the function {GROUPS}"
    )


def _binds(signature: inspect.Signature, arguments: Iterable[object]) -> bool:
    """Tell whether a method of that signature takes the arguments."""
    try:
        signature.bind(None, *arguments)
    except TypeError:
        return False
    return True


def _place(path: Path, name: str) -> str:
    line = line_of(path, name)
    return f"{name} ({path.name}{'' if line is None else f', line {line}'})"


def _described(found: object) -> str:
    if isinstance(found, (list, tuple, dict, str)):
        return f"a {type(found).__name__} of {len(found)}"
    return f"of type {type(found).__name__}"

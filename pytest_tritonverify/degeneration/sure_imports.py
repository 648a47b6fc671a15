"""Imports that succeed wherever an implementation can run at all."""

from __future__ import annotations

import ast

_NAMES = {
    "triton": {"Config", "autotune", "cdiv", "heuristics", "jit", "language", "next_power_of_2"},
    "triton.language": set[str](),
    "torch": {"Tensor", "nn"},
    "torch.nn": set[str](),
}


def only_in(node: ast.Try) -> bool:
    """Say whether a `try` only imports what every candidate needs: its handlers are never run."""
    seen = False
    for statement in node.body:
        if isinstance(statement, ast.Import):
            if not all(alias.name in _NAMES for alias in statement.names):
                return False
            seen = True
        elif isinstance(statement, ast.ImportFrom):
            known = _NAMES.get(statement.module or "", set())
            if statement.level or not all(alias.name in known for alias in statement.names):
                return False
            seen = True
        elif not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)):
            return False
    return seen and not node.orelse

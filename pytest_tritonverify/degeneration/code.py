"""A body to be run, and the instructions that it is turned into."""

from __future__ import annotations

import ast
from typing import Any, TypeAlias

# (name of the machine's operation, node, argument)
Instruction: TypeAlias = tuple[str, Any, Any]
Definition: TypeAlias = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
)


class Label:
    """A place in the instructions."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position = -1


class Code:
    """A body to be run: of a module, a class or a function.

    Attributes:
        node: the definition.
        name: its name.
        parameters: names in the order of the arguments' positions, then the keyword-only ones.
        positional: how many of them may be given by position.
        outer: names declared global (True) or nonlocal (False).
    """

    __slots__ = (
        "_instructions",
        "generator",
        "keywords",
        "name",
        "node",
        "outer",
        "parameters",
        "positional",
        "renamed",
        "variadic",
    )

    def __init__(self, node: Definition, renamed: dict[str, str] | None = None) -> None:
        self.node = node
        self.name = getattr(node, "name", "<lambda>" if isinstance(node, ast.Lambda) else "")
        self.outer: dict[str, bool] = {}
        self.generator = False
        self._instructions: list[Instruction] | None = None
        self.parameters: list[str] = []
        self.positional = 0
        self.variadic = self.keywords = ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = node.args
            first = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
            self.positional = len(first)
            self.parameters = first + [a.arg for a in arguments.kwonlyargs]
            self.variadic = arguments.vararg.arg if arguments.vararg else ""
            self.keywords = arguments.kwarg.arg if arguments.kwarg else ""
        own = {*self.parameters, self.variadic, self.keywords}
        self.renamed = {k: v for k, v in (renamed or {}).items() if k not in own}

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions, made when they are first asked for."""
        if self._instructions is None:
            from pytest_tritonverify.degeneration.lowering import lower

            self._instructions = lower(self)
        return self._instructions

    def annotations(self) -> dict[str, ast.expr]:
        """Return the parameters' annotations."""
        if not isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return {}
        a = self.node.args
        return {
            p.arg: p.annotation
            for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)
            if p.annotation is not None
        }

"""All mistakes of a file, and whether they explain why it doesn't pass."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration import findings, mistakes, spelling
from pytest_tritonverify.degeneration.analysis import Analysis, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_tritonverify.degeneration.reading import Source
    from pytest_tritonverify.degeneration.report import Violation

SUGGESTION = "Correct the mistake; the check says more once the file can work."
_LANGUAGE = "triton.language"
_MISSING = "MissingNameError"
_WHOLE = ast.Module([], [])  # stands for no place in the file


@dataclass
class Slips:
    """The mistakes of a file.

    Attributes:
        texts: where each is, and what: the exception that it raises, a colon, a sentence.
        explained: the documented types that apply only because of them.
        missing: there is no model at all, so that nothing else can be said.
    """

    texts: list[tuple[ast.AST, str]] = field(default_factory=list)
    explained: set[int] = field(default_factory=set)
    missing: bool = False

    def alone(self, types: Sequence[int], violations: Sequence[Violation]) -> bool:
        """Say whether nothing but mistakes keeps the file from passing."""
        if self.missing:
            return True
        left = self.left(violations)
        explained = self.explained if left else self.explained | {3}
        return bool(self.texts) and set(types) <= explained and not left

    def left(self, violations: Sequence[Violation]) -> list[Violation]:
        """Return the violations that are not consequences of mistakes."""
        if 1 not in self.explained:
            return list(violations)
        # What should have become a kernel is nothing that could be followed.
        return [v for v in violations if v.kind != findings.UNRESOLVED]


def slips(
    result: Analysis, source: Source, imports: dict[str, str], filename: str, types: Sequence[int]
) -> Slips:
    """Return the mistakes of a file.

    Args:
        result: what running its model has shown.
        source: the file.
        imports: what its imports bind.
        filename: its name, as it was given.
        types: the documented types that seem to apply.
    """
    if result.missing:
        text = f"{_MISSING}: {PurePath(filename).name} has no class `ModelNew` ({_classes(source)})"
        return Slips([(_WHOLE, text)], missing=True)
    found = Slips()
    found.texts += [
        (f.node, f.reason) for f in result.found.found.values() if f.kind == findings.MISTAKE
    ]
    if found.texts:
        found.explained.add(2)
    undefined = _decorators(result, source) if types else []
    found.texts += undefined
    if undefined or (1 in types and found.texts):
        found.explained |= {1, 2}
    if 2 in types:  # noqa: PLR2004 - the documented type
        found.texts += _unlaunched(result)
        found.explained |= {2} if found.texts else set()
    if 4 in types:  # noqa: PLR2004 - the documented type
        unknown = list(_unknown_language(result, imports))
        found.texts += unknown
        found.explained |= {4} if unknown else set()
    return found


def _classes(source: Source) -> str:
    names = sorted(node.name for node in source.tree.body if isinstance(node, ast.ClassDef))
    return f"it defines {', '.join(names)}" if names else "it defines no class"


def _unlaunched(result: Analysis) -> list[tuple[ast.AST, str]]:
    node = result.idle
    if node is None:
        calls = result.found.without_grid.values()
        return [(call, mistakes.without_grid(kernel)) for kernel, call in calls]
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    own = [f"`{name}`" for name in methods if not name.startswith("__")]
    have = f" (it defines {', '.join(own)})" if own else ""
    return [(node, f"{_MISSING}: `{node.name}` has no method `forward`{have}")]


def _decorators(result: Analysis, source: Source) -> list[tuple[ast.AST, str]]:
    """Return the decorators whose names are not defined."""
    found: list[tuple[ast.AST, str]] = []
    for node in source.statements:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
            name = spelling.root(decorator)
            text = result.names.undefined(name) if name else ""
            found += [(decorator, text)] if text else []
    return found


def _unknown_language(result: Analysis, imports: dict[str, str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield what launched kernels call of Triton's language that it doesn't have."""
    known = spelling.names_of(_LANGUAGE)
    for kernel in result.works:
        for node in ast.walk(kernel.function.code.node):
            name = dotted(node.func, imports) if isinstance(node, ast.Call) else None
            owner, _, last = (name or "").rpartition(".")
            question = spelling.meant(last, known)
            # Triton for other devices has more than the table.
            if owner == _LANGUAGE and last not in known and question and result.names.lacks(last):
                yield node, f"AttributeError: {_LANGUAGE} has no function `{last}`{question}"

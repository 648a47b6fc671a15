"""Notes on kernels that are right on some devices and not on others. They fail nothing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_tritonverify.degeneration.code import Code

_HALF = ("float16", "bfloat16", "fp16", "bf16")

# A node, a code and a message.
Lint = tuple[ast.AST, str, str]


def lint(  # noqa: C901 - one branch for each kind
    code: Code, name_of: Callable[[ast.AST], str | None], text_of: Callable[[ast.AST], str]
) -> Iterator[Lint]:
    """Yield notes on a kernel.

    Args:
        code: the kernel's body.
        name_of: the canonical dotted name of an expression, or None.
        text_of: an expression's text.
    """
    zeros: dict[str, ast.AST] = {}
    read: set[str] = set()
    grown: set[str] = set()
    stored: dict[str, int] = {}
    for operation, node, argument in code.instructions:
        if operation == "call":
            name = name_of(node.func)
            if name == "triton.language.load":
                yield from _load(node)
                yield from _reload(node, stored, text_of)
            elif name == "triton.language.dot":
                yield from _dot(node)
            elif name == "triton.language.store" and node.args:
                stored.setdefault(text_of(node.args[0]), node.lineno)
            elif _is_half_zero(node, name, name_of):
                zeros[""] = node
        elif operation == "load":
            read.add(argument)
        elif operation == "inplace" and isinstance(node.target, ast.Name):
            grown.add(node.target.id)
        elif operation == "store":
            made = zeros.pop("", None)
            if made is not None:
                zeros[argument] = made
            elif argument in read:
                grown.add(argument)
            read.clear()
    for name in sorted(grown & set(zeros)):
        yield (
            zeros[name],
            "half-accumulator",
            f"`{name}` accumulates in half precision; accumulate in tl.float32 and cast at the end",
        )


def _load(node: ast.Call) -> Iterator[Lint]:
    keywords = {k.arg for k in node.keywords}
    masked = "mask" in keywords or len(node.args) > 1
    if masked and "other" not in keywords and len(node.args) < 3 and None not in keywords:  # noqa: PLR2004 - pointer, mask, other
        yield (
            node,
            "load-without-other",
            "masked lanes of tl.load hold anything on Ascend; give other= a value",
        )


def _dot(node: ast.Call) -> Iterator[Lint]:
    for keyword in node.keywords:
        value = keyword.value
        named = keyword.arg == "input_precision" and isinstance(value, ast.Constant)
        if named and str(getattr(value, "value", "")).lower() == "hf32":
            message = 'input_precision="hf32" keeps 11 bits of float32 inputs; use "ieee"'
            yield (node, "hf32", message)


def _is_half_zero(
    node: ast.Call, name: str | None, name_of: Callable[[ast.AST], str | None]
) -> bool:
    if name not in ("triton.language.zeros", "triton.language.full"):
        return False
    parts = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "dtype")]
    return any((name_of(part) or "").rpartition(".")[2] in _HALF for part in parts)


def _reload(
    node: ast.Call, stored: dict[str, int], text_of: Callable[[ast.AST], str]
) -> Iterator[Lint]:
    line = stored.get(text_of(node.args[0])) if stored and node.args else None
    if line is not None:
        message = (
            f"loads what line {line} has stored; on Ascend such a reload in one program may be "
            "corrupted: keep the value in a variable"
        )
        yield (node, "store-then-load", message)

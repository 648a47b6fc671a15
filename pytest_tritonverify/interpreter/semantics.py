"""What gives the language its meaning in the interpreter, in newer versions of Triton and older.

Functions of the language take it as a parameter: `_semantic` since Triton 3.4, `_builder` before,
where a module of functions stood beside the builder.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_tritonverify.interpreter.patching import missing

_NEEDED = ("integer_promote_impl", "to_tensor")


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps the meaning of the language from being known, if anything."""
    absent = missing(interpreter, ("interpreter_semantic",))
    if not absent:
        absent = missing(interpreter.interpreter_semantic, _NEEDED)
    elif hasattr(interpreter, "interpreter_builder"):
        absent = missing(getattr(interpreter.tl, "semantic", None), _NEEDED)
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def of(interpreter: Any) -> Any:
    """Return what makes tensors of numbers and promotes integers, without an `obstacle`."""
    if hasattr(interpreter, "interpreter_semantic"):
        return interpreter.interpreter_semantic
    older = interpreter.tl.semantic

    def to_tensor(value: Any, check_type: bool = True) -> Any:  # noqa: FBT001, FBT002 - as newer ones
        return older.to_tensor(value, interpreter.interpreter_builder, check_type)

    return SimpleNamespace(to_tensor=to_tensor, integer_promote_impl=older.integer_promote_impl)


def parameter(interpreter: Any) -> tuple[str, Any]:
    """Return the name of the parameter that functions of the language need, and its value."""
    if hasattr(interpreter, "interpreter_semantic"):
        return "_semantic", interpreter.interpreter_semantic
    return "_builder", interpreter.interpreter_builder

"""What the semantics of the host's side and of kernels have in common."""

# ruff: noqa: ARG002 - operations share one signature

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.arguments import Arguments
from pytest_tritonverify.degeneration.texts import is_wide
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    NOTHING,
    Class,
    Const,
    Function,
    Instance,
    Kernel,
    Layer,
    Store,
    Symbol,
    Value,
    constant_of,
    join,
    only,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from pytest_tritonverify.degeneration.machine import Machine
    from pytest_tritonverify.degeneration.pool import Pool

_LARGE = 256

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Not": operator.not_,
    "Invert": operator.invert,
}
SYMBOLS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "MatMult": "@",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "LShift": "<<",
    "RShift": ">>",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "USub": "-",
    "UAdd": "+",
    "Invert": "~",
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
}
IDENTITY_TESTS = frozenset({"Is", "IsNot", "In", "NotIn"})
_SOLID = (Function, Class, Instance, Kernel, Layer, Store)


class Semantics:
    """The meaning of operators, attributes and calls; subclasses fill it in."""

    machine: Machine

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    # To be filled in.

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute of a value."""
        raise NotImplementedError

    def subscript(self, value: Value, index: Value, node: ast.AST) -> Value:
        """Return an element of a value."""
        raise NotImplementedError

    def binary(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        """Return what an operator makes of two values."""
        raise NotImplementedError

    def unary(self, name: str, value: Value, node: ast.AST) -> Value:
        """Return what an operator makes of a value."""
        raise NotImplementedError

    def compare(self, names: tuple[str, ...], values: tuple[Value, ...], node: ast.AST) -> Value:
        """Return what a comparison makes of values."""
        raise NotImplementedError

    def call(self, value: Value, arguments: Arguments, node: ast.AST) -> Value:
        """Return what a call returns."""
        raise NotImplementedError

    def decorate(self, decorator: Value, value: Value, node: ast.AST, definition: ast.AST) -> Value:
        """Return what a decorator makes of a definition."""
        raise NotImplementedError

    # What both can live with.

    def external(self, name: str) -> Value:
        """Return what stands for something from outside of the file."""
        return self.pool.external(name)

    def imported(self, module: str, node: ast.AST) -> None:
        """Take note of an import."""

    def defined(self, kind: Class, keywords: dict[str | None, Value]) -> None:
        """Take note of a class."""

    def entered(self, value: Value, node: ast.AST) -> Value:
        """Return what `with` binds."""
        return value

    def store_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        """Set an attribute."""

    def store_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None:
        """Set an element."""
        for atom in owner:
            if isinstance(atom, Store):
                key = constant_of(index)
                self.machine.put(atom, key.value if key else None, value, known=key is not None)

    def off_device(self, test: Value) -> int | None:
        """Say which branch of a test is for machines without an accelerator: 0, 1 or neither."""
        return None

    def element(self, value: Value) -> Value | None:
        """Return what a loop over a value yields; None where it yields nothing for certain."""
        found = NOTHING
        empty = bool(value)
        for atom in value:
            if isinstance(atom, Store) and atom.fixed and not atom.fields and not atom.rest:
                continue
            empty = False
            found = join(found, self.element_of(atom))
        return None if empty else found

    def element_of(self, atom: Any) -> Value:
        """Return what a loop over an atom yields."""
        return atom.all() if isinstance(atom, Store) else A_NUMBER

    def part(self, value: Value, index: int, count: int, star: int | None) -> Value:
        """Return what the i-th of several targets gets when a value is unpacked."""
        found = NOTHING
        for atom in value:
            if isinstance(atom, Store) and (star is None or index < star):
                found = join(found, atom.get(index))
            elif isinstance(atom, Symbol) and (star is None or index < star):
                found = join(found, only(atom.element(index)))
            else:
                found = join(found, self.element_of(atom))
        return found

    def collect(self, stack: list[Value], shape: Any) -> tuple[Arguments, int]:
        """Read a call's arguments off the stack; return them and how many there are."""
        starred, names = shape
        taken = len(starred) + len(names)
        given = stack[len(stack) - taken :]
        values: list[Value] = []
        rest = NOTHING
        for value, star in zip(given, starred, strict=False):
            if not star and not rest:
                values.append(value)
            elif not star:
                rest = join(rest, value)
            else:
                parts = None if rest else self.parts(value)
                if parts is None:
                    rest = join(rest, self.element(value) or NOTHING)
                else:
                    values.extend(parts)
        keywords: dict[str, Value] = {}
        named = NOTHING
        for name, value in zip(names, given[len(starred) :], strict=True):
            if name is not None:
                keywords[name] = value
                continue
            for atom in value:
                if isinstance(atom, Store):
                    atom.read = True
                    keywords.update({str(k): v for k, v in atom.fields.items()})
                    named = join(named, atom.rest)
                else:
                    named = join(named, self.element_of(atom))
        return Arguments(tuple(values), keywords, rest, named), taken

    def parts(self, value: Value) -> list[Value] | None:
        """Return the elements of a sequence where each is known, else None."""
        if len(value) == 1:
            (atom,) = value
            if isinstance(atom, Store) and atom.fixed and not atom.rest:
                atom.read = True
                count = len(atom.fields)
                if all(index in atom.fields for index in range(count)):
                    return [atom.fields[index] for index in range(count)]
        return None

    def truth(self, value: Value) -> bool | None:
        """Say whether a value is true or false for certain."""
        seen = {
            bool(atom.value) if isinstance(atom, Const) else True
            for atom in value
            if isinstance(atom, (Const, Function, Class, Kernel))
        }
        unknown = any(not isinstance(a, (Const, Function, Class, Kernel)) for a in value)
        return None if unknown or len(seen) != 1 else seen.pop()

    def both(self, left: Value, right: Value, *, conjunction: bool) -> Value:
        """Return what `and` and `or` make of values; the first one does not decide."""
        known = self.truth(left)
        if known is conjunction:
            return right
        # Only what does not end the evaluation early goes on to the right side.
        kept = frozenset(
            a for a in left if not (isinstance(a, Const) and bool(a.value) is conjunction)
        )
        return join(kept, right)

    def text(self, parts: tuple[Value, ...]) -> Value:
        """Return what an f-string makes."""
        known = [constant_of(part) for part in parts]
        if all(known):
            return self.pool.constant("".join(str(part.value) for part in known if part)[:_LARGE])
        return A_NUMBER

    # Constants.

    def fold_binary(self, name: str, left: Value, right: Value) -> Value | None:
        """Return what an operator makes of constants; None where one of them isn't known."""
        one, other = constant_of(left), constant_of(right)
        function = _BINARY.get(name)
        if one is None or other is None or function is None:
            return None
        sizes = (one.value, other.value)
        if any(isinstance(v, int) and abs(v) > 1 << 64 for v in sizes):
            return A_NUMBER
        texts = [v for v in sizes if isinstance(v, (str, bytes))]
        repeated = name == "Mult" and any(isinstance(v, int) and v > _LARGE for v in sizes)
        if texts and (repeated or (name == "Mod" and is_wide(texts[0]))):
            return A_NUMBER
        try:
            result = function(one.value, other.value)
        except Exception:  # noqa: BLE001 - the file's own mistake
            return A_NUMBER
        if isinstance(result, (str, bytes)) and len(result) > 1 << 12:
            return A_NUMBER
        return self.pool.constant(result)

    def fold_unary(self, name: str, value: Value) -> Value | None:
        """Return what an operator makes of a constant."""
        if name == "Not":
            known = self.truth(value)
            return None if known is None else self.pool.constant(not known)
        constant = constant_of(value)
        if constant is None:
            return None
        try:
            return self.pool.constant(_UNARY[name](constant.value))
        except Exception:  # noqa: BLE001 - the file's own mistake
            return A_NUMBER

    def fold_compare(self, names: tuple[str, ...], values: tuple[Value, ...]) -> Value | None:
        """Return what a comparison makes of constants."""
        if len(names) != 1 or not values[0] or not values[1]:
            return None
        name = names[0]
        if name in ("Is", "IsNot") and constant_of(values[1]) is not None:
            none = constant_of(values[1])
            if (
                none is not None
                and none.value is None
                and all(isinstance(a, _SOLID) for a in values[0])
            ):
                return self.pool.constant(name == "IsNot")
        one, other = constant_of(values[0]), constant_of(values[1])
        if one is None or other is None:
            return None
        try:
            return self.pool.constant(bool(_COMPARE[name](one.value, other.value)))
        except Exception:  # noqa: BLE001 - the file's own mistake
            return A_NUMBER

    # Calls of functions of the file.

    def run(self, function: Function, arguments: Arguments) -> Value:
        """Return what a function of the file returns."""
        return self.machine.invoke(function, arguments.bind(function, self.machine))

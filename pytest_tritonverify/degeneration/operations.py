"""The machine's operations on values, names and definitions.

An operation `_do_<name>` belongs to the instruction `<name>`: it gets the frame, the node and the
instruction's argument, takes what it needs from the stack, and leaves its result there.
"""

# ruff: noqa: ARG002 - operations share one signature

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.core import Core
from pytest_tritonverify.degeneration.frames import Frame, Summary
from pytest_tritonverify.degeneration.values import (
    AN_OPAQUE,
    NOTHING,
    Class,
    Function,
    Scope,
    constant_of,
    join,
    join_all,
    only,
    widened,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.code import Code, Label


class Operations(Core):
    """Operations that don't change the flow of control."""

    def _do_constant(self, frame: Frame, node: ast.AST, value: object) -> None:
        frame.stack.append(self.pool.constant(value))

    def _do_unknown(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.stack.append(AN_OPAQUE)

    def _do_load(self, frame: Frame, node: ast.AST, name: str) -> None:
        value = frame.scope.names.get(name)
        frame.stack.append(self.lookup(frame.scope.parent, name) if value is None else value)

    def _do_store(self, frame: Frame, node: ast.AST, name: str) -> None:
        value = frame.stack.pop()
        outer = frame.code.outer.get(name) if frame.code.outer else None
        if outer is None:
            frame.set(name, value)
            return
        scope: Scope | None = self.module
        if not outer:
            scope = frame.scope.parent
            while scope is not None and name not in scope.names:
                scope = scope.parent
        if scope is not None:
            before = scope.names.get(name, NOTHING)
            after = widened(join(before, value))
            scope.names[name] = after
            self.dirty = self.dirty or after != before

    def _do_copy(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.stack.append(frame.stack[-1])

    def _do_drop(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.stack.pop()

    def _do_attribute(self, frame: Frame, node: ast.Attribute, name: str) -> None:
        self.answer(frame, 1, self.semantics.attribute(frame.stack[-1], name, node))

    def _do_subscript(self, frame: Frame, node: ast.Subscript, argument: None) -> None:
        value = self.semantics.subscript(frame.stack[-2], frame.stack[-1], node)
        self.answer(frame, 2, value)

    def _do_slice(self, frame: Frame, node: ast.AST, count: int) -> None:
        if count:
            del frame.stack[-count:]
        frame.stack.append(self.pool.external("builtins.slice.made"))

    def _do_binary(self, frame: Frame, node: ast.AST, operator: str) -> None:
        value = self.semantics.binary(operator, frame.stack[-2], frame.stack[-1], node)
        self.answer(frame, 2, value)

    def _do_inplace(self, frame: Frame, node: ast.AST, operator: str) -> None:
        self._do_binary(frame, node, operator)

    def _do_unary(self, frame: Frame, node: ast.AST, operator: str) -> None:
        self.answer(frame, 1, self.semantics.unary(operator, frame.stack[-1], node))

    def _do_compare(self, frame: Frame, node: ast.Compare, operators: tuple[str, ...]) -> None:
        count = len(operators) + 1
        values = tuple(frame.stack[-count:])
        self.answer(frame, count, self.semantics.compare(operators, values, node))

    def _do_short(self, frame: Frame, node: ast.AST, argument: tuple[bool, Label]) -> None:
        both, end = argument
        known = self.semantics.truth(frame.stack[-1])
        if known is not None and known is not both:
            frame.position = end.position

    def _do_both(self, frame: Frame, node: ast.AST, both: bool) -> None:  # noqa: FBT001 - an instruction's argument
        right, left = frame.stack.pop(), frame.stack.pop()
        frame.stack.append(self.semantics.both(left, right, conjunction=both))

    def _do_text(self, frame: Frame, node: ast.AST, count: int) -> None:
        parts = tuple(frame.stack[len(frame.stack) - count :])
        del frame.stack[len(frame.stack) - count :]
        frame.stack.append(self.semantics.text(parts))

    def _do_sequence(self, frame: Frame, node: ast.AST, starred: tuple[bool, ...]) -> None:
        count = len(starred)
        values = frame.stack[len(frame.stack) - count :]
        del frame.stack[len(frame.stack) - count :]
        store = self.store(node)
        known = True
        for index, (value, star) in enumerate(zip(values, starred, strict=True)):
            known = known and not star
            element = self.semantics.element(value) if star else value
            self.put(store, index, element or NOTHING, known=known)
        store.fixed = known
        frame.stack.append(only(store))

    def _do_mapping(self, frame: Frame, node: ast.AST, spread: tuple[bool, ...]) -> None:
        store = self.store(node)
        count = 2 * len(spread) - sum(spread)
        values = iter(frame.stack[len(frame.stack) - count :])
        for whole in spread:
            if whole:
                self.put(store, None, self.semantics.element(next(values)) or NOTHING, known=False)
                continue
            key = constant_of(next(values))
            self.put(store, key.value if key else None, next(values), known=key is not None)
        del frame.stack[len(frame.stack) - count :]
        frame.stack.append(only(store))

    def _do_gathering(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.stack.append(only(self.store(node)))

    def _do_gather(self, frame: Frame, node: ast.AST, argument: None) -> None:
        made = self.store(node)
        parts = frame.blocks[-1].parts
        if not parts:
            self.put(made, None, frame.stack.pop(), known=False)
            return
        self.put(made, frame.blocks[-1].rounds, frame.stack.pop())
        made.fixed = True

    def _do_unpack(self, frame: Frame, node: ast.AST, argument: tuple[int, int | None]) -> None:
        count, star = argument
        value = frame.stack.pop()
        parts = [self.semantics.part(value, i, count, star) for i in range(count)]
        if star is not None:
            rest = self.store(node)
            self.put(rest, None, parts[star], known=False)
            parts[star] = only(rest)
        frame.stack.extend(reversed(parts))

    def _do_store_attribute(self, frame: Frame, node: ast.Attribute, name: str) -> None:
        owner, value = frame.stack.pop(), frame.stack.pop()
        self.semantics.store_attribute(owner, name, value, node)

    def _do_store_item(self, frame: Frame, node: ast.Subscript, argument: None) -> None:
        index, owner, value = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
        self.semantics.store_item(owner, index, value, node)

    def _do_call(self, frame: Frame, node: ast.Call, shape: Any) -> None:
        arguments, taken = self.semantics.collect(frame.stack, shape)
        value = self.semantics.call(frame.stack[-taken - 1], arguments, node)
        self.answer(frame, taken + 1, value)

    def _do_yield(self, frame: Frame, node: ast.AST, whole: bool) -> None:  # noqa: FBT001 - an instruction's argument
        value = frame.stack.pop()
        inner = (self.semantics.element(value) or NOTHING) if whole else value
        frame.yielded = join(frame.yielded, inner)
        frame.stack.append(AN_OPAQUE)

    # Operations: definitions.

    def _do_import(self, frame: Frame, node: ast.Import, argument: None) -> None:
        for alias in node.names:
            self.semantics.imported(alias.name, node)
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            frame.set(alias.asname or name, self.semantics.external(name))

    def _do_import_from(self, frame: Frame, node: ast.ImportFrom, argument: None) -> None:
        module = "." * node.level + (node.module or "")
        self.semantics.imported(module, node)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                value = self.semantics.external(f"{module}.{alias.name}")
                frame.set(alias.asname or alias.name, value)

    def _do_function(self, frame: Frame, node: ast.AST, argument: tuple[Code, Any]) -> None:
        code, defaults = argument
        count = len(defaults)
        values = frame.stack[len(frame.stack) - count :]
        del frame.stack[len(frame.stack) - count :]
        inside = isinstance(frame.code.node, ast.ClassDef)
        scope = frame.scope.parent if inside and frame.scope.parent else frame.scope
        given = dict(zip(defaults, values, strict=True))
        made = self.pool.one((Function, node, scope), lambda: Function(node, code, scope, given))
        (function,) = made
        assert isinstance(function, Function)  # noqa: S101 - the key says so
        function.defaults = given
        function.home = frame.home
        frame.stack.append(made)

    def _do_decorate(self, frame: Frame, node: ast.AST, definition: ast.AST) -> None:
        value = self.semantics.decorate(frame.stack[-2], frame.stack[-1], node, definition)
        self.answer(frame, 2, value)

    def _do_class(self, frame: Frame, node: ast.ClassDef, argument: Any) -> None:
        count, names, code = argument
        taken = count + len(names)
        values = frame.stack[len(frame.stack) - taken :]
        bases = join_all(values[:count])
        made = self.pool.one((Class, node), lambda: Class(node, bases))
        (kind,) = made
        assert isinstance(kind, Class)  # noqa: S101 - the key says so
        kind.bases = join(kind.bases, bases)
        self.semantics.defined(kind, dict(zip(names, values[count:], strict=True)))
        summary = self.summaries.get((kind,))
        if summary is None:
            summary = self.summaries[kind,] = Summary()
            inside = isinstance(frame.code.node, ast.ClassDef)
            parent = frame.scope.parent if inside else frame.scope
            scope = Scope(parent, kind)
            self.waiting.append(Frame(code, scope, summary, home=kind, guarded=frame.guarded))
        self.answer(frame, taken, made)

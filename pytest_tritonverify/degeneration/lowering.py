"""Turn the body of a function, class or module into a flat list of instructions.

Instructions are in the order of evaluation and work on a stack, so that running them needs neither
recursion nor a walk over the tree: deep nesting costs nothing. Branches become blocks of
*alternatives*, which the machine evaluates one after the other and joins.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from pytest_tritonverify.degeneration import sure_imports
from pytest_tritonverify.degeneration.code import Code, Instruction, Label

_Item: TypeAlias = ast.AST | Instruction | Label | Callable[[], None]
_TERMINATORS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def lower(code: Code) -> list[Instruction]:
    """Return a body's instructions."""
    return _Lowering(code).run()


class _Lowering:
    """One body on its way into instructions; an explicit stack stands for recursion."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.names = dict(code.renamed)
        self.done: list[Instruction] = []
        self.todo: list[_Item] = []
        self.fresh = 0

    def run(self) -> list[Instruction]:
        node = self.code.node
        if isinstance(node, ast.Lambda):
            self.push(node.body, ("return", node, None))
        else:
            self.push(*self.block(node.body))
        todo, done = self.todo, self.done
        while todo:
            item = todo.pop()
            kind = type(item)
            if isinstance(item, tuple):
                done.append(item)
            elif isinstance(item, ast.Name):  # most nodes are names and constants
                done.append(("load", item, self.names.get(item.id, item.id)))
            elif isinstance(item, ast.Constant):
                done.append(("constant", item, item.value))
            elif kind in _HANDLERS:
                _HANDLERS[kind](self, item)
            elif isinstance(item, Label):
                item.position = len(done)
            elif isinstance(item, ast.expr):
                done.append(("unknown", item, None))
            elif callable(item):
                item()
        return done

    def push(self, *items: _Item) -> None:
        self.todo.extend(reversed(items))

    def block(self, body: list[ast.stmt]) -> list[_Item]:
        for index, statement in enumerate(body):
            if isinstance(statement, _TERMINATORS):
                return list(body[: index + 1])
        return list(body)

    # Expressions.

    def on_attribute(self, node: ast.Attribute) -> None:
        self.push(node.value, ("attribute", node, node.attr))

    def on_subscript(self, node: ast.Subscript) -> None:
        self.push(node.value, node.slice, ("subscript", node, None))

    def on_slice(self, node: ast.Slice) -> None:
        parts = [p for p in (node.lower, node.upper, node.step) if p is not None]
        self.push(*parts, ("slice", node, len(parts)))

    def on_starred(self, node: ast.Starred) -> None:
        self.push(node.value)

    def on_call(self, node: ast.Call) -> None:
        shape = tuple(isinstance(a, ast.Starred) for a in node.args)
        names = tuple(k.arg for k in node.keywords)
        values = [k.value for k in node.keywords]
        self.push(node.func, *node.args, *values, ("call", node, (shape, names)))

    def on_binop(self, node: ast.BinOp) -> None:
        self.push(node.left, node.right, ("binary", node, type(node.op).__name__))

    def on_unaryop(self, node: ast.UnaryOp) -> None:
        self.push(node.operand, ("unary", node, type(node.op).__name__))

    def on_compare(self, node: ast.Compare) -> None:
        names = tuple(type(op).__name__ for op in node.ops)
        self.push(node.left, *node.comparators, ("compare", node, names))

    def on_boolop(self, node: ast.BoolOp) -> None:
        both = isinstance(node.op, ast.And)
        end = Label()
        items: list[_Item] = [node.values[0]]
        for value in node.values[1:]:
            items += [("short", node, (both, end)), value, ("both", node, both)]
        self.push(*items, end)

    def on_ifexp(self, node: ast.IfExp) -> None:
        other, end = Label(), Label()
        self.push(
            *(node.test, ("if", node, (other, end)), node.body, ("keep", node, None)),
            *(other, ("alternative", node, end), node.orelse, ("keep", node, None)),
            *(end, ("end", node, False), ("kept", node, None)),
        )

    def on_namedexpr(self, node: ast.NamedExpr) -> None:
        self.push(node.value, ("copy", node, None), *self.target(node.target))

    def on_tuple(self, node: ast.Tuple) -> None:
        starred = tuple(isinstance(e, ast.Starred) for e in node.elts)
        self.push(*node.elts, ("sequence", node, starred))

    def on_list(self, node: ast.List) -> None:
        starred = tuple(isinstance(e, ast.Starred) for e in node.elts)
        self.push(*node.elts, ("sequence", node, starred))

    def on_set(self, node: ast.Set) -> None:
        starred = tuple(isinstance(e, ast.Starred) for e in node.elts)
        self.push(*node.elts, ("sequence", node, starred))

    def on_dict(self, node: ast.Dict) -> None:
        items: list[_Item] = []
        for key, value in zip(node.keys, node.values, strict=True):
            items += [value] if key is None else [key, value]
        self.push(*items, ("mapping", node, tuple(k is None for k in node.keys)))

    def on_joinedstr(self, node: ast.JoinedStr) -> None:
        self.push(*node.values, ("text", node, len(node.values)))

    def on_formattedvalue(self, node: ast.FormattedValue) -> None:
        self.push(node.value)

    def on_await(self, node: ast.Await) -> None:
        self.push(node.value)

    def on_yield(self, node: ast.Yield) -> None:
        self.code.generator = True
        value: _Item = node.value if node.value is not None else ("constant", node, None)
        self.push(value, ("yield", node, False))

    def on_yieldfrom(self, node: ast.YieldFrom) -> None:
        self.code.generator = True
        self.push(node.value, ("yield", node, True))

    def on_lambda(self, node: ast.Lambda) -> None:
        self.function(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        code = Code(node, self.names)
        named = code.parameters[: code.positional]
        defaults = node.args.defaults
        names = named[len(named) - len(defaults) :] if defaults else []
        values: list[_Item] = list(defaults)
        for parameter, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if value is not None:
                names.append(parameter.arg)
                values.append(value)
        self.push(*values, ("function", node, (code, tuple(names))))

    def on_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self.comprehension(node, node.elt)

    on_setcomp = on_generatorexp = on_listcomp

    def on_dictcomp(self, node: ast.DictComp) -> None:
        self.comprehension(node, node.value, node.key)

    def comprehension(self, node: Any, element: ast.expr, key: ast.expr | None = None) -> None:
        before = self.names
        items: list[_Item] = [("gathering", node, None)]
        ends: list[_Item] = []
        inner = dict(before)
        for generator in node.generators:
            for name in ast.walk(generator.target):
                if isinstance(name, ast.Name):
                    self.fresh += 1
                    inner[name.id] = f"{name.id}#{self.fresh}"
        first = True
        # Of each element of what it goes through, it makes one: they can be told apart.
        single = key is None and len(node.generators) == 1 and not node.generators[0].ifs
        for generator in node.generators:
            start, end = Label(), Label()
            items.append(generator.iter)
            if first:  # the first iterable is evaluated outside
                items.append(lambda: setattr(self, "names", inner))
                first = False
            loop = "parts" if single else "loop"
            items += [(loop, generator, end), start, ("element", generator, None)]
            items.append(partial(self.store, generator.target))
            for condition in generator.ifs:
                items += [condition, ("require", generator, None)]
            ends = [end, ("again", generator, start), *ends]
        if key is not None:
            items += [key, ("drop", node, None)]
        items += [element, ("gather", node, None), *ends]
        items.append(lambda: setattr(self, "names", before))
        self.push(*items)

    # Targets. The value to be stored lies on the stack.

    def store(self, node: ast.expr) -> None:
        self.push(*self.target(node))

    def target(self, node: ast.expr) -> list[_Item]:
        pending: list[ast.expr] = [node]
        items: list[_Item] = []
        while pending:
            target = pending.pop()
            if isinstance(target, ast.Starred):
                target = target.value
            if isinstance(target, ast.Name):
                items.append(("store", target, self.names.get(target.id, target.id)))
            elif isinstance(target, (ast.Tuple, ast.List)):
                star = [i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)]
                items.append(
                    ("unpack", target, (len(target.elts), star[0] if star else None)),
                )
                pending.extend(reversed(target.elts))
            elif isinstance(target, ast.Attribute):
                items += [target.value, ("store_attribute", target, target.attr)]
            elif isinstance(target, ast.Subscript):
                items += [target.value, target.slice, ("store_item", target, None)]
            else:
                items.append(("drop", target, None))
        return items

    # Statements.

    def on_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.push(node.value, ("drop", node, None))

    def on_assign(self, node: ast.Assign) -> None:
        items: list[_Item] = [node.value]
        for target in node.targets[:-1]:
            items += [("copy", node, None), *self.target(target)]
        self.push(*items, *self.target(node.targets[-1]))

    def on_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.push(node.value, *self.target(node.target))

    def on_augassign(self, node: ast.AugAssign) -> None:
        change: Instruction = ("inplace", node, type(node.op).__name__)
        self.push(node.target, node.value, change, *self.target(node.target))

    def on_return(self, node: ast.Return) -> None:
        value: _Item = node.value if node.value is not None else ("constant", node, None)
        self.push(value, ("return", node, None))

    def on_raise(self, node: ast.Raise) -> None:
        items: list[_Item] = []
        for part in (node.exc, node.cause):
            if part is not None:
                items += [part, ("drop", node, None)]
        self.push(*items, ("die", node, None))

    def on_assert(self, node: ast.Assert) -> None:
        self.push(node.test, ("require", node, None))

    def on_break(self, node: ast.Break) -> None:
        self.push(("leave", node, True))

    def on_continue(self, node: ast.Continue) -> None:
        self.push(("leave", node, False))

    def on_global(self, node: ast.Global) -> None:
        self.code.outer.update(dict.fromkeys(node.names, True))

    def on_nonlocal(self, node: ast.Nonlocal) -> None:
        self.code.outer.update(dict.fromkeys(node.names, False))

    def on_import(self, node: ast.Import) -> None:
        self.push(("import", node, None))

    def on_importfrom(self, node: ast.ImportFrom) -> None:
        self.push(("import_from", node, None))

    def on_functiondef(self, node: ast.FunctionDef) -> None:
        self.decorated(node, lambda: self.function(node))

    def on_asyncfunctiondef(self, node: ast.AsyncFunctionDef) -> None:
        self.decorated(node, lambda: self.function(node))

    def on_classdef(self, node: ast.ClassDef) -> None:
        names = tuple(k.arg for k in node.keywords)
        code = Code(node, self.names)
        made: list[_Item] = [*node.bases, *(k.value for k in node.keywords)]
        made.append(("class", node, (len(node.bases), names, code)))
        self.decorated(node, lambda: self.push(*made))

    def decorated(self, node: Any, define: Callable[[], None]) -> None:
        name = self.names.get(node.name, node.name)
        after: list[_Item] = [("decorate", d, node) for d in reversed(node.decorator_list)]
        self.push(*node.decorator_list, define, *after, ("store", node, name))

    def on_if(self, node: ast.If) -> None:
        other, end = Label(), Label()
        self.push(
            *(node.test, ("if", node, (other, end)), *self.block(node.body)),
            *(other, ("alternative", node, end), *self.block(node.orelse)),
            *(end, ("end", node, False)),
        )

    def on_for(self, node: ast.For) -> None:
        start, end = Label(), Label()
        self.push(
            *(node.iter, ("loop", node, end), start, ("element", node, None)),
            *(*self.target(node.target), *self.block(node.body)),
            *(end, ("again", node, start), *self.block(node.orelse)),
        )

    on_asyncfor = on_for

    def on_while(self, node: ast.While) -> None:
        start, end = Label(), Label()
        self.push(
            *(("loop", node, end), start, node.test, ("until", node, None)),
            *self.block(node.body),
            *(end, ("again", node, start), *self.block(node.orelse)),
        )

    def on_with(self, node: ast.With) -> None:
        items: list[_Item] = []
        for item in node.items:
            items += [item.context_expr, ("enter", node, None)]
            optional = item.optional_vars
            items += self.target(optional) if optional is not None else [("drop", node, None)]
        self.push(*items, *self.block(node.body))

    on_asyncwith = on_with

    def on_try(self, node: ast.Try) -> None:
        ends = [Label() for _ in range(len(node.handlers) + 1)]
        items: list[_Item] = [("alternatives", node, ends[0])]
        items += self.block([*node.body, *node.orelse])
        sure = sure_imports.only_in(node)
        for index, handler in enumerate(node.handlers):
            items += [ends[index], ("alternative", node, ends[index + 1])]
            if sure:
                items.append(("die", handler, None))
                continue
            items.append(("handler", handler, self.names.get(handler.name or "", handler.name)))
            items += self.block(handler.body)
        items += [ends[-1], ("end", node, bool(node.finalbody)), *self.block(node.finalbody)]
        self.push(*items)

    on_trystar = on_try

    def on_match(self, node: ast.Match) -> None:
        ends = [Label() for _ in range(len(node.cases) + 1)]
        items: list[_Item] = [node.subject, ("alternatives", node, ends[0])]
        for index, case in enumerate(node.cases):
            names = [
                found
                for part in ast.walk(case.pattern)
                for found in (getattr(part, "name", None), getattr(part, "rest", None))
                if isinstance(found, str)
            ]
            items += [item for n in names for item in (("subject", case, None), ("store", case, n))]
            if case.guard is not None:
                items += [case.guard, ("require", case, None)]
            items += [*self.block(case.body), ends[index], ("alternative", node, ends[index + 1])]
        items += [ends[-1], ("end", node, False), ("drop", node, None)]
        self.push(*items)


_HANDLERS: dict[type, Callable[[_Lowering, Any], None]] = {
    kind: method
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
    for method in (getattr(_Lowering, f"on_{kind.__name__.lower()}", None),)
    if method is not None
}

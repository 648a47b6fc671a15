"""How the interpreter turns the source of a kernel into a function that it can run."""

from __future__ import annotations

import ast
from types import CellType, CodeType, FunctionType, SimpleNamespace
from typing import Any

from pytest_tritonverify.interpreter import semantics
from pytest_tritonverify.interpreter.patching import missing, replace, set_for_launch
from pytest_tritonverify.interpreter.statements import Statements

_HOOKS = ("ASTTransformer", "FunctionRewriter", "_patch_lang_core")
_REWRITER_HOOKS = ("_compile_and_exec", "_find_def", "_transform_ast")
_REDUCTIONS = (("ReduceOps", "generic_reduce"), ("ScanOps", "generic_scan"))

# What the rewritten source calls a meaning of `Statements`: no kernel has such a name.
_PREFIX = "_tritonverify_"
_CHOICES = {"min": "minimum", "max": "maximum"}


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps kernels from being read as the compiler reads them, if anything."""
    absent = missing(interpreter, _HOOKS)
    if not absent:
        absent = missing(interpreter.FunctionRewriter, _REWRITER_HOOKS)
    if absent:
        return f"its interpreter has no {', '.join(absent)}"
    return semantics.obstacle(interpreter)


def install(interpreter: Any) -> None:
    """Correct the interpreter's module in place, without an `obstacle`."""
    statements = Statements(interpreter)
    rewriter = interpreter.FunctionRewriter
    replace(rewriter, "_find_def", lambda _: _find_def)
    replace(rewriter, "_transform_ast", lambda _: _transformer(interpreter))
    replace(rewriter, "_compile_and_exec", lambda _: _compiler(interpreter, statements))
    for owner, name in _REDUCTIONS:
        if hasattr(getattr(interpreter, owner, None), name):
            replace(getattr(interpreter, owner), name, _with_rewritten_combination)

    def make(original: Any) -> Any:
        def _patch_lang_core(lang: Any, *scope: Any) -> None:
            original(lang, *scope)
            set_for_launch(lang, "range", statements.counted, scope)

        return _patch_lang_core

    replace(interpreter, "_patch_lang_core", make)


def _find_def(_: Any, lines: list[str]) -> int:
    """Return the line of the definition, from 1: a docstring may have one like it further down."""
    return next((n for n, line in enumerate(lines, 1) if line.strip().startswith("def ")), 0)


def _transformer(interpreter: Any) -> Any:
    # Triton's own, but for what is read otherwise here.
    transformer = type("Transformer", (_Meanings, interpreter.ASTTransformer), {})

    def _transform_ast(self: Any, source: str) -> ast.Module:
        tree: ast.Module = transformer(self.fn).visit(ast.parse(source))
        ast.fix_missing_locations(tree)
        ast.increment_lineno(tree, self.def_file_lineno - 1)
        self.spoken = {
            node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)
        }
        return tree

    return _transform_ast


def _compiler(interpreter: Any, statements: Statements) -> Any:
    """Make the function anew with the variables, defaults and annotations of the original.

    Triton's own way evaluates the definition in the module of the kernel, where the variables of
    an enclosing function are unknown and annotations become strings. It also writes every name of
    the interpreter into that module: `np` or `math` would work there without being imported.
    """

    def _compile_and_exec(self: Any, tree: ast.Module) -> Any:
        original = self.fn
        added = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id not in self.spoken
        }
        cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
        for name in added:
            if name.startswith(_PREFIX):
                cells[name] = CellType(getattr(statements, name.removeprefix(_PREFIX)))
            elif name in vars(interpreter):  # others are parameters of lambdas
                cells[name] = CellType(vars(interpreter)[name])
        factory = ast.parse(f"def factory({', '.join(cells)}): pass")
        factory.body[0].body = tree.body  # type: ignore[attr-defined]
        code = compile(factory, self.filename, "exec", dont_inherit=True)
        kernel = _inner(_inner(code))
        made = FunctionType(
            kernel,
            original.__globals__,
            original.__name__,
            original.__defaults__,
            tuple(cells[name] for name in kernel.co_freevars),
        )
        made.__kwdefaults__ = original.__kwdefaults__
        made.__annotations__ = original.__annotations__
        made.__qualname__ = original.__qualname__
        made.__module__ = original.__module__
        made.__doc__ = original.__doc__
        return made

    return _compile_and_exec


def _inner(code: CodeType) -> CodeType:
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


def _with_rewritten_combination(original: Any) -> Any:
    """Let a combine function of the kernel's be read as every other function is."""

    def generic(self: Any, *args: Any) -> Any:
        combine = self.combine_fn
        if hasattr(combine, "rewrite"):
            self.combine_fn = SimpleNamespace(fn=combine.rewrite())
        try:
            return original(self, *args)
        finally:
            self.combine_fn = combine

    return generic


def _call(meaning: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_PREFIX + meaning, ast.Load()), list(args), [])


class _Meanings(ast.NodeTransformer):
    """Puts the meanings of `Statements` in the place of Python's."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        code = function.__code__
        variables = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        # Names that are not what Python calls so.
        self._taken = variables | function.__globals__.keys()
        self._function = function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # The function is given those of the original.
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
        node.args.kw_defaults = [
            default and ast.Constant(None) for default in node.args.kw_defaults
        ]
        node.returns = None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) > 1:
            raise ValueError("Multiple assignments are not supported")
        several = isinstance(node.targets[0], (ast.Tuple, ast.List))
        node.value = _call("unpacked" if several else "assigned", node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        constant = self._is_constant(node.annotation)
        self.generic_visit(node)
        if node.value is not None and not constant:
            node.value = _call("assigned", node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            call = _call("iterated", node.iter.func, *node.iter.args)
            call.keywords = node.iter.keywords
            node.iter = call
        return node

    def visit_If(self, node: ast.If) -> Any:
        return self._conditional(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self._conditional(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            return node  # a name bound in a lambda would stay there
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        meaning = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        call = _call(meaning, *(ast.Lambda(nothing, value) for value in node.values))
        return ast.copy_location(call, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(_call("negation", node.operand), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _CHOICES and name not in self._taken:
            chosen = ast.Name(_PREFIX + _CHOICES[name], ast.Load())
            node.func = ast.copy_location(chosen, node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr != "value" or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(_call("value", node.value), node)

    def _conditional(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = ast.copy_location(_call("truth", node.test), node.test)
        return node

    def _is_constant(self, annotation: ast.expr) -> bool:
        text = ast.unparse(annotation)
        if "constexpr" in text:
            return True
        found = self._function.__globals__.get(text)
        return isinstance(found, type) and found.__name__ == "constexpr"

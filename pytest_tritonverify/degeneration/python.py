"""Functions of Python and its library that call, fetch, compute or import."""

# ruff: noqa: ARG001, ARG005 - handlers share one signature

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import calling, findings, instances
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    AN_OPAQUE,
    HOST,
    HOST_RESULT,
    HOSTED,
    NOTHING,
    TENSOR,
    TENSORS,
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Parent,
    Prepared,
    Store,
    Symbol,
    Value,
    Wrapped,
    constant_of,
    join,
    join_all,
    only,
    text_of,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.host import Host

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//",
    "mod": "%", "pow": "**", "neg": "-", "pos": "+", "and_": "&", "or_": "|", "xor": "^",
    "invert": "~", "inv": "~", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "abs": "abs",
}  # fmt: skip
_COMPUTING = frozenset({"abs", "divmod", "max", "min", "pow", "round", "sum", "any", "all"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "reversed", "sorted", "iter"})


def function(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911 - one branch for each kind
    """Return what a function of Python returns."""
    root, _, short = name.partition(".")
    if root == "operator":
        return _operator(host, short, arguments, node)
    if root in ("math", "cmath"):
        return _mathematics(host, arguments)
    if root == "importlib" or short == "__import__":
        return _import(host, name, arguments, node)
    if short.endswith((".__getattribute__", ".__getattr__")):
        return _getattr(host, arguments, node)
    if short.endswith(".__setattr__"):
        return _setattr(host, arguments, node)
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(host, arguments, node)
    if root == "builtins" and short in _COMPUTING:
        return _computing(host, short, arguments, node)
    if root == "builtins" and short in _CONTAINERS:
        key = arguments.keywords.get("key", NOTHING)
        if key:
            part = host.element(arguments.get(0)) or NOTHING
            calling.call(host, key, calling.given(part), node)
        return container(host, node, arguments)
    if root == "itertools":
        return container(host, node, arguments)
    if short in ("int", "float", "bool", "complex"):
        return _converted(host, short, arguments.get(0))
    return A_NUMBER


def _converted(host: Host, kind: str, value: Value) -> Value:
    """Return what a value becomes as an `int`, a `float` and so on."""
    constant = constant_of(value)
    if constant is None or type(constant.value) not in (int, float, bool):
        if value & {HOST_RESULT}:
            return only(HOST_RESULT)
        return only(HOST) if value & (TENSORS | HOSTED) else A_NUMBER
    kinds: dict[str, Callable[[Any], object]] = {"int": int, "float": float, "bool": bool}
    try:
        return host.pool.constant(kinds[kind](constant.value))
    except (KeyError, OverflowError, ValueError):
        return A_NUMBER


def _operator(host: Host, short: str, arguments: Arguments, node: ast.AST) -> Value:
    plain = short.strip("_")
    plain = plain[1:] if plain[:1] == "i" and plain[1:] in _OPERATORS and plain != "inv" else plain
    symbol = _OPERATORS.get(plain) or _OPERATORS.get(f"{plain}_")
    if symbol is not None:
        return host.operate(symbol, arguments.values, node)
    if short == "getitem":
        return host.subscript(arguments.get(0), arguments.get(1), node)
    if short == "setitem":
        host.store_item(arguments.get(0), arguments.get(1), arguments.get(2), node)
        return A_NUMBER
    if short == "call":
        return calling.call(host, arguments.get(0), arguments.after(1), node)
    how = {"methodcaller": "method", "attrgetter": "attribute", "itemgetter": "item"}.get(short)
    if how is not None:
        name, rest, keywords = arguments.get(0), arguments.values[1:], arguments.keywords
        key = (Prepared, how, name, rest)
        return host.pool.one(key, lambda: Prepared(how, name, rest, keywords))
    return _computing(host, short, arguments, node)


def _computing(host: Host, short: str, arguments: Arguments, node: ast.AST) -> Value:
    """Judge a function that applies operators to its arguments or to their elements."""
    values = list(arguments.values)
    if arguments.rest:
        values.append(arguments.rest)
    parts: list[Value] = []
    for value in values:
        found = (atom.all() if isinstance(atom, Store) else only(atom) for atom in value)
        parts += [part for part in found if part]
    key = arguments.keywords.get("key", NOTHING)
    if key:
        calling.call(host, key, calling.given(join_all(parts)), node)
    if short in ("any", "all"):
        return A_NUMBER
    return host.operate(short, tuple(parts), node) if parts else A_NUMBER


def _mathematics(host: Host, arguments: Arguments) -> Value:
    atoms = calling.deep(arguments.all())
    if atoms & (TENSORS | HOSTED):
        return only(HOST_RESULT)
    host.found.is_number(arguments.all())
    return A_NUMBER


def _import(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name not in ("builtins.__import__", "importlib.import_module", "importlib.__import__"):
        return AN_OPAQUE
    module = text_of(arguments.get(0, "name"))
    if module is None:
        host.report(findings.EVASION, node, "imports a module whose name is made at run time")
        return host.pool.external("torch.<unknown>")
    host.imported(module, node)
    nested = name == "importlib.import_module" or len(arguments.values) > 3  # noqa: PLR2004 - fromlist
    return host.external(module if nested else module.partition(".")[0])


def container(host: Host, node: ast.AST, arguments: Arguments) -> Value:
    """Return a container of what is handed over."""
    made = host.machine.store(node)
    for value in arguments.values:
        for atom in value:
            if isinstance(atom, Store):
                atom.read = True
                for key, field in atom.fields.items():
                    host.machine.put(made, key, field)
                host.machine.put(made, None, atom.rest, known=False)
                if len(arguments.values) == 1 and len(value) == 1:
                    made.fixed = atom.fixed
            elif isinstance(atom, Symbol):
                host.machine.put(made, None, only(atom.element()), known=False)
            elif not isinstance(atom, (Function, Bound)):
                host.machine.put(made, None, host.element_of(atom), known=False)
    for name, value in arguments.keywords.items():
        if name != "key":
            host.machine.put(made, name, value)
    return only(made)


def _getattr(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    owner, name = arguments.get(0), text_of(arguments.get(1))
    default = arguments.get(2)
    if name is not None:
        found = host.attribute(owner, name, node)
        if default and found >= AN_OPAQUE and len(found) == 1:
            return join(default, found) if not _is_own(owner) else default
        return join(found, default)
    result = default
    for atom in owner:
        if isinstance(atom, Instance):
            result = join(result, atom.store.all())
            for kind in atom.kind.lineage()[0]:
                for method in kind.store.fields:
                    result = join(result, host.attribute(only(atom), str(method), node))
        elif isinstance(atom, (Store, Class)):
            result = join(result, atom.all() if isinstance(atom, Store) else atom.store.all())
        elif isinstance(atom, External):
            result = join(result, host.pool.external(f"{atom.name}.<unknown>"))
        elif atom in TENSORS or isinstance(atom, Symbol):
            result = join(result, host.pool.external("torch.Tensor.<unknown>"))
    return result or AN_OPAQUE


def _is_own(owner: Value) -> bool:
    return all(isinstance(a, (Instance, Class)) for a in owner)


def _setattr(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    owner, name, value = arguments.get(0), text_of(arguments.get(1)), arguments.get(2)
    if name is not None:
        host.store_attribute(owner, name, value, node)
        return A_NUMBER
    for atom in owner:
        if isinstance(atom, (Instance, Class)):
            host.machine.put(atom.store, None, value, known=False)
        elif isinstance(atom, External):
            host.patch(f"{atom.name}.<unknown>", value, node)
    return A_NUMBER


def _super(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    frame = host.machine.frame
    home = frame.home
    for atom in arguments.get(0):
        if isinstance(atom, Class):
            home = atom
    parameters = frame.code.parameters
    receiver = arguments.get(1) or (
        frame.scope.names.get(parameters[0], NOTHING) if parameters else NOTHING
    )
    result = NOTHING
    for atom in receiver:
        if home is not None and isinstance(atom, (Instance, Class)):
            where = home
            key = (Parent, where, atom)
            result = join(result, host.pool.one(key, partial(Parent, where, atom)))
    return result or AN_OPAQUE


def _wrapper(how: str) -> Callable[[Host, Arguments, ast.AST], Value]:
    def wrap(host: Host, arguments: Arguments, node: ast.AST) -> Value:
        inner = arguments.get(0, "fget")
        plain = frozenset(a for a in inner if type(a).__name__ == "Kernel")
        if plain:
            return inner
        return host.pool.one((Wrapped, how, inner), lambda: Wrapped(how, inner))

    return wrap


def _partial(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    inner, rest, keywords = arguments.get(0), arguments.values[1:], arguments.keywords
    key = (Prepared, "partial", inner, rest, *keywords.items())
    return host.pool.one(key, lambda: Prepared("partial", inner, rest, keywords))


def _map(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    parts = [host.element(value) or NOTHING for value in arguments.values[1:]]
    made = host.machine.store(node)
    result = calling.call(host, arguments.get(0), calling.given(*parts), node)
    host.machine.put(made, None, result, known=False)
    return only(made)


def _filter(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    part = host.element(arguments.get(1)) or NOTHING
    if not all(isinstance(a, Const) for a in arguments.get(0)):
        calling.call(host, arguments.get(0), calling.given(part), node)
    made = host.machine.store(node)
    host.machine.put(made, None, part, known=False)
    return only(made)


def _reduce(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    part = join(host.element(arguments.get(1)) or NOTHING, arguments.get(2))
    first = calling.call(host, arguments.get(0), calling.given(part, part), node)
    return join(part, first)


def _zip(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    inner = host.machine.store((node, "tuple"))
    for index, value in enumerate(arguments.values):
        host.machine.put(inner, index, host.element(value) or NOTHING)
    host.machine.put(inner, None, host.element(arguments.rest) or NOTHING, known=False)
    made = host.machine.store(node)
    host.machine.put(made, None, only(inner), known=False)
    return only(made)


def _enumerate(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    inner = host.machine.store((node, "pair"))
    host.machine.put(inner, 0, A_NUMBER)
    host.machine.put(inner, 1, host.element(arguments.get(0)) or NOTHING)
    made = host.machine.store(node)
    host.machine.put(made, None, only(inner), known=False)
    return only(made)


def _next(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    return join(host.element(arguments.get(0)) or NOTHING, arguments.get(1))


def _range(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    for value in arguments.values:
        host.found.is_number(value)
    constants = [constant_of(value) for value in arguments.values]
    bounds = [c.value for c in constants if c is not None and isinstance(c.value, int)]
    made = host.machine.store(node)
    if bounds and len(bounds) == len(constants):
        try:
            empty = not range(*bounds)
        except (TypeError, ValueError):
            empty = False
        if empty:
            made.fixed = not made.fields and not made.rest
            return only(made)
    made.fixed = False
    host.machine.put(made, None, A_NUMBER, known=False)
    return only(made)


def _type(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    result = NOTHING
    for atom in arguments.get(0):
        if atom is TENSOR or isinstance(atom, Symbol) or atom in TENSORS:
            result = join(result, host.pool.external("torch.Tensor"))
        elif isinstance(atom, Instance):
            result = join(result, only(atom.kind))
    return result or A_NUMBER


def _variables(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    result = NOTHING
    for atom in arguments.get(0):
        if isinstance(atom, (Instance, Class)):
            result = join(result, only(atom.store))
        elif isinstance(atom, External):
            result = join(result, host.pool.external(f"{atom.name}.__dict__"))
    return result or host.pool.external("builtins.globals.made")


def _globals(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    return host.pool.external("builtins.globals.made")


def _character(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    constant = constant_of(arguments.get(0))
    if constant is not None and isinstance(constant.value, int) and 0 <= constant.value < 1 << 16:
        return host.pool.constant(chr(constant.value))
    return A_NUMBER


def _text(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    constant = constant_of(arguments.get(0))
    if constant is not None:
        return host.pool.constant(str(constant.value)[: 1 << 10])
    return A_NUMBER


def _open(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    name = text_of(arguments.get(0, "file"))
    if name is not None and name.endswith("_torch.py"):
        host.report(findings.REFERENCE, node, f"reads the task's own file `{name}`")
    return AN_OPAQUE


def _length(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    return A_NUMBER


_HANDLERS: dict[str, Callable[[Host, Arguments, ast.AST], Value]] = {
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.super": _super,
    "builtins.property": _wrapper("property"),
    "builtins.staticmethod": _wrapper("static"),
    "builtins.classmethod": _wrapper("class"),
    "functools.cached_property": _wrapper("property"),
    "functools.partial": _partial,
    "functools.partialmethod": _partial,
    "functools.reduce": _reduce,
    "functools.wraps": lambda host, arguments, node: host.pool.external("functools.wraps.made"),
    "functools.update_wrapper": lambda host, arguments, node: arguments.get(0),
    "builtins.map": _map,
    "itertools.starmap": _map,
    "builtins.filter": _filter,
    "builtins.zip": _zip,
    "itertools.zip_longest": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.next": _next,
    "builtins.range": _range,
    "builtins.type": _type,
    "builtins.vars": _variables,
    "builtins.globals": _globals,
    "builtins.locals": lambda host, arguments, node: AN_OPAQUE,
    "builtins.object": lambda host, arguments, node: AN_OPAQUE,
    "builtins.chr": _character,
    "builtins.str": _text,
    "builtins.open": _open,
    "builtins.len": _length,
    "builtins.isinstance": instances.is_instance,
    "builtins.hasattr": _length,
    "collections.namedtuple": instances.named_tuple,
}

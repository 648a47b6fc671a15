"""What a call does, by what is called."""

# ruff: noqa: ARG001 - handlers share one signature

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import (
    attributes,
    elements,
    findings,
    foreign,
    mistakes,
    tables,
    tensors,
    texts,
)
from pytest_tritonverify.degeneration.arguments import Arguments
from pytest_tritonverify.degeneration.findings import Finding
from pytest_tritonverify.degeneration.symbols import derived, symbols_in
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_TENSOR,
    ADDRESS,
    AN_OPAQUE,
    HOSTED,
    NOTHING,
    OPAQUE,
    TENSORS,
    Atom,
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Kernel,
    Launcher,
    Layer,
    Method,
    Prepared,
    Store,
    Symbol,
    Value,
    Wrapped,
    join,
    only,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.host import Host

CONTEXT = "torch.autograd.function.FunctionCtx"
_NO_CALLABLES = (Const, Symbol)


def given(*values: Value, **keywords: Value) -> Arguments:
    """Return arguments."""
    return Arguments(values, keywords)


def is_layer_class(name: str) -> bool:
    """Say whether a name is that of a class of torch.nn."""
    last = name.rpartition(".")[2]
    return (
        name.startswith(("torch.nn.", "torch_npu.contrib.module."))
        and last[:1].isupper()
        and not name.startswith(("torch.nn.functional.", "torch.nn.init."))
    )


def call(host: Host, value: Value, arguments: Arguments, node: ast.AST) -> Value:
    """Return what a call returns, and take note of what it does."""
    result = NOTHING
    callable_atoms = [a for a in value if type(a) in _HANDLERS]
    for atom in callable_atoms:
        result = join(result, _HANDLERS[type(atom)](host, atom, arguments, node))
    if callable_atoms or not value:
        return result
    return _unknown(host, value, arguments, node)


def _unknown(host: Host, value: Value, arguments: Arguments, node: ast.AST) -> Value:
    """Judge a call of something of which nothing is known."""
    mistake = mistakes.in_call(host, node)
    handed = has_tensors(arguments)
    if not handed:
        for atom in arguments.all():
            if isinstance(atom, (Function, Bound)):
                call(host, only(atom), given(AN_OPAQUE), node)
        kind = findings.MISTAKE if mistake else findings.UNRESOLVED
        return suspect(host, arguments, mistake or _UNSEEN, node, kind)
    if all(isinstance(a, Const) for a in value):
        return AN_OPAQUE
    if mistake:
        host.report(findings.MISTAKE, node, mistake)
        return AN_OPAQUE
    host.report(findings.UNRESOLVED, node, _UNSEEN)
    return A_TENSOR


_UNSEEN = "what is called with tensors here can't be seen in the file"


def suspect(
    host: Host,
    arguments: Arguments,
    reason: str,
    node: ast.AST,
    kind: str = findings.UNRESOLVED,
) -> Value:
    """Take note of a call that is a violation if an input that it gets is a tensor."""
    symbols = symbols_in(deep(arguments.all()))
    if not symbols:
        return AN_OPAQUE
    symbol = derived(host.pool, node, symbols)
    finding = Finding(kind, node, "", reason, host.guarded)
    host.found.suspect(symbol, finding)
    return only(symbol)


def has_tensors(arguments: Arguments) -> bool:
    """Say whether tensors are handed over, in containers too."""
    return any(a in TENSORS or a in HOSTED or a is ADDRESS for a in deep(arguments.all()))


def deep(value: Value) -> set[Atom]:
    """Return the atoms of a value and of the containers in it."""
    seen: set[Atom] = set()
    todo = list(value)
    while todo:
        atom = todo.pop()
        if atom in seen:
            continue
        seen.add(atom)
        if isinstance(atom, Store) and not atom.module:
            todo.extend(atom.all())
    return seen


def _function(host: Host, atom: Function, arguments: Arguments, node: ast.AST) -> Value:
    return host.run(atom, arguments)


def _bound(host: Host, atom: Bound, arguments: Arguments, node: ast.AST) -> Value:
    return call(host, only(atom.function), arguments.before(only(atom.receiver)), node)


def _wrapped(host: Host, atom: Wrapped, arguments: Arguments, node: ast.AST) -> Value:
    return call(host, atom.inner, arguments, node)


def _class(host: Host, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
    ours, outer = atom.lineage()
    instance = only(atom.instance)
    makers = [k.store.get("__new__") for k in ours if "__new__" in k.store.fields]
    result = instance
    if makers:
        makers_functions = frozenset(
            inner for a in makers[0] for inner in (a.inner if isinstance(a, Wrapped) else only(a))
        )
        result = join(result, call(host, makers_functions, arguments.before(only(atom)), node))
    start = attributes.of_instance(host, atom.instance, "__init__", node, missing=NOTHING)
    functions = frozenset(a for a in start if isinstance(a, (Bound, Function)))
    if functions:
        call(host, functions, arguments, node)
    else:
        fields = [
            s.target.id
            for s in atom.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        for position, name in enumerate(fields):
            host.machine.put(atom.instance.store, name, arguments.get(position, name))
    after = attributes.of_instance(host, atom.instance, "__post_init__", node, missing=NOTHING)
    if after:
        call(host, after, given(), node)
    if any(is_layer_class(name) and name.endswith("Sequential") for name in outer):
        for index, value in enumerate(arguments.values):
            host.machine.put(atom.instance.store, str(index), value)
    return result


def _instance(host: Host, atom: Instance, arguments: Arguments, node: ast.AST) -> Value:
    method = attributes.of_instance(host, atom, "__call__", node, missing=NOTHING)
    functions: Value = frozenset(a for a in method if isinstance(a, (Bound, Function, Prepared)))
    if not functions:
        forward = attributes.of_instance(host, atom, "forward", node, missing=NOTHING)
        functions = forward or frozenset(a for a in method if not isinstance(a, Method))
    if functions:
        return call(host, functions, arguments, node)
    return _unknown(host, AN_OPAQUE, arguments, node)


def _layer(host: Host, atom: Layer, arguments: Arguments, node: ast.AST) -> Value:
    last = atom.name.rpartition(".")[2]
    host.found.is_tensor(arguments.get(0, "input"))
    if last in tables.IDLE_LAYERS:
        host.moves(node, f"nn.{last}", "view" if last == "Identity" else "move")
        return arguments.get(0, "input") or A_TENSOR
    if last in tables.GATHERING_LAYERS:
        host.moves(node, f"nn.{last}", "gather")
    reason = f"PyTorch computes: `nn.{last}` is called; read its weight and launch a kernel"
    host.report(findings.TORCH, node, reason)
    return A_TENSOR


def _kernel(host: Host, atom: Kernel, arguments: Arguments, node: ast.AST) -> Value:
    if host.found.recording and not host.guarded:
        host.found.without_grid[id(node)] = (atom, node)
    return A_NUMBER


def _launcher(host: Host, atom: Launcher, arguments: Arguments, node: ast.AST) -> Value:
    host.launch(atom, arguments, node)
    return A_NUMBER


def _prepared(host: Host, atom: Prepared, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911 - one branch for each kind
    if atom.how == "apply":
        (kind,) = atom.inner
        forward = attributes.of_atom(host, kind, "forward", node)
        setup = (
            attributes.of_class(host, kind, "setup_context", node)
            if isinstance(kind, Class)
            else NOTHING
        )
        context = host.pool.external(CONTEXT)
        if any(isinstance(a, (Function, Bound)) for a in setup):
            return call(host, forward, arguments, node)
        return call(host, forward, arguments.before(context), node)
    if atom.how == "partial":
        merged = Arguments(
            (*atom.arguments, *arguments.values),
            {**atom.keywords, **arguments.keywords},
            arguments.rest,
            arguments.named,
        )
        return call(host, atom.inner, merged, node)
    if atom.how == "compiled":
        reason = "PyTorch's compiler writes the kernels of what is compiled here"
        host.report(findings.TORCH, atom.site or node, reason)
        return call(host, atom.inner, arguments, node)
    if atom.how == "method":
        receiver = arguments.get(0)
        name = next((a.value for a in atom.inner if isinstance(a, Const)), "<unknown>")
        found = host.attribute(receiver, str(name), node)
        return call(host, found, Arguments(atom.arguments, atom.keywords), node)
    if atom.how == "attribute":
        name = next((a.value for a in atom.inner if isinstance(a, Const)), "<unknown>")
        found = arguments.get(0)
        for part in str(name).split("."):
            found = host.attribute(found, part, node)
        return found
    if atom.how == "item":
        return host.subscript(arguments.get(0), atom.inner, node)
    if atom.how == "named":
        return _named_tuple(host, atom, arguments, node)
    if atom.how == "registration":
        name = next((str(a.value) for a in atom.inner if isinstance(a, Const)), "?")
        made = arguments.get(0)
        key = name.partition(".")[0].replace("::", ".")
        host.operators[key] = join(host.operators.get(key, NOTHING), made)
        return made
    return call(host, atom.inner, arguments, node)


def _named_tuple(host: Host, atom: Prepared, arguments: Arguments, node: ast.AST) -> Value:
    made = host.machine.store(node)
    for index, names in enumerate(atom.arguments):
        name = next(str(a.value) for a in names if isinstance(a, Const))
        value = arguments.get(index, name)
        host.machine.put(made, index, value)
        host.machine.put(made, name, value)
    return only(made)


def _method(host: Host, atom: Method, arguments: Arguments, node: ast.AST) -> Value:  # noqa: PLR0911 - one branch for each kind
    receiver = atom.receiver
    name = atom.name
    if receiver in TENSORS or isinstance(receiver, Symbol) or receiver in HOSTED:
        return tensors.method(host, name, receiver, arguments, node)
    if isinstance(receiver, (Kernel, Launcher)):
        return _kernel_method(host, name, receiver, arguments, node)
    if isinstance(receiver, (Instance, Layer)) or (isinstance(receiver, Store) and receiver.module):
        return foreign.module_method(host, name, receiver, arguments, node)
    if isinstance(receiver, Store):
        return foreign.container_method(host, name, receiver, arguments, node)
    if isinstance(receiver, Const):
        return texts.text_method(host, name, receiver, arguments)
    if isinstance(receiver, External):  # globals()
        return elements.item(host, receiver, arguments.get(0), node)
    if isinstance(receiver, Prepared) and receiver.how == "library":
        return foreign.library_method(host, name, receiver, arguments, node)
    if name in tables.PLAIN_METHODS:
        return A_NUMBER
    made = _unknown(host, AN_OPAQUE, arguments, node)
    return A_NUMBER if OPAQUE in made else made


def _kernel_method(
    host: Host, name: str, receiver: Any, arguments: Arguments, node: ast.AST
) -> Value:
    kernel = receiver.kernel if isinstance(receiver, Launcher) else receiver
    if name in ("run", "launch", "__call__"):
        grid = arguments.keywords.get("grid", NOTHING)
        for launcher in elements.launcher(host, kernel, grid, node):
            host.launch(launcher, arguments, node)  # type: ignore[arg-type]
        return A_NUMBER
    if name == "__getitem__":
        return elements.launcher(host, kernel, arguments.get(0), node)
    if name in ("warmup", "compile", "prune_configs", "bench", "preload"):
        return only(kernel)
    return A_NUMBER


def _store(host: Host, atom: Store, arguments: Arguments, node: ast.AST) -> Value:
    if not atom.module:
        return _unknown(host, AN_OPAQUE, arguments, node)
    # A chain of modules: each may get what any other returns.
    value = arguments.get(0)
    parts = list(atom.fields.values()) + ([atom.rest] if atom.rest else [])
    atom.read = True
    for part in parts:
        value = call(host, part, given(value), node) if part else value
    if atom.rest:
        value = join(value, call(host, atom.rest, given(value), node))
    return value


def _external(host: Host, atom: External, arguments: Arguments, node: ast.AST) -> Value:
    return foreign.function(host, atom.name, arguments, node)


_HANDLERS: dict[type, Any] = {
    Function: _function,
    Bound: _bound,
    Wrapped: _wrapped,
    Class: _class,
    Instance: _instance,
    Layer: _layer,
    Kernel: _kernel,
    Launcher: _launcher,
    Prepared: _prepared,
    Method: _method,
    Store: _store,
    External: _external,
}

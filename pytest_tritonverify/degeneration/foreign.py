"""Calls of what isn't in the file: libraries, and methods of modules, containers, strings."""

# ruff: noqa: ARG001 - handlers share one signature

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import calling, findings, python, tables, tensors
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_TENSOR,
    ADDRESS,
    AN_ARRAY,
    AN_OPAQUE,
    ARRAY,
    HOST_RESULT,
    HOSTED,
    NOTHING,
    OPAQUE,
    TENSORS,
    Atom,
    Bound,
    Function,
    Instance,
    Kernel,
    Layer,
    Prepared,
    Store,
    Value,
    constant_of,
    join,
    only,
    text_of,
)

if TYPE_CHECKING:
    import ast

    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.host import Host

_JIT = frozenset({"triton.jit", "triton.experimental.gluon.jit"})
# Modules of Python whose functions are known.
_PYTHON = frozenset(
    ("builtins", "cmath", "functools", "importlib", "itertools", "math", "operator")
)
_TUNERS = frozenset(
    {"triton.autotune", "triton.heuristics", "triton.Autotuner", "triton.Heuristics"}
)


def function(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    """Return what a foreign function returns, and take note of what it does."""
    root = name.partition(".")[0]
    if name in tables.DYNAMIC:
        host.report(findings.EVASION, node, f"`{name}` {tables.DYNAMIC[name]}")
        return join(A_TENSOR, AN_OPAQUE) if calling.has_tensors(arguments) else AN_OPAQUE
    if name.startswith(tables.THREADS) and host.found.recording:
        host.report(findings.EVASION, node, f"`{name}` moves work out of the forward pass's flow")
    if name.endswith(".made"):
        return _made(host, name, arguments, node)
    if "<unknown>" in name:
        host.report(findings.EVASION, node, "calls something whose name is only made at run time")
        return A_TENSOR
    if name in _JIT:
        return _compiled(host, arguments) or host.pool.external("triton.jit.made")
    if root == "triton":
        return _triton(host, name, arguments, node)
    if name in tables.TRANSPARENT:
        functions = callables(arguments.get(0, "func", "fn", "model"))
        return functions or host.pool.external(f"{name}.made")
    if name in tables.COMPILERS:
        inner = callables(arguments.get(0, "model", "func", "fn", "obj"))
        if not inner:
            return host.pool.external("torch.compile.made")
        key = (Prepared, "compiled", inner, node)
        return host.pool.one(key, lambda: Prepared("compiled", inner, site=node))
    if name in tables.CUSTOM_OPERATORS or name == "torch.library.impl":
        return _registration(host, arguments)
    if name == "torch.library.Library":
        inner = arguments.get(0)
        return host.pool.one((Prepared, "library", inner), lambda: Prepared("library", inner))
    if name.startswith("torch.ops."):
        made = host.operators.get(".".join(name.split(".")[2:4]))
        if made:
            return calling.call(host, made, arguments, node)
    if calling.is_layer_class(name) and name not in tables.ALLOWED:
        return _layer(host, name, arguments)
    if root in ("torch", "torch_npu"):
        return tensors.function(host, name, arguments, node)
    if root in _PYTHON or name == "collections.namedtuple":
        return python.function(host, name, arguments, node)
    return _library(host, name, root, arguments, node)


def callables(value: Value) -> Value:
    """Return those atoms of a value that can be called."""
    kinds = (Function, Bound, Kernel, Instance, Prepared, Layer)
    return frozenset(a for a in value if isinstance(a, kinds))


def _made(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """Call what a decorator with arguments has returned."""
    base = name.removesuffix(".made")
    if base in _JIT:
        return _compiled(host, arguments) or arguments.get(0)
    if base == "torch.compile":
        return function(host, base, arguments, node)
    return arguments.get(0) or AN_OPAQUE


def _compiled(host: Host, arguments: Arguments) -> Value:
    result = NOTHING
    for atom in arguments.get(0, "fn"):
        if isinstance(atom, Function):
            result = join(result, host.pool.one((Kernel, atom), partial(Kernel, atom)))
        elif isinstance(atom, Kernel):
            result = join(result, only(atom))
        elif hasattr(atom, "inner"):
            for inner in atom.inner:
                if isinstance(inner, Function):
                    made = host.pool.one((Kernel, inner), partial(Kernel, inner))
                    result = join(result, made)
    return result


def _triton(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:
    for atom in calling.deep(arguments.all()):
        if isinstance(atom, (Function, Bound)) and not name.startswith("triton.testing"):
            host.later[atom] = None
    if name in _TUNERS:
        return callables(arguments.get(0, "fn")) or host.pool.external("triton.autotune.made")
    if name.startswith("triton.ops.") and calling.has_tensors(arguments):
        host.report(findings.TORCH, node, f"a library's kernel computes: `{name}`")
        return A_TENSOR
    if name.startswith("triton.ops."):
        return calling.suspect(host, arguments, f"a library's kernel computes: `{name}`", node)
    if name.startswith("triton.testing."):
        for atom in callables(arguments.get(0, "fn")):
            calling.call(host, only(atom), calling.given(), node)
    if name in ("triton.cdiv", "triton.next_power_of_2"):
        for value in arguments.values:
            host.found.is_number(value)
        return A_NUMBER
    return AN_OPAQUE


def _registration(host: Host, arguments: Arguments) -> Value:
    name = arguments.get(0, "name", "qualname")
    made = callables(arguments.get(1, "fn"))
    prepared = host.pool.one(
        (Prepared, "registration", name), lambda: Prepared("registration", name)
    )
    if made:
        text = (text_of(name) or "?").replace("::", ".")
        host.operators[text] = join(host.operators.get(text, NOTHING), made)
        return made
    return prepared


def library_method(
    host: Host, name: str, receiver: Any, arguments: Arguments, node: ast.AST
) -> Value:
    """Call a method of a `torch.library.Library`."""
    made = callables(arguments.get(1, "fn"))
    text = text_of(arguments.get(0))
    space = text_of(receiver.inner)
    if name == "impl" and made and text and space:
        key = f"{space}.{text.partition('::')[2] or text}"
        host.operators[key] = join(host.operators.get(key, NOTHING), made)
    return A_NUMBER


def _layer(host: Host, name: str, arguments: Arguments) -> Value:
    last = name.rpartition(".")[2]
    if last not in tables.CONTAINERS:
        return host.pool.one((Layer, name), lambda: Layer(name))
    # Containers of one kind with different content are told apart by what they are given.
    store = host.machine.store((host.machine.frame.position, host.machine.frame.code.node), last)
    mapping = last.endswith("Dict")
    for index, value in enumerate(arguments.values):
        for atom in value:
            if last != "Sequential" or (isinstance(atom, Store) and not atom.module):
                if isinstance(atom, Store):
                    atom.read = True
                    for key, field in atom.fields.items():
                        host.machine.put(store, key if mapping else str(key), field)
                    host.machine.put(store, None, atom.rest, known=False)
                else:
                    host.machine.put(store, None, host.element_of(atom), known=False)
            else:
                host.machine.put(store, str(index), only(atom))
    host.machine.put(store, None, arguments.rest, known=False)
    return only(store)


def _library(host: Host, name: str, root: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911 - one branch for each kind
    """Judge a call of any other library's function."""
    handed = calling.deep(arguments.all())
    tensors_in = {a for a in handed if a in TENSORS or a in HOSTED}
    if name in tables.FOREIGN_MOVING:
        host.found.is_tensor(arguments.get(0))
        host.moves(node, name, "move")
        return A_TENSOR
    for atom in handed:
        if isinstance(atom, (Function, Bound, Prepared)):
            calling.call(host, only(atom), _inner(arguments), node)
    if root == "ctypes" or name.startswith(("os.", "mmap.")):
        if ADDRESS in handed or tensors_in & TENSORS:
            host.report(findings.EVASION, node, f"`{name}` gets a tensor's memory")
        return AN_OPAQUE
    if root in tables.ARRAY_LIBRARIES:
        return _array_function(host, name, arguments, handed, node)
    if name in ("copy.copy", "copy.deepcopy"):
        return arguments.get(0)
    reason = f"`{name}` is not in this file, and gets tensors: what computes there can't be seen"
    if root in tables.FOREIGN_HARMLESS or not (tensors_in & TENSORS):
        if name in ("collections.OrderedDict", "collections.deque", "types.SimpleNamespace"):
            return python.container(host, node, arguments)
        if tensors_in & HOSTED:
            return only(HOST_RESULT)
        harmless = root in tables.FOREIGN_HARMLESS
        return AN_OPAQUE if harmless else calling.suspect(host, arguments, reason, node)
    host.report(findings.UNRESOLVED, node, reason)
    return A_TENSOR


def _inner(arguments: Arguments) -> Arguments:
    parts = []
    for atom in (*arguments.get(99, "args"), *arguments.get(99, "kwargs")):
        if isinstance(atom, Store):
            parts += [value for key, value in atom.fields.items() if isinstance(key, int)]
    return calling.given(*parts) if parts else arguments.after(1)


def _array_function(
    host: Host, name: str, arguments: Arguments, handed: set[Atom], node: ast.AST
) -> Value:
    if not handed & (TENSORS | HOSTED):
        made = calling.suspect(
            host, arguments, f"numpy or another library computes: `{name}`", node
        )
        return A_NUMBER if OPAQUE in made else made
    last = name.rpartition(".")[2]
    if last in tables.ARRAY_MOVING:
        if HOST_RESULT in handed:
            host.report(findings.HOST, node, "makes an array of what Python has computed")
        return AN_ARRAY
    host.report(findings.HOST, node, f"numpy or another library computes: `{name}`")
    return only(ARRAY)


def module_method(  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    host: Host, name: str, receiver: Any, arguments: Arguments, node: ast.AST
) -> Value:
    """Call a method that modules inherit from `torch.nn.Module`."""
    store = receiver if isinstance(receiver, Store) else getattr(receiver, "store", None)
    if isinstance(receiver, Layer) or store is None:
        if name.startswith(
            ("parameters", "buffers", "children", "modules", "named_", "state_dict")
        ):
            return A_TENSOR
        return A_NUMBER if name in ("__init__", "load_state_dict") else only(receiver)
    key = constant_of(arguments.get(0))
    if name in (
        "register_buffer",
        "register_parameter",
        "__setattr__",
        "add_module",
        "register_module",
    ):
        value = arguments.get(1, "tensor", "param", "module", "value")
        host.machine.put(store, key.value if key else None, value, known=key is not None)
        return A_NUMBER
    if name in ("append", "extend", "insert"):
        value = arguments.get(1 if name == "insert" else 0)
        if name == "extend":
            value = host.element(value) or NOTHING
        host.machine.put(store, None, value, known=False)
        return only(receiver)
    if name in ("get_submodule", "get_parameter", "get_buffer", "__getattr__"):
        if key is not None:
            return host.attribute(only(receiver), str(key.value), node)
        return store.all()
    if name in ("values", "children", "modules", "parameters", "buffers") or name.startswith(
        "named_"
    ):
        return _listed(host, receiver, store, name, node)
    if name == "items":
        return _listed(host, receiver, store, "named_", node)
    if name in ("state_dict", "keys"):
        return _listed(host, receiver, store, "values", node) if name == "state_dict" else A_NUMBER
    if name.startswith("register_") and name.endswith("hook"):
        for atom in callables(arguments.get(0)):
            host.hooks[atom] = None
        return AN_OPAQUE
    if name in ("apply", "_apply"):
        calling.call(host, arguments.get(0), calling.given(join(store.all(), only(receiver))), node)
        return only(receiver)
    return A_NUMBER if name in ("__init__", "zero_grad", "load_state_dict") else only(receiver)


def _listed(host: Host, receiver: Atom, store: Store, name: str, node: ast.AST) -> Value:
    content = store.all()
    if "parameters" in name or "buffers" in name:
        content = A_TENSOR
    elif name in ("modules", "named_modules"):
        content = join(content, only(receiver))
    listed = host.machine.store((node, name))
    if name.startswith("named_"):
        pair = host.machine.store((node, "pair"))
        host.machine.put(pair, 0, A_NUMBER)
        host.machine.put(pair, 1, content)
        content = only(pair)
    host.machine.put(listed, None, content, known=False)
    return only(listed)


def container_method(  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    host: Host, name: str, receiver: Store, arguments: Arguments, node: ast.AST
) -> Value:
    """Call a method of a list, tuple, dict or set."""
    key = constant_of(arguments.get(0))
    if name in tables.ADDING_METHODS:
        value = arguments.all()
        if name in ("extend", "update"):
            for atom in arguments.get(0):
                if isinstance(atom, Store) and name == "update":
                    for field, content in atom.fields.items():
                        host.machine.put(receiver, field, content)
                    value = atom.rest
                else:
                    value = host.element(only(atom)) or NOTHING
                host.machine.put(receiver, None, value, known=False)
            for field, content in arguments.keywords.items():
                host.machine.put(receiver, field, content)
            return A_NUMBER
        if name == "setdefault":
            default = arguments.get(1)
            known = key is not None
            host.machine.put(receiver, key.value if key else None, default, known=known)
            return receiver.get(key.value) if key else receiver.all()
        receiver.fixed = False
        host.machine.put(receiver, None, value, known=False)
        return A_NUMBER
    if name in ("get", "pop", "popleft", "popitem", "__getitem__"):
        found = receiver.get(key.value) if key and name != "pop" else receiver.all()
        return join(found, arguments.get(1, "default")) or host.pool.constant(None)
    if name == "items":
        if receiver.fixed and not receiver.fields and not receiver.rest:
            receiver.read = True
            return only(receiver)
        return _listed(host, receiver, receiver, "named_", node)
    if name in ("values", "copy", "__iter__", "elements"):
        return only(receiver)
    if name == "__setitem__":
        host.store_item(only(receiver), arguments.get(0), arguments.get(1), node)
    if name == "keys":
        return A_NUMBER
    if name in ("_replace", "_asdict"):
        return only(receiver)
    return A_NUMBER

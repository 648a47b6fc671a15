"""Attributes and elements of values."""

# ruff: noqa: ARG001 - handlers share one signature

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import calling, mistakes, tables
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_PERMUTED,
    A_TENSOR,
    AN_ARRAY,
    AN_OPAQUE,
    ARRAY,
    DEVICE,
    DEVICE_TYPE,
    HOSTED,
    NOTHING,
    OFF_DEVICE,
    ON_DEVICE,
    OPAQUE,
    PERMUTED,
    TENSOR,
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
    Parent,
    Prepared,
    Store,
    Symbol,
    Value,
    Wrapped,
    join,
    join_all,
    only,
)

if TYPE_CHECKING:
    import ast

    from pytest_tritonverify.degeneration.host import Host

_SELF_NAMES = frozenset({"__call__", "__func__", "__wrapped__", "fn"})
_LAYER_TENSORS = ("weight", "bias", "running_", "in_proj_", "_weight", "bias_", "alpha_tensor")
MODULE_METHODS = frozenset(
    [
        "add_module",
        "apply",
        "bfloat16",
        "buffers",
        "children",
        "cpu",
        "cuda",
        "double",
        "eval",
        "extra_repr",
        "float",
        "get_buffer",
        "get_parameter",
        "get_submodule",
        "half",
        "ipu",
        "load_state_dict",
        "modules",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "npu",
        "parameters",
        "register_backward_hook",
        "register_buffer",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_module",
        "register_parameter",
        "requires_grad_",
        "share_memory",
        "state_dict",
        "to",
        "to_empty",
        "train",
        "type",
        "xpu",
        "zero_grad",
        "__setattr__",
        "__getattr__",
        "__init__",
        "__delattr__",
        "__dir__",
        "append",
        "extend",
        "insert",
        "items",
        "keys",
        "values",
        "flatten_parameters",
        "reset_parameters",
        "_apply",
    ]
)


def of_atom(host: Host, atom: Atom, name: str, node: ast.AST) -> Value:
    """Return an attribute of an atom."""
    handler = _HANDLERS.get(type(atom))
    return AN_OPAQUE if handler is None else handler(host, atom, name, node)


def _of_kind(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if atom is TENSOR or atom is PERMUTED:
        return _of_tensor(host, atom, name, node)
    if atom is ARRAY:
        if name in ("shape", "dtype", "ndim", "size", "strides", "nbytes", "itemsize"):
            return A_NUMBER
        return AN_ARRAY if name == "T" else host.pool.method(name, atom)
    if atom is DEVICE:
        return only(DEVICE_TYPE) if name == "type" else A_NUMBER
    if atom in HOSTED:
        return host.pool.method(name, atom)
    return AN_OPAQUE if atom is OPAQUE else host.pool.method(name, atom)


def _of_tensor(host: Host, atom: Atom, name: str, node: ast.AST) -> Value:  # noqa: PLR0911 - one branch for each kind
    if name in tables.PROPERTIES:
        return A_NUMBER
    if name == "device":
        return only(DEVICE)
    if name in tables.ON_DEVICE_PROPERTIES:
        return only(ON_DEVICE)
    if name == "is_cpu":
        return only(OFF_DEVICE)
    if name in tables.PERMUTING_PROPERTIES:
        host.moves(node, name, "view")
        return A_PERMUTED
    if name in tables.VIEW_PROPERTIES or name in ("values", "indices"):
        return only(atom)
    if name == "__class__":
        return host.pool.external("torch.Tensor")
    return host.pool.method(name, atom)


def _of_symbol(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    known = (
        name in tables.PROPERTIES
        or name in tables.ON_DEVICE_PROPERTIES
        or name in tables.PERMUTING_PROPERTIES
        or name in ("device", "is_cpu", "data")
    )
    if known and name not in ("names", "name"):
        host.found.is_tensor(only(atom))
        return _of_tensor(host, TENSOR, name, node)
    if name == "__class__":
        return host.pool.external("torch.Tensor")
    return host.pool.method(name, atom)


def _of_external(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name == "__call__":
        return only(atom)
    if atom.name == "builtins.globals.made":
        return host.pool.method(name, atom)
    return host.external(f"{atom.name}.{name}")


def _of_const(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    return host.pool.method(name, atom)


def _of_store(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in atom.fields and not atom.module:
        return join(atom.get(name), host.pool.method(name, atom))
    if name in ("forward", "__call__") and atom.module:
        return only(atom)
    if atom.module and name in atom.fields:
        return atom.get(name)  # type: ignore[no-any-return]
    return host.pool.method(name, atom)


def _of_function(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in _SELF_NAMES:
        return only(atom)
    if name == "__globals__":
        return host.pool.external("builtins.globals.made")
    store = host.machine.store((atom, "attributes"))
    return store.get(name) or AN_OPAQUE


def _of_bound(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name == "__self__":
        return only(atom.receiver)
    if name == "__func__":
        return only(atom.function)
    return only(atom) if name in _SELF_NAMES else AN_OPAQUE


def _of_method(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name == "__self__":
        return only(atom.receiver)
    return only(atom) if name in _SELF_NAMES else of_atom(host, OPAQUE, name, node)


def _of_kernel(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in ("fn", "__wrapped__"):
        return only(atom)
    store = host.machine.store((atom, "attributes"))
    return join(store.get(name), host.pool.method(name, atom))


def _of_layer(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in ("forward", "__call__"):
        return only(atom)
    if name.startswith(_LAYER_TENSORS):
        return A_TENSOR
    if name == "out_proj":
        return host.pool.one((Layer, "torch.nn.Linear"), lambda: Layer("torch.nn.Linear"))
    if name in MODULE_METHODS:
        return host.pool.method(name, atom)
    return A_NUMBER


def _of_prepared(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in ("__call__", "forward", "value"):
        return only(atom)
    if name in ("func", "__wrapped__", "_orig_mod"):
        return atom.inner  # type: ignore[no-any-return]
    return host.pool.method(name, atom)


def _of_wrapped(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    if name in ("__func__", "fget", "__wrapped__"):
        return atom.inner  # type: ignore[no-any-return]
    if name in ("setter", "getter", "deleter"):
        return host.pool.external("functools.wraps.made")
    return AN_OPAQUE


def _of_parent(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    receiver = atom.receiver
    start = receiver.kind if isinstance(receiver, Instance) else receiver
    ours, foreign = (start if isinstance(start, Class) else atom.home).lineage()
    after = ours[ours.index(atom.home) + 1 :] if atom.home in ours else ours
    for kind in after:
        found = kind.store.get(name)
        if found:
            return bind(host, found, receiver, kind, node)
    return _foreign_member(host, foreign, name, receiver)


def _foreign_member(host: Host, foreign: list[str], name: str, receiver: Atom) -> Value:
    """Return what a class inherits under a name from a class that isn't in the file."""
    layers = [f for f in foreign if calling.is_layer_class(f) and f != "torch.nn.Module"]
    if name in ("forward", "__call__", "_call_impl"):
        if layers:
            return host.pool.one((Layer, layers[0]), lambda: Layer(layers[0]))
        unknown = [
            f for f in foreign if not f.startswith(("torch.", "builtins.", "abc.", "typing."))
        ]
        return host.pool.external(f"{unknown[0]}.{name}") if unknown else NOTHING
    if name in MODULE_METHODS:
        return host.pool.method(name, receiver)
    if layers and name.startswith(_LAYER_TENSORS):
        return A_TENSOR
    return NOTHING


def bind(host: Host, value: Value, receiver: Atom, kind: Class, node: ast.AST) -> Value:
    """Return what a class's attribute is on an instance, or on the class itself."""
    result = NOTHING
    on_class = isinstance(receiver, Class)
    for atom in value:
        if isinstance(atom, Function):
            result = join(result, only(atom) if on_class else host.pool.bound(atom, receiver))
        elif isinstance(atom, Wrapped) and atom.how == "static":
            result = join(result, atom.inner)
        elif isinstance(atom, Wrapped) and atom.how == "class":
            owner = receiver.kind if isinstance(receiver, Instance) else receiver
            for inner in atom.inner:
                result = join(result, host.pool.bound(inner, owner))
        elif isinstance(atom, Wrapped) and not on_class:
            result = join(
                result, calling.call(host, atom.inner, calling.given(only(receiver)), node)
            )
        else:
            result = join(result, only(atom))
    return result


def of_class(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    """Return an attribute of a class."""
    if name == "__dict__":
        return only(atom.store)
    ours, foreign = atom.lineage()
    for kind in ours:
        found = kind.store.get(name)
        if found:
            return bind(host, found, atom, kind, node)
    if name == "apply" and any(f.startswith("torch.autograd.") for f in foreign):
        made = only(atom)
        return host.pool.one((Prepared, "apply", atom), lambda: Prepared("apply", made))
    if name in ("__name__", "__doc__", "__module__"):
        return A_NUMBER
    return _foreign_member(host, foreign, name, atom.instance) or AN_OPAQUE


def of_instance(  # noqa: C901 - one branch for each kind
    host: Host, atom: Instance, name: str, node: ast.AST, *, missing: Value = AN_OPAQUE
) -> Value:
    """Return an attribute of an instance."""
    if name == "__dict__":
        return only(atom.store)
    if name == "__class__":
        return only(atom.kind)
    result = atom.store.get(name)
    ours, foreign = atom.kind.lineage()
    for kind in ours:
        found = kind.store.get(name)
        if found:
            result = join(result, bind(host, found, atom, kind, node))
            break
    if result:
        return result
    result = _foreign_member(host, foreign, name, atom)
    if result:
        return result
    if name == "training":
        return A_NUMBER
    if not name.startswith("__"):
        for kind in ours:
            for special in ("__getattr__", "__getattribute__"):
                getter = kind.store.get(special)
                if getter:
                    bound = bind(host, getter, atom, kind, node)
                    asked = calling.given(host.pool.constant(name))
                    result = join(result, calling.call(host, bound, asked, node))
    if not result:
        mistakes.lacking(host, atom.kind, name, node)
    return result or missing


def iterate(host: Host, atom: Instance) -> Value:
    """Return what a loop over an instance yields."""
    node = atom.kind.node
    method = of_instance(host, atom, "__iter__", node, missing=NOTHING)
    if method:
        made = calling.call(host, method, calling.given(), node)
        return join_all(host.element_of(part) for part in made if not isinstance(part, Instance))
    method = of_instance(host, atom, "__getitem__", node, missing=NOTHING)
    return calling.call(host, method, calling.given(A_NUMBER), node)


def _named(host: Host, atom: Any, name: str, node: ast.AST) -> Value:
    return of_instance(host, atom, name, node)


_HANDLERS: dict[type, Any] = {
    External: _of_external,
    Const: _of_const,
    Symbol: _of_symbol,
    Store: _of_store,
    Function: _of_function,
    Bound: _of_bound,
    Method: _of_method,
    Kernel: _of_kernel,
    Launcher: _of_kernel,
    Layer: _of_layer,
    Prepared: _of_prepared,
    Wrapped: _of_wrapped,
    Parent: _of_parent,
    Class: of_class,
    Instance: _named,
    type(TENSOR): _of_kind,
}

"""Methods of tensors and functions of PyTorch: what allocates, views, moves, reads or computes."""

# ruff: noqa: ARG001 - handlers share one signature

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration import calling, findings, mistakes, spelling, tables
from pytest_tritonverify.degeneration.findings import Finding
from pytest_tritonverify.degeneration.symbols import derived
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_PERMUTED,
    A_TENSOR,
    ADDRESS,
    AN_ARRAY,
    AN_OPAQUE,
    ARRAY,
    DEVICE,
    HOST,
    HOST_RESULT,
    HOSTED,
    NOTHING,
    NUMBER,
    ON_DEVICE,
    OPAQUE,
    PERMUTED,
    TENSOR,
    TENSORS,
    Atom,
    Const,
    External,
    Store,
    Symbol,
    Value,
    join,
    only,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.host import Host

_FROM_HOST = frozenset(
    {"tensor", "as_tensor", "asarray", "from_numpy", "scalar_tensor", "full", "full_like", "Tensor"}
)
_REARRANGING = frozenset({"contiguous", "clone", "reshape", "flatten", "ravel", "to"})
_OPERATORS = frozenset(
    f"__{side}{stem}__"
    for stem in (
        *("add", "sub", "mul", "matmul", "truediv", "div", "floordiv", "mod", "pow"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
    for side in ("", "r", "i")
)


def method(host: Host, name: str, receiver: Atom, arguments: Arguments, node: ast.AST) -> Value:
    """Return what a tensor's method returns, and take note of what it does."""
    if receiver is ARRAY:
        return _array_method(host, name, arguments, node)
    if receiver in HOSTED:
        return _host_method(host, name, receiver, arguments, node)
    if isinstance(receiver, Symbol):
        if name in tables.PLAIN_METHODS and not _sorts_a_tensor(name, arguments):
            return _ambiguous(host, name, receiver, arguments, node)
        host.found.is_tensor(only(receiver))
        receiver = TENSOR
    return _tensor_method(host, name, receiver, arguments, node)


def _sorts_a_tensor(name: str, arguments: Arguments) -> bool:
    """Tell `sort` of a tensor by arguments that a list's does not take."""
    foreign = arguments.keywords.keys() - {"key", "reverse"}
    return name == "sort" and bool(foreign or arguments.values)


def _ambiguous(
    host: Host, name: str, receiver: Symbol, arguments: Arguments, node: ast.AST
) -> Value:
    """Judge a method that lists, dicts or strings have as well."""
    if name in ("sort", "index", "index_put"):
        symbol = derived(host.pool, node, (receiver,))
        reason = f"PyTorch computes: tensor method `{name}`"
        host.found.suspect(symbol, Finding(findings.TORCH, node, "", reason, host.guarded))
        return only(symbol)
    if name in ("get", "pop", "values", "items", "setdefault", "split"):
        return join(only(receiver.element()), only(receiver) if name != "pop" else NOTHING)
    return only(receiver) if name == "copy" else A_NUMBER


def _tensor_method(
    host: Host, name: str, receiver: Atom, arguments: Arguments, node: ast.AST
) -> Value:
    result = _placed(host, name, receiver, arguments, node)
    if result is not None:
        return result
    mistake = mistakes.of_torch(host, spelling.TENSOR, name, node)
    if mistake:
        host.report(findings.MISTAKE, node, mistake)
        return AN_OPAQUE
    if name in tables.GATHERS:
        host.moves(node, name, "gather")
    callee = "operator" if name in _OPERATORS else "tensor method"
    for atom in arguments.all():
        if type(atom).__name__ in ("Function", "Bound"):
            calling.call(host, only(atom), calling.given(A_TENSOR, A_TENSOR), node)
    host.found.is_tensor(arguments.get(0))
    host.report(findings.TORCH, node, f"PyTorch computes: {callee} `{name}`")
    return A_TENSOR


def _placed(  # noqa: C901, PLR0911 - one branch for each kind
    host: Host, name: str, receiver: Atom, arguments: Arguments, node: ast.AST
) -> Value | None:
    """Return what a method gives that doesn't compute; None for one that does."""
    if name in tables.METADATA:
        return only(ADDRESS) if name == "data_ptr" else A_NUMBER
    if name in tables.READS:
        return AN_ARRAY if name in ("numpy", "__array__") else only(HOST)
    if name in tables.NEW:
        return A_TENSOR
    if name in tables.PERMUTING:
        host.moves(node, name, "view")
        return A_PERMUTED
    if receiver is PERMUTED and name in _REARRANGING and name != "to":
        host.moves(node, f"{name} of a permuted tensor", "move")
        return A_TENSOR
    if name in tables.COPIES:
        if name == "fill_" and arguments.all() & {HOST_RESULT}:
            host.report(findings.HOST, node, "writes what Python has computed into a tensor")
        if name == "copy_":
            host.found.is_tensor(arguments.get(0))
            host.moves(node, name, "copy")
        return only(receiver)
    if name in tables.CASTS:
        host.moves(node, name, "cast")
        return only(receiver)
    if name in tables.VIEWS:
        host.moves(node, name, "reported" if name in tables.REPORTED_VIEWS else "view")
        return only(receiver)
    if name in tables.MOVING_METHODS:
        host.moves(node, name, "move")
        return A_TENSOR
    if name == "apply_":
        return None
    return NOTHING if name == "__class__" else None


def _array_method(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name in ("item", "tolist", "tobytes"):
        return only(HOST)
    if name in tables.ARRAY_MOVING or name in ("astype", "view", "ravel", "flatten", "swapaxes"):
        return AN_ARRAY
    if name in ("ctypes", "fill"):
        return A_NUMBER
    host.report(findings.HOST, node, f"numpy computes: array method `{name}`")
    return AN_ARRAY


def _host_method(
    host: Host, name: str, receiver: Atom, arguments: Arguments, node: ast.AST
) -> Value:
    if name in ("append", "extend", "insert", "pop", "copy", "index", "reverse", "bit_length"):
        return only(receiver)
    return only(HOST_RESULT)


def function(host: Host, name: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    """Return what a function of PyTorch returns, and take note of what it does."""
    short, last = _short(name)
    if short.startswith("torch.Tensor.") and last not in ("new_empty", "__new__", "_make_subclass"):
        return _unbound(host, last, arguments, node)
    if name.startswith("torch.nn.Module."):
        return _unbound_module(host, last, arguments, node)
    if name.startswith(calling.CONTEXT):
        return A_TENSOR if last == "saved_tensors" else A_NUMBER
    if last in _FROM_HOST and calling.deep(arguments.all()) & {HOST_RESULT}:
        host.report(findings.HOST, node, "hands what Python has computed back to PyTorch")
        return A_TENSOR
    if short in tables.ALLOWED or _allowed_below(name):
        return _allowed(host, name, last, arguments, node)
    if name.startswith(("torch.utils.", "torch._")) and not _handed(arguments):
        return AN_OPAQUE
    flat = not short.startswith(("torch.nn.functional.", "torch._"))
    if flat and short == f"torch.{last}" and (last in tables.VIEWS or last in tables.PERMUTING):
        return _unbound(host, last, arguments, node)
    if last in tables.METADATA and short == f"torch.{last}":
        return A_NUMBER
    if flat and last == "contiguous":
        return _unbound(host, last, arguments, node)
    if last in tables.MOVING and (short in (f"torch.{last}", f"torch.nn.functional.{last}")):
        host.moves(node, name, "move")
        return A_TENSOR
    if last in tables.MOVING_METHODS and short == f"torch.{last}":
        return _unbound(host, last, arguments, node)
    if last in tables.GATHERS:
        host.moves(node, name, "gather")
    mistake = mistakes.of_torch(host, name.rpartition(".")[0], last, node)
    if mistake:
        host.report(findings.MISTAKE, node, mistake)
        return AN_OPAQUE
    for atom in calling.deep(arguments.all()):
        if type(atom).__name__ in ("Function", "Bound", "Prepared", "Instance"):
            calling.call(host, only(atom), arguments.after(1), node)
    host.found.is_tensor(arguments.get(0, "input"))
    host.report(findings.TORCH, node, f"PyTorch computes: `{name}`")
    return A_TENSOR


def _handed(arguments: Arguments) -> bool:
    """Say whether anything is handed over that could be a tensor, or compute on one."""
    plain = (Const, External, Store)
    return any(
        not isinstance(a, plain) and a is not NUMBER and a is not OPAQUE
        for a in calling.deep(arguments.all())
    )


def _short(name: str) -> tuple[str, str]:
    """Return a name without the overload of `torch.ops.aten.mm.default`, and its last part."""
    parts = name.split(".")
    if name.startswith("torch.ops.") and len(parts) > 4:  # noqa: PLR2004 - torch.ops.<ns>.<name>.<overload>
        parts = parts[:4]
    return ".".join(parts), parts[-1]


def _allowed_below(name: str) -> bool:
    if name.startswith(tables.DENIED_BELOW):
        return False
    last = name.rpartition(".")[2]
    internal = name.startswith(("torch._", "torch_npu._C", "torch.utils."))
    return name.startswith(tables.ALLOWED_BELOW) or (internal and last in tables.ALLOWED_INTERNALS)


def _allowed(host: Host, name: str, last: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    if name in tables.AVAILABILITY:
        return only(ON_DEVICE)
    if last in ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"):
        host.found.is_tensor(arguments.get(0, "input"))
    elif last in ("from_numpy", "as_tensor", "tensor"):
        # Of numbers a tensor can be made, too; of what a library returns it is an array.
        for atom in arguments.get(0, "data"):
            if isinstance(atom, Symbol) and (
                last == "from_numpy" or isinstance(atom.site, ast.Call)
            ):
                host.found.is_tensor(only(atom))
    elif last in ("empty", "zeros", "ones", "full"):
        for value in (*arguments.values, arguments.keywords.get("size", NOTHING)):
            host.found.is_number(frozenset(calling.deep(value)))
    if name.startswith("torch.nn.init."):
        return arguments.get(0, "tensor") or A_TENSOR
    if last == "device":
        return only(DEVICE)
    for atom in arguments.all():
        if type(atom).__name__ in ("Function", "Bound") and "make_graphed" in last:
            return only(atom)
    if last in {"Parameter", "Buffer"}:
        return A_TENSOR
    if name.startswith("torch.cuda.") or last.startswith(("get_", "is_", "set_", "manual_")):
        return AN_OPAQUE if name.startswith("torch.cuda.") else A_NUMBER
    short = name.removeprefix("torch.")
    plain = (
        "Generator Size broadcast_shapes dtype device finfo iinfo numel promote_types result_type "
        "can_cast memory_format no_grad inference_mode enable_grad autocast Stream Event seed "
        "initial_seed current_stream"
    )
    if short in plain.split():
        return A_NUMBER if short not in ("Generator", "Stream", "Event") else AN_OPAQUE
    if name.startswith(tables.ALLOWED_BELOW) or "assert" in last or "dynamo" in name:
        return AN_OPAQUE
    if name.startswith("torch._") and "empty_strided" not in last and "tensor" not in last:
        return AN_OPAQUE
    return A_TENSOR


def _unbound(host: Host, last: str, arguments: Arguments, node: ast.AST) -> Value:
    """Call a method through the class or the module: `torch.Tensor.relu(x)`, `torch.t(x)`."""
    first = arguments.get(0, "input", "self")
    host.found.is_tensor(first)
    receivers = [a for a in first if a in TENSORS] or [TENSOR]
    result = NOTHING
    for receiver in receivers:
        result = join(result, _tensor_method(host, last, receiver, arguments.after(1), node))
    return result


def _unbound_module(host: Host, last: str, arguments: Arguments, node: ast.AST) -> Value:
    result = NOTHING
    for atom in arguments.get(0):
        found = host.attribute(only(atom), last, node) if last != "__init__" else NOTHING
        result = join(result, calling.call(host, found, arguments.after(1), node))
    return result or A_NUMBER

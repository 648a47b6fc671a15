"""Elements of values: what a subscript gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import attributes, calling, findings
from pytest_tritonverify.degeneration.findings import Finding
from pytest_tritonverify.degeneration.symbols import derived, symbols_in
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_TENSOR,
    AN_OPAQUE,
    HOSTED,
    NOTHING,
    OPAQUE,
    PERMUTED,
    TENSOR,
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
    Prepared,
    Store,
    Symbol,
    Value,
    constant_of,
    join_all,
    only,
    text_of,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.host import Host


def item(host: Host, atom: Atom, index: Value, node: ast.AST) -> Value:  # noqa: C901, PLR0911 - one branch for each kind
    """Return an element of an atom."""
    if isinstance(atom, Kernel):
        return launcher(host, atom, index, node)
    if isinstance(atom, Store):
        key = constant_of(index)
        if key is None or (isinstance(key.value, str) is False and _is_negative(key.value)):
            return atom.all()
        if index and _is_slice(index):
            return only(atom)
        return atom.get(key.value)
    if atom in TENSORS:
        check_index(host, index, node)
        return A_TENSOR if atom is PERMUTED else only(atom)
    if atom in HOSTED or atom is OPAQUE:
        return only(atom)
    if isinstance(atom, Symbol):
        return _item_of_symbol(host, atom, index, node)
    if isinstance(atom, External):
        return _item_of_external(host, atom, index)
    if isinstance(atom, Instance):
        method = attributes.of_instance(host, atom, "__getitem__", node, missing=NOTHING)
        return calling.call(host, method, calling.given(index), node)
    if isinstance(atom, Class):
        method = attributes.of_class(host, atom, "__class_getitem__", node)
        functions = frozenset(a for a in method if isinstance(a, Function))
        given = calling.given(only(atom), index)
        return calling.call(host, functions, given, node) or only(atom)
    if isinstance(atom, Const):
        return _item_of_constant(host, atom, node)
    if isinstance(atom, Prepared) and atom.how == "compiled":
        return only(atom)
    return A_NUMBER


def _is_negative(key: object) -> bool:
    return isinstance(key, int) and key < 0


def _is_slice(index: Value) -> bool:
    return any(isinstance(a, External) and a.name == "builtins.slice.made" for a in index)


def launcher(host: Host, kernel: Kernel, grid: Value, node: ast.AST) -> Value:
    """Return a kernel with its grid."""
    empty = _is_empty_grid(grid)
    for atom in grid:
        if isinstance(atom, (Function, Bound, Prepared)):
            made = calling.call(host, only(atom), calling.given(AN_OPAQUE), node)
            empty = empty or _is_empty_grid(made)
    key = (Launcher, kernel, empty)
    return host.pool.one(key, lambda: Launcher(kernel, empty=empty))


def _is_empty_grid(grid: Value) -> bool:
    if len(grid) != 1:
        return False
    (atom,) = grid
    if isinstance(atom, Const):
        return atom.value == 0 and atom.value is not False
    if isinstance(atom, Store) and atom.fixed:
        sizes = [constant_of(value) for value in atom.fields.values()]
        return any(s is not None and isinstance(s.value, int) and s.value <= 0 for s in sizes)
    return False


def _item_of_symbol(host: Host, atom: Symbol, index: Value, node: ast.AST) -> Value:
    plain = index and all(isinstance(a, Const) or a is _NUMBER for a in index)
    none = constant_of(index)
    if plain and not (none is not None and none.value in (None, Ellipsis)):
        return only(atom.element(none.value if none is not None else None))
    if any(isinstance(a, Symbol) for a in index):
        check_index(host, index, node)
        return only(atom.element())
    if any(isinstance(a, (Store, External)) for a in index) or plain or index & TENSORS:
        # Slices of a list of tensors are rare; tuples and None are for tensors alone.
        if index and _is_slice(index):
            return only(atom)
        host.found.is_tensor(only(atom))
        check_index(host, index, node)
        return A_TENSOR
    return only(atom.element())


def _item_of_external(host: Host, atom: External, index: Value) -> Value:
    name = text_of(index)
    if atom.name == "sys.modules":
        return host.external(name) if name else host.pool.external("torch.<unknown>")
    if atom.name == "builtins.globals.made":
        if name is None:
            return join_all(
                (*host.machine.module.names.values(), host.pool.external("torch.<unknown>"))
            )
        return host.machine.lookup(host.machine.module, name)
    if atom.name == "builtins":
        return host.pool.external(f"builtins.{name or '<unknown>'}")
    if atom.name.endswith(".__dict__"):
        base = atom.name.removesuffix(".__dict__")
        return host.external(f"{base}.{name or '<unknown>'}")
    return AN_OPAQUE


def _item_of_constant(host: Host, atom: Const, node: ast.AST) -> Value:
    # "lumtam"[::-1] is a name, too.
    if isinstance(atom.value, str) and isinstance(node, ast.Subscript):
        parts = node.slice
        bounds = (
            (parts.lower, parts.upper, parts.step) if isinstance(parts, ast.Slice) else (parts,)
        )
        numbers: list[Any] = []
        for bound in bounds:
            try:
                numbers.append(None if bound is None else ast.literal_eval(bound))
            except (ValueError, RecursionError):
                return A_NUMBER
        try:
            cut: Any = slice(*numbers) if isinstance(parts, ast.Slice) else numbers[0]
            return host.pool.constant(atom.value[cut])
        except (TypeError, IndexError, ValueError):
            return A_NUMBER
    return A_NUMBER


_NUMBER = next(iter(A_NUMBER))


def check_index(host: Host, index: Value, node: ast.AST) -> None:
    """Judge the index of a tensor: one that is a tensor itself gathers or masks."""
    atoms = set(index)
    for atom in index:
        if isinstance(atom, Store):
            atoms |= atom.all()
            if isinstance(atom.site, (ast.List, ast.ListComp)):
                atoms.add(TENSOR)
    if atoms & TENSORS:
        host.moves(node, "indexing by a tensor", "gather")
        reason = "PyTorch gathers elements: a tensor is indexed by a tensor or a list"
        host.report(findings.TORCH, node, reason, "[]")
        return
    symbols = symbols_in(atoms)
    if symbols:
        symbol = derived(host.pool, node, symbols)
        reason = "PyTorch gathers elements: a tensor is indexed by a tensor"
        finding = Finding(findings.TORCH, node, "[]", reason, host.guarded)
        host.found.suspect(symbol, finding)

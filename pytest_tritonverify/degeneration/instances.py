"""What Python says of classes: `isinstance`, and named tuples."""

# ruff: noqa: ARG001 - handlers share one signature

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    TENSOR,
    TENSORS,
    Const,
    External,
    Prepared,
    Store,
    Symbol,
    Value,
    text_of,
)

if TYPE_CHECKING:
    import ast

    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.host import Host

_DISTRIBUTED = frozenset({"torch.distributed.tensor.DTensor", "torch.distributed._tensor.DTensor"})


def is_instance(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    """Say what is certain: constants are no tensors, and the tensors of a run are plain ones."""
    value, kinds = arguments.get(0), arguments.get(1)
    names = [a.name for a in kinds if isinstance(a, External)]
    for atom in kinds:
        if isinstance(atom, Store) and not atom.fields and not atom.rest:
            continue  # no class at all
        if not isinstance(atom, External):
            return A_NUMBER
    if not value or not names:
        return A_NUMBER
    if all(name == "torch.Tensor" for name in names):
        if all(isinstance(a, Const) for a in value):
            return host.pool.constant(value=False)
        return host.pool.constant(value=True) if value <= {TENSOR} else A_NUMBER
    if all(name in _DISTRIBUTED for name in names) and all(
        isinstance(a, (Const, Symbol)) or a in TENSORS for a in value
    ):
        return host.pool.constant(value=False)
    return A_NUMBER


def named_tuple(host: Host, arguments: Arguments, node: ast.AST) -> Value:
    """Return a class of named tuples."""
    given = arguments.get(1, "field_names")
    names: list[Value] = []
    for atom in given:
        if isinstance(atom, Const) and isinstance(atom.value, str):
            names = [host.pool.constant(part) for part in atom.value.replace(",", " ").split()]
        elif isinstance(atom, Store) and not atom.rest:
            names = [atom.get(index) for index in range(len(atom.fields))]
    if not names or any(text_of(name) is None for name in names):
        return A_NUMBER
    fields = tuple(names)
    return host.pool.one((Prepared, node, fields), lambda: Prepared("named", given, fields))

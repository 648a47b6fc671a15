"""Calls that can't work as written: what their author got wrong, told from a way around the check.

Such a call is refused like any other that can't be followed. Only the words differ, and that what
it would have returned is not held against the file.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration import spelling

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.host import Host
    from pytest_tritonverify.degeneration.values import Class, Kernel

_MODULES = frozenset({"torch.nn.Module", "builtins.object", "abc.ABC"})


def _told(host: Host) -> bool:
    # Code for machines without an accelerator is left to the runs, and what a constructor calls
    # is free: there, what an unknown call returns stays suspicious.
    return host.found.recording and not host.guarded


def in_call(host: Host, node: ast.AST) -> str:
    """Return what is wrong with a call of which nothing is known, or nothing."""
    if not isinstance(node, ast.Call) or not _told(host):
        return ""
    launched = host.found.without_grid.get(id(node.func))
    if launched is not None:
        return without_grid(launched[0])
    for part in spelling.inwards(node.func):
        if id(part) in host.lacking:
            return host.lacking[id(part)]
    name = spelling.root(node.func)
    return host.names.undefined(name) if name else ""


def of_torch(host: Host, owner: str, name: str, node: ast.AST) -> str:
    """Return what is wrong with a call of something that PyTorch doesn't have, or nothing.

    Only where the call itself spells the name: one that is made at run time is no slip.
    """
    if host.partial or not isinstance(node, ast.Call) or not _told(host):
        return ""
    spelt = isinstance(node.func, ast.Attribute) and node.func.attr == name
    return host.names.attribute(owner, name) if spelt else ""


def lacking(host: Host, kind: Class, name: str, node: ast.AST) -> None:
    """Take note of an attribute that instances of a class of the file don't have."""
    if not isinstance(node, ast.Attribute) or node.attr != name:
        return
    ours, foreign = kind.lineage()
    inherited = spelling.names_of(spelling.MODULE)
    if not _MODULES.issuperset(foreign) or name in inherited or not host.names.unset(name):
        return
    if any(each.node.decorator_list for each in ours):
        return
    own = {str(key) for each in ours for key in each.store.fields}
    own |= {str(key) for key in kind.instance.store.fields}
    question = spelling.meant(name, own)
    if host.names.binds(name):
        question = f"; `{name}` is no method: call it without the dot"
    host.lacking[id(node)] = f"AttributeError: `{kind.name}` has no attribute `{name}`{question}"


def without_grid(kernel: Kernel) -> str:
    """Return what is wrong with a kernel that is called like a function."""
    name = kernel.name
    return f"RuntimeError: `{name}` is called without a grid; write {name}[grid](...)"

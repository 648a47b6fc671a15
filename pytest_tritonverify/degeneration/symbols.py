"""Symbols of what is made of inputs that the file doesn't describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.values import DEEP, Atom, Symbol

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from pytest_tritonverify.degeneration.pool import Pool

_MOST_OPERANDS = 16


def symbols_in(atoms: Iterable[Atom]) -> tuple[Symbol, ...]:
    """Return the symbols among atoms, in one order."""
    return tuple(sorted({a for a in atoms if isinstance(a, Symbol)}, key=id)[:_MOST_OPERANDS])


def derived(pool: Pool, site: ast.AST, operands: tuple[Symbol, ...]) -> Symbol:
    """Return the symbol of what an operator or a call makes of inputs.

    Where the operands are made by many operators already, all that is made at one place is one
    symbol: a function that calls itself would make ever new ones.
    """
    deep = max(operand.depth for operand in operands) > DEEP
    key = (Symbol, site) if deep else (Symbol, site, operands)
    (symbol,) = pool.one(key, lambda: Symbol(site, operands))
    assert isinstance(symbol, Symbol)  # noqa: S101 - the key says so
    if deep:
        more = [operand for operand in operands if operand not in symbol.operands]
        symbol.operands = (*symbol.operands, *more)[:_MOST_OPERANDS]
    return symbol

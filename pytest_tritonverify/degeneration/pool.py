"""Atoms that are made once each, so that values of the same things are the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    Atom,
    Bound,
    Const,
    External,
    Method,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# Nothing in a file depends on larger integers, and Python refuses to write out their digits.
_MOST_BITS = 1 << 12


class Pool:
    """Makes atoms once each, and the values that hold one atom."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Value] = {}

    def one(self, key: tuple[Any, ...], make: Callable[[], Atom]) -> Value:
        """Return the value of the atom that a key stands for, made at its first use."""
        value = self._made.get(key)
        if value is None:
            value = self._made[key] = frozenset((make(),))
        return value

    def values(self) -> list[Value]:
        """Return all values that were made."""
        return list(self._made.values())

    def constant(self, value: object) -> Value:
        """Return the value of a constant."""
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            return A_NUMBER
        # 1, 1.0 and True are equal; 0.0 and -0.0 too.
        return self.one((Const, type(value), repr(value)), lambda: Const(value))

    def external(self, name: str) -> Value:
        """Return the value of something from outside."""
        return self.one((External, name), lambda: External(name))

    def method(self, name: str, receiver: Atom) -> Value:
        """Return the value of a method."""
        return self.one((Method, name, receiver), lambda: Method(name, receiver))

    def bound(self, function: Atom, receiver: Atom) -> Value:
        """Return the value of a bound function."""
        return self.one((Bound, function, receiver), lambda: Bound(function, receiver))

"""The arguments of a call, and which parameter gets which."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.values import (
    AN_OPAQUE,
    NOTHING,
    Function,
    Value,
    join,
    join_all,
    only,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.machine import Machine


@dataclass(frozen=True)
class Arguments:
    """What a call hands over.

    Attributes:
        values: by position.
        keywords: by name.
        rest: what `*something` of unknown length may hold.
        named: what `**something` with unknown keys may hold.
    """

    values: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    rest: Value = NOTHING
    named: Value = NOTHING

    def get(self, position: int, *names: str) -> Value:
        """Return the argument at a position, or under a name; nothing where there is none."""
        if 0 <= position < len(self.values):
            return self.values[position]
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return join(self.rest, self.named)

    def all(self) -> Value:
        """Return all of them together."""
        return join_all((*self.values, *self.keywords.values(), self.rest, self.named))

    def after(self, count: int) -> Arguments:
        """Return them without the first ones."""
        return Arguments(self.values[count:], self.keywords, self.rest, self.named)

    def before(self, *first: Value) -> Arguments:
        """Return them with others in front."""
        return Arguments((*first, *self.values), self.keywords, self.rest, self.named)

    def bind(self, function: Function, machine: Machine) -> tuple[Value, ...]:
        """Return a value for each of a function's parameters."""
        code = function.code
        named = dict(self.keywords)
        bound: list[Value] = []
        missing = join(self.rest, self.named)
        for position, name in enumerate(code.parameters):
            if position < min(code.positional, len(self.values)):
                bound.append(self.values[position])
                named.pop(name, None)
            elif name in named:
                bound.append(named.pop(name))
            else:
                value = join(function.defaults.get(name, NOTHING), missing)
                bound.append(value or AN_OPAQUE)
        if code.variadic:
            store = machine.store((function.node, "*"))
            for index, value in enumerate(self.values[code.positional :]):
                machine.put(store, index, value)
            machine.put(store, None, self.rest, known=False)
            store.fixed = not self.rest
            bound.append(only(store))
        if code.keywords:
            store = machine.store((function.node, "**"))
            for name, value in named.items():
                machine.put(store, name, value)
            machine.put(store, None, self.named, known=False)
            store.fixed = not self.named
            bound.append(only(store))
        return tuple(bound)

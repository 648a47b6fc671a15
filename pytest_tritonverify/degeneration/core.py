"""What the machine keeps, and what semantics ask it for: containers, names, functions' results."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.frames import Frame, Summary
from pytest_tritonverify.degeneration.values import (
    AN_OPAQUE,
    NOTHING,
    Function,
    Scope,
    Store,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.pool import Pool
    from pytest_tritonverify.degeneration.semantics import Semantics

_MOST_CONTEXTS = 8
_BUILTINS = frozenset(dir(builtins))


class Core:
    """The state of an abstract interpreter.

    Attributes:
        frames: what is being run, the innermost last.
        summaries: what functions return.
        waiting: frames to be run before the current operation can go on.
        late: functions to be run again for all the arguments that they were called with.
        stars: modules whose names were all imported.
        dirty: something that had been read was changed afterwards: run again.
        exhausted: the file is too entangled; the run was given up.
    """

    def __init__(self, pool: Pool, semantics: Semantics) -> None:
        self.pool = pool
        self.semantics = semantics
        self.module = Scope(None)
        self.stars: list[str] = []
        self.frames: list[Frame] = []
        self.summaries: dict[tuple[Any, ...], Summary] = {}
        self.waiting: list[Frame] = []
        self.late: dict[Function, None] = {}
        self.dirty = False
        self.exhausted = False

    @property
    def frame(self) -> Frame:
        """The frame that is being run."""
        return self.frames[-1]

    def store(self, site: object, module: str = "") -> Store:
        """Return the container that is made at a place."""
        (atom,) = self.pool.one((Store, site, module), lambda: Store(site, module))
        assert isinstance(atom, Store)  # noqa: S101 - the key says so
        return atom

    def put(self, store: Store, key: object, value: Value, *, known: bool = True) -> None:
        """Put a value into a container."""
        if store.put(key, value, known=known):
            self.dirty = True

    def invoke(self, function: Function, arguments: tuple[Value, ...]) -> Value:
        """Return what a function returns, or nothing yet and have it run first."""
        guarded = self.frame.guarded
        key: tuple[Any, ...] = (function, arguments, guarded)
        summary = self.summaries.get(key)
        if summary is None and function.contexts >= _MOST_CONTEXTS:
            if function.general is None:
                function.general = [set(value) for value in arguments]
            grown = False
            for value, seen in zip(arguments, function.general, strict=True):
                if not value <= seen:
                    seen.update(value)
                    grown = True
            summary = self.summaries.get((function, None))
            if summary is None:
                summary = self.summaries[function, None] = Summary()
                arguments = self.general(function)
            elif grown:
                self.late[function] = None
        elif summary is None:
            function.contexts += 1
            summary = self.summaries[key] = Summary()
        if summary.running:
            summary.asked = True
        elif not summary.done:
            self.enter(function, arguments, summary, guarded=guarded)
            return NOTHING
        return summary.value

    @staticmethod
    def general(function: Function) -> tuple[Value, ...]:
        """Return all that a function is called with, joined."""
        return tuple(join_all((frozenset(seen),)) for seen in function.general or ())

    def enter(
        self, function: Function, arguments: tuple[Value, ...], summary: Summary, *, guarded: bool
    ) -> None:
        """Have a function run."""
        code = function.code
        scope = Scope(function.scope, function)
        names = [*code.parameters, *filter(None, (code.variadic, code.keywords))]
        scope.names.update(zip(names, arguments, strict=True))
        self.waiting.append(
            Frame(code, scope, summary, function=function, home=function.home, guarded=guarded)
        )

    def lookup(self, scope: Scope | None, name: str) -> Value:
        """Return what a name stands for."""
        while scope is not None:
            value = scope.names.get(name)
            if value is not None:
                return value
            scope = scope.parent
        if name == "__builtins__":
            return self.pool.external("builtins")
        if name in ("__name__", "__file__") or "#" in name:
            # Never "__main__": an implementation is imported.
            return self.pool.constant(name)
        if name in _BUILTINS:
            return self.pool.external(f"builtins.{name}")
        if self.stars:
            return join_all(self.pool.external(f"{star}.{name}") for star in self.stars)
        return AN_OPAQUE

    def answer(self, frame: Frame, taken: int, value: Value) -> None:
        """Replace what an operation has taken from the stack; repeat it if it has to wait."""
        if self.waiting:
            frame.position -= 1
            return
        if taken:
            del frame.stack[-taken:]
        frame.stack.append(value)

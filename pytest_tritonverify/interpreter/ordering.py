"""Run the programs of a grid in another order, or as if at the same time.

The interpreter runs them one after another, from the first to the last. A device promises no order:
a kernel whose programs get in each other's way comes out differently in another one.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import operator
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.interpreter import atomics, together
from pytest_tritonverify.interpreter.patching import missing, replace

if TYPE_CHECKING:
    from collections.abc import Callable

REVERSED, SHUFFLED, TOGETHER = "reversed", "shuffled", "together"
KINDS = (REVERSED, SHUFFLED, TOGETHER)

_HOOKS = ("GridExecutor", "InterpreterBuilder", "interpreter_builder", "_interpreter")
_BUILDER_HOOKS = ("set_grid_idx", "set_grid_dim", *atomics.HOOKS)

Order = tuple[str, int]
"""One of `KINDS`, and a seed, which reversed programs make no use of."""


@dataclass
class _State:
    """What holds for this process.

    Attributes:
        order: of the programs of each launch; None leaves them as they are.
        installed: launches go by it.
    """

    order: Order | None = None
    installed: bool = False


_state = _State()


def choose(order: Order | None) -> bool:
    """Run the programs of the launches to come in an order; None is the interpreter's own.

    Returns:
        Whether that is possible in this version of Triton.
    """
    if order is not None and not _state.installed:
        from triton.runtime import interpreter

        if missing(interpreter, _HOOKS) or missing(interpreter.interpreter_builder, _BUILDER_HOOKS):
            return False
        replace(interpreter.GridExecutor, "__call__", lambda f: _make(f, interpreter))
        _state.installed = True
    _state.order = order
    return True


def places(order: Order, count: int) -> list[int]:
    """Return which program runs first, second and so on.

    Args:
        order: the kind and the seed; programs at the same time keep the grid's order by seed 0, in
            which what they have stored arrives.
        count: how many programs there are.
    """
    programs = list(range(count))
    kind, seed = order
    if kind == REVERSED:
        programs.reverse()
    elif kind == SHUFFLED or seed:
        random.Random(seed).shuffle(programs)  # noqa: S311 - repeatable, and no secret
    return programs


def _make(original: Any, interpreter: Any) -> Any:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        if _state.order is None:
            return original(self, *args, **kwargs)
        executor = copy.copy(self)
        with contextlib.ExitStack() as stack:
            kernel = self.fn
            if _state.order[0] == TOGETHER:
                kernel = stack.enter_context(together.apart(interpreter, kernel))
            executor.fn = _Launch(interpreter.interpreter_builder, kernel, _state.order)
            return original(executor, *args, **kwargs)

    return __call__


class _Launch:
    """Stands for the kernel in one launch: called once for each program, in the grid's order."""

    def __init__(self, builder: Any, kernel: Any, order: Order) -> None:
        self._builder = builder
        self._kernel = kernel
        self._order = order
        self.__signature__ = inspect.signature(kernel, follow_wrapped=False)
        self._left: list[int] = []
        self._set: Callable[[int], None] | None = None

    def __call__(self, **kwargs: Any) -> None:
        if self._set is None:
            # A grid function may have returned what only an index can be made of.
            xs, ys, zs = (operator.index(size) for size in self._builder.grid_dim)
            self._left = places(self._order, math.prod((xs, ys, zs)))[::-1]

            def set_program(program: int) -> None:
                self._builder.set_grid_idx(program // (ys * zs), program // zs % ys, program % zs)

            self._set = set_program
        self._set(self._left.pop())
        self._kernel(**kwargs)
        if not self._left and self._order[0] == TOGETHER:
            self._kernel.arrive()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

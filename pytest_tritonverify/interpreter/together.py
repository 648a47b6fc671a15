"""Run the programs of a grid as if all of them were at work at the same time.

The interpreter runs one program after another, so that each finds what those before it have stored.
A device runs many at once: a program may load before another one's store has arrived. Here every
program finds memory as the launch did, and what it has stored itself. What all have stored arrives
when the last of them has run. A device may do that in any launch whose programs don't wait for each
other, which takes atomic operations: with the first of these everything arrives, and the rest of
the launch runs one program after another.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_tritonverify.interpreter import bounds
from pytest_tritonverify.interpreter.atomics import HOOKS as ATOMICS
from pytest_tritonverify.interpreter.parallel_tracking import (
    STORE,
    element_size,
    lanes_of,
    stand_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    # Addresses of elements, and their bits.
    _Stored = tuple[NDArray[np.uint64], NDArray[Any]]

# What is kept back; a launch that stores more runs on as it does otherwise.
_MOST_BYTES = 1 << 28


class Apart:
    """Stands for a kernel whose programs don't see each other's stores.

    Args:
        interpreter: Triton's module.
        kernel: the kernel, which is called once for each program.
    """

    def __init__(self, interpreter: Any, kernel: Any) -> None:
        self.__signature__ = inspect.signature(kernel, follow_wrapped=False)
        self._kernel = kernel
        self._memory = interpreter._interpreter  # noqa: SLF001 - the module is what is changed
        self._own: list[_Stored] = []
        self._kept_back: list[_Stored] = []
        self._bytes = 0
        self._apart = True
        self.memory = stand_in(self._memory, lambda _: self.arrive(), **{STORE: self._store})

    def __call__(self, **kwargs: Any) -> None:
        """Run a program, and take back what it has stored."""
        self._kernel(**kwargs)
        # Where it has stored twice, the last value is what arrives.
        self._kept_back += [(where, self._read(where, bits.dtype)) for where, bits in self._own]
        for where, bits in reversed(self._own):
            self._write(where, bits)
        self._own.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def arrive(self) -> None:
        """Put in place what was kept back, and keep back nothing more."""
        for where, bits in self._kept_back:
            self._write(where, bits)
        self._kept_back.clear()
        self._own.clear()
        self._apart = False

    def _store(self, ptrs: Any, value: Any, mask: Any) -> Any:
        if self._apart:
            size = element_size(value)
            where = np.array(lanes_of(ptrs, mask), np.uint64).reshape(-1)
            where = where[bounds.within(where, size)]
            self._own.append((where, self._read(where, np.dtype(f"u{size}"))))
            self._bytes += where.size * (where.itemsize + size)
            if self._bytes > _MOST_BYTES:
                self.arrive()
        return self._memory.store(ptrs, value, mask)

    def _read(self, where: NDArray[np.uint64], dtype: np.dtype[Any]) -> NDArray[Any]:
        with bounds.unwatched():
            every = np.ones(where.size, np.bool_)
            return np.array(self._memory.load(where, every, np.zeros(where.size, dtype), dtype))

    def _write(self, where: NDArray[np.uint64], bits: NDArray[Any]) -> None:
        with bounds.unwatched():
            self._memory.store(where, bits, np.ones(where.size, np.bool_))


@contextlib.contextmanager
def apart(interpreter: Any, kernel: Any) -> Iterator[Apart]:
    """Keep the programs of one launch from seeing each other's stores meanwhile.

    Args:
        interpreter: Triton's module.
        kernel: the launch's kernel.

    Yields:
        What stands for it, to be told when the last program has run.
    """
    builder, memory = interpreter.InterpreterBuilder, interpreter._interpreter  # noqa: SLF001 - the module is what is changed
    atomics = {name: getattr(builder, name) for name in ATOMICS}
    found = Apart(interpreter, kernel)

    def arriving(original: Any) -> Any:
        def function(*args: Any) -> Any:
            # Some of them are made of loads and stores.
            found.arrive()
            return original(*args)

        return function

    interpreter._interpreter = found.memory  # noqa: SLF001 - as above
    for name, original in atomics.items():
        setattr(builder, name, arriving(original))
    try:
        yield found
    finally:
        interpreter._interpreter = memory  # noqa: SLF001 - as above
        for name, original in atomics.items():
            setattr(builder, name, original)

"""Watch launches of Triton kernels: on the interpreter and on devices, by whatever way they come.

Every way of launching ends in `GridExecutor.__call__` on the interpreter. On devices it is
`JITFunction.run`, or `CompiledKernel.__getitem__` for a kernel that user code has compiled itself.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import (
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

from pytest_tritonverify.observing import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import torch

    from pytest_tritonverify.observing.census import Census
    from pytest_tritonverify.observing.provenance import Ledger

_MOST_LAUNCHES = 512
_MOST_CONTENTS = 256


class LaunchesSuppressedError(BaseException):
    """Ends a forward that goes on launching although no launch has any effect."""


class Watch:
    """What happens to launches while it is installed, and the record of them.

    Args:
        folder: the implementation's folder, with a separator at its end.
        interpreted: kernels run on Triton's interpreter.
        ledger: follows the storages that launches read and write; None where nobody asks. Where
            `contents_of` is given it is only asked for digests.
        census: is suspended inside of launches, but not where their grid is computed.
        suppress_after: how many launches may be tried where none is carried out; None carries
            them out.
        contents_of: the arguments, as `launch:argument`, whose contents are wanted; None takes
            those that the ledger finds odd.
    """

    def __init__(
        self,
        folder: str,
        *,
        interpreted: bool,
        ledger: Ledger | None = None,
        census: Census | None = None,
        suppress_after: int | None = None,
        contents_of: frozenset[str] | None = None,
    ) -> None:
        self._folder = folder
        self._interpreted = interpreted
        self._ledger = ledger
        self._census = census
        self._suppress_after = suppress_after
        self._wanted = contents_of
        self._tuning = 0
        self._timing = 0
        self._launches: list[dict[str, Any]] = []
        self._thread = threading.get_ident()
        self.count = 0
        self.intact = True
        # Digests of odd arguments at the entry of a launch, by `launch:argument`.
        self.contents: dict[str, dict[str, Any]] = {}

    def recorded(self) -> list[dict[str, Any]]:
        """Return the launches as plain data, in order."""
        return self._launches

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Watch the launches of this process for a while."""
        patches = list(self._patches())
        for owner, name, make in patches:
            setattr(owner, name, make)
        try:
            yield
        finally:
            for owner, name, made in reversed(patches):
                self.intact &= vars(owner)[name] is made
                setattr(owner, name, made.original)

    def _patches(self) -> Iterator[tuple[Any, str, Any]]:
        from triton.runtime.autotuner import Autotuner

        yield Autotuner, "run", self._wrap(Autotuner.run, self._tune)
        if not self._interpreted:
            bench = self._wrap(Autotuner._bench, self._bench)  # noqa: SLF001 - where it times
            yield Autotuner, "_bench", bench
        if self._interpreted:
            from triton.runtime.interpreter import GridExecutor

            yield GridExecutor, "__call__", self._wrap(GridExecutor.__call__, self._interpret)
            return
        from triton.compiler import CompiledKernel
        from triton.runtime.jit import JITFunction

        yield JITFunction, "run", self._wrap(JITFunction.run, self._run)
        if hasattr(CompiledKernel, "__getitem__"):
            original = CompiledKernel.__getitem__
            yield CompiledKernel, "__getitem__", self._wrap(original, self._compiled)

    @staticmethod
    def _wrap(original: Any, handler: Callable[..., Any]) -> Any:
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            return handler(original, self, *args, **kwargs)

        watched.original = original  # type: ignore[attr-defined]
        return watched

    def _tune(self, original: Any, tuner: Any, *args: Any, **kwargs: Any) -> Any:
        self._tuning += 1
        try:
            return original(tuner, *args, **kwargs)
        finally:
            self._tuning -= 1

    def _bench(self, original: Any, tuner: Any, *args: Any, **kwargs: Any) -> Any:
        """Let a tuner time a configuration undisturbed: it launches it hundreds of times.

        What its hooks do is seen at the launch that follows, where they run again.
        """
        self._timing += 1
        try:
            with _disable_current_modes():
                return original(tuner, *args, **kwargs)
        finally:
            self._timing -= 1
            if self._ledger is not None and self._wanted is None:
                with _disable_current_modes():
                    for tensor in places.tensors_in((args, kwargs)):
                        self._ledger.launched(tensor)

    def _interpret(self, original: Any, executor: Any, *args: Any, **kwargs: Any) -> Any:
        grid = executor.grid
        names = list(getattr(executor, "arg_names", ()))

        def launch(watched: Any) -> Any:
            executor.grid = watched
            try:
                return original(executor, *args, **kwargs)
            finally:
                executor.grid = grid

        return self._launch(executor.fn, grid, _named(names, args, kwargs), launch)

    def _run(self, original: Any, kernel: Any, *args: Any, grid: Any, **kwargs: Any) -> Any:
        def launch(watched: Any) -> Any:
            return original(kernel, *args, grid=watched, **kwargs)

        if grid is None or kwargs.get("warmup"):
            return launch(grid)
        names = list(getattr(kernel, "arg_names", ()))
        return self._launch(kernel.fn, grid, _named(names, args, kwargs), launch)

    def _compiled(self, original: Any, kernel: Any, grid: Any) -> Any:
        runner = original(kernel, grid)
        function = getattr(getattr(kernel, "src", None), "fn", None)

        def run(*args: Any, **kwargs: Any) -> Any:
            names = list(getattr(function, "arg_names", ()))

            def launch(watched: Any) -> Any:
                if isinstance(watched, _Grid):
                    watched(None)
                return runner(*args, **kwargs)

            return self._launch(
                getattr(function, "fn", None), grid, _named(names, args, {}), launch
            )

        return run

    def _launch(
        self, function: Any, grid: Any, arguments: dict[str, Any], launch: Callable[[Any], Any]
    ) -> Any:
        if self._timing and self._suppress_after is None:
            return launch(grid)
        code = getattr(function, "__code__", None)
        place = places.user_line(self._folder)
        record: dict[str, Any] = {
            "kernel": getattr(code, "co_name", "?"),
            "file": getattr(code, "co_filename", "?"),
            "line": getattr(code, "co_firstlineno", 0),
            "programs": 0,
            "completed": False,
            "wrote": [],
            "tuned": self._tuning > 0,
            "own_thread": threading.get_ident() == self._thread,
            "site_file": place[0],
            "site_line": place[1],
        }
        number = self.count
        self.count += 1
        if len(self._launches) < _MOST_LAUNCHES:
            self._launches.append(record)
        if self._suppress_after is not None:
            if number >= self._suppress_after:
                raise LaunchesSuppressedError
            return None
        active = self._census in _get_current_dispatch_mode_stack()
        with _disable_current_modes():
            held = [(name, t) for name, v in arguments.items() for t in places.tensors_in(v)]
            self._check(number, record, held, place)
            watched = _Grid(grid, self._census if active else None)
            result = launch(watched)
            record["completed"] = True
            record["programs"] = watched.programs
            self._follow(record, held)
        return result

    def _check(
        self,
        number: int,
        record: dict[str, Any],
        held: list[tuple[str, torch.Tensor]],
        place: tuple[str | None, int],
    ) -> None:
        for name, tensor in held:
            key = f"{number}:{name}"
            if self._ledger is None:
                return
            if self._wanted is None:
                where = f"argument {name} of {record['kernel']}"
                odd = self._ledger.check(tensor, where, place)
            else:
                odd = "wanted" if key in self._wanted else None
            storage = places.storage_of(tensor)
            if odd is None or storage is None or len(self.contents) >= _MOST_CONTENTS:
                continue
            self.contents[key] = {
                "kind": odd,
                "digest": self._ledger.digest(storage).hex(),
                "tensor": places.described(tensor),
                "kernel": record["kernel"],
                "file": place[0],
                "line": place[1],
            }

    def _follow(self, record: dict[str, Any], held: list[tuple[str, torch.Tensor]]) -> None:
        if self._ledger is None or self._wanted is not None:
            return
        record["wrote"] = [name for name, tensor in held if self._ledger.launched(tensor)]


class _Grid:
    """Evaluates a grid as Triton would, with the census at work, and counts its programs."""

    def __init__(self, grid: Any, census: Census | None) -> None:
        self._grid = grid
        self._census = census
        self.programs = 0

    def __call__(self, arguments: Any) -> Any:
        if callable(self._grid):
            with self._census or contextlib.nullcontext():
                grid = self._grid(arguments)
        else:
            grid = self._grid
        count = 1
        for axis in grid if isinstance(grid, (tuple, list)) else (grid,):
            count *= max(int(axis), 0)
        self.programs = count
        return grid


def _named(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a launch's arguments by name, or by position where names are not known."""
    keys: Iterable[Any] = names if len(names) >= len(args) else range(len(args))
    named = {str(key): value for key, value in zip(keys, args, strict=False)}
    return {**named, **{str(name): value for name, value in kwargs.items()}}

"""Remember which kernels a run launched, and how: what a diagnosis of its outputs goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# A kernel in a loop is told once for each grid and set of constants; no diagnosis reads more.
_LIMIT = 64

_seen: dict[tuple[Any, ...], dict[str, Any]] = {}
_installed: list[bool] = []


def record(*, interpreted: bool) -> None:
    """Have launches in this process remembered; a second call changes nothing.

    Args:
        interpreted: kernels run on Triton's interpreter, not on a device.

    Raises:
        ModuleNotFoundError: triton is not installed.
    """
    if _installed:
        return
    _installed.append(True)
    if interpreted:
        _watch_interpreter()
    else:
        _watch_devices()


def reset() -> None:
    """Forget the launches so far."""
    _seen.clear()


def recorded() -> list[dict[str, Any]]:
    """Return the distinct launches since the last reset, in order.

    Each has `kernel`, `file`, `line`, `grid` and `constexprs` (integers by name).
    """
    return list(_seen.values())


class _Grid:
    """Evaluates a launch's grid as Triton would, and remembers the launch."""

    def __init__(self, grid: Any, function: Any, constants: frozenset[str]) -> None:
        self._grid = grid
        self._function = function
        self._constants = constants

    def __call__(self, arguments: Any) -> Any:
        grid = self._grid(arguments) if callable(self._grid) else self._grid
        constants = {n: value for n, value in arguments.items() if n in self._constants}
        _remember(self._function, grid, constants)
        return grid


def _watch_interpreter() -> None:
    from triton.runtime.interpreter import GridExecutor

    launch = GridExecutor.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        if not isinstance(self.grid, _Grid):
            self.grid = _Grid(self.grid, self.fn, frozenset(self.constexprs))
        return launch(self, *args, **kwargs)

    GridExecutor.__call__ = __call__


def _watch_devices() -> None:
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def watched(self: Any, *args: Any, grid: Any, **kwargs: Any) -> Any:
        if grid is None or kwargs.get("warmup"):
            return run(self, *args, grid=grid, **kwargs)
        parameters = getattr(self, "params", ())
        constants = frozenset(p.name for p in parameters if getattr(p, "is_constexpr", False))
        return run(self, *args, grid=_Grid(grid, self.fn, constants), **kwargs)

    JITFunction.run = watched


def _remember(function: Any, grid: Any, constants: Mapping[str, Any]) -> None:
    code = getattr(function, "__code__", None)
    if code is None or len(_seen) >= _LIMIT:
        return
    # `type`, not `isinstance`: a bool is a switch, and no size.
    sizes = {name: value for name, value in constants.items() if type(value) is int}
    axes = [int(axis) for axis in (grid if isinstance(grid, (tuple, list)) else (grid,))]
    key = (code, *axes, *sorted(sizes.items()))
    if key not in _seen:
        _seen[key] = {
            "kernel": code.co_name,
            "file": code.co_filename,
            "line": code.co_firstlineno,
            "grid": axes,
            "constexprs": sizes,
        }

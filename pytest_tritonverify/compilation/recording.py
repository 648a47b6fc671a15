"""Remember which kernels a run launched, and with what: everything that compiling them depends on.

It looks on from outside of all that the interpreter's repairs do to a launch, so that it sees what
the user's code handed over: options such as `num_warps`, the values of heuristics, and those of the
configuration that ran.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FunctionType

# A run with more distinct ones is recorded in part, and says so.
_MOST_KERNELS = 256
_LARGEST_ENTRY = 1 << 16
_PLAIN = (bool, int, float, str)
# What a kernel's maker was told that changes its specialisations.
_JIT_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline", "debug")


@dataclasses.dataclass
class _State:
    """What this process records.

    Attributes:
        all_configurations: record every configuration of autotuned kernels.
        rehearsing: launches are recorded and not carried out.
    """

    folder: Path = dataclasses.field(default_factory=Path)
    all_configurations: bool = False
    rehearsing: bool = False
    found: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    left_out: int = 0
    imported: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    made: weakref.WeakKeyDictionary[FunctionType, dict[str, Any]] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary
    )


_state = _State()
_prepared: list[bool] = []
_watching: list[bool] = []


def prepare(folder: Path, *, interpreted: bool, all_configurations: bool) -> None:
    """Note how kernels are made from now on; to be called before the implementation is imported.

    Args:
        folder: the implementation's.
        interpreted: kernels run on Triton's interpreter, not on a device.
        all_configurations: record every configuration of autotuned kernels.

    Raises:
        ModuleNotFoundError: triton is not installed.
    """
    _state.folder, _state.all_configurations = folder, all_configurations
    if _prepared:
        return
    _prepared.append(True)
    if interpreted:
        from triton.runtime.interpreter import InterpretedFunction as Kernel
    else:
        from triton.runtime.jit import JITFunction as Kernel
    make = Kernel.__init__

    @functools.wraps(make)
    def __init__(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        make(self, fn, *args, **kwargs)
        with contextlib.suppress(TypeError):
            _state.made[fn] = {name: kwargs[name] for name in _JIT_OPTIONS if kwargs.get(name)}

    Kernel.__init__ = __init__


def watch(*, interpreted: bool) -> None:
    """Record launches; to be called once everything else that changes them is in place."""
    if _watching:
        return
    _watching.append(True)
    from triton.runtime.autotuner import Autotuner

    Autotuner.run = _tuning(Autotuner.run)
    if interpreted:
        from triton.runtime.interpreter import GridExecutor

        GridExecutor.__call__ = _interpreting(GridExecutor.__call__)
        return
    from triton.runtime.jit import JITFunction

    JITFunction.run = _launching(JITFunction.run)


def imported() -> None:
    """Note the variables of the implementation's modules as they are once it is imported."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and _state.folder in Path(file).parents:
            _state.imported.setdefault(name, _plain_variables(vars(module)))


def reset() -> None:
    """Forget the launches so far."""
    _state.found.clear()
    _state.left_out = 0


def recorded() -> dict[str, Any]:
    """Return the distinct launches since the last reset, in order, and how many were left out."""
    return {"launches": list(_state.found.values()), "left_out": _state.left_out}


def _tuning(run: Any) -> Any:
    @functools.wraps(run)
    def tuning(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        if _state.all_configurations and not _state.rehearsing and len(self.configs) > 1:
            for config in _configurations(self, args, kwargs):
                with _rehearsal():
                    self.fn.run(*args, **{**kwargs, **config.all_kwargs()})
        return result

    return tuning


def _configurations(tuner: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return what is left of a tuner's configurations after pruning."""
    prune = inspect.unwrap(type(tuner).prune_configs)
    before = getattr(tuner, "nargs", None)
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        return list(prune(tuner, kwargs))
    except Exception:  # noqa: BLE001 - user code; the launch itself has succeeded with one of them
        return list(tuner.configs)
    finally:
        tuner.nargs = before


@contextlib.contextmanager
def _rehearsal() -> Iterator[None]:
    _state.rehearsing = True
    try:
        yield
    finally:
        _state.rehearsing = False


def _interpreting(launch: Any) -> Any:
    @functools.wraps(launch)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        _record(_original(self.fn), frozenset(self.constexprs), args, kwargs)
        return None if _state.rehearsing else launch(self, *args, **kwargs)

    return __call__


def _original(function: Any) -> Any:
    """Return the user's function that the interpreter has rewritten."""
    from triton.runtime.interpreter import InterpretedFunction

    rewritten = getattr(InterpretedFunction, "rewritten_fn", {})
    return next((fn for fn, made in rewritten.items() if made is function), function)


def _launching(run: Any) -> Any:
    @functools.wraps(run)
    def launching(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            constants = frozenset(p.name for p in self.params if p.is_constexpr)
            _record(self.fn, constants, args, kwargs)
            if _state.rehearsing:
                return None
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    return launching


def _record(function: Any, constants: frozenset[str], args: Any, kwargs: Any) -> None:
    signature = inspect.signature(function)
    given = {name: value for name, value in kwargs.items() if name in signature.parameters}
    try:
        bound = signature.bind(*args, **given)
    except TypeError:
        return  # the launch itself says what is wrong
    bound.apply_defaults()
    options = {
        name: value for name, value in kwargs.items() if name not in given and name != "warmup"
    }
    entry = {
        **values.place_of(function),
        "qualname": function.__qualname__,
        "args": {
            name: values.describe(value, constant=name in constants)
            for name, value in bound.arguments.items()
        },
        "constants": sorted(constants),
        "options": {name: values.describe(value, constant=True) for name, value in options.items()},
        "closure": _closure(function),
        "annotations": _annotations(signature),
        "jit": {name: _plain(value) for name, value in _state.made.get(function, {}).items()},
        "changed": _changed(function),
    }
    text = json.dumps(entry, sort_keys=True)
    if text in _state.found:
        return
    if len(_state.found) >= _MOST_KERNELS or len(text) > _LARGEST_ENTRY:
        _state.left_out += 1
        return
    _state.found[text] = entry


def _closure(function: FunctionType) -> dict[str, Any]:
    """Describe the variables that a kernel takes from the function in which it is defined."""
    names = function.__code__.co_freevars
    cells = function.__closure__ or ()
    found = {}
    for name, cell in zip(names, cells, strict=True):
        with contextlib.suppress(ValueError):  # it has no value yet
            found[name] = values.describe(cell.cell_contents, constant=True)
    return found


def _annotations(signature: inspect.Signature) -> dict[str, str]:
    empty = inspect.Parameter.empty
    declared = {p.name: p.annotation for p in signature.parameters.values()}
    return {
        name: what if isinstance(what, str) else getattr(what, "__name__", str(what))
        for name, what in declared.items()
        if what is not empty
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [item for item in value if isinstance(item, (int, str))]
    return value if isinstance(value, _PLAIN) else None


def _plain_variables(variables: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in list(variables.items()):
        inner = getattr(value, "value", None) if type(value).__name__ == "constexpr" else value
        if isinstance(inner, _PLAIN) and not name.startswith("__"):
            found[name] = value
    return found


def _changed(function: FunctionType) -> dict[str, dict[str, Any]]:
    """Describe the variables of modules that were changed since and that kernels may read."""
    found: dict[str, dict[str, Any]] = {}
    for module, code in _codes(function):
        before = _state.imported.get(module)
        if before is None:
            continue
        now = _plain_variables(vars(sys.modules[module]))
        for name in _names(code):
            if name in now and (name not in before or before[name] is not now[name]):
                described = values.describe(now[name], constant=True)
                found.setdefault(module, {})[name] = described
    return found


def _codes(function: FunctionType) -> Iterator[tuple[str, CodeType]]:
    """Yield the code of a kernel and of the kernels that it calls, with their modules' names."""
    waiting, seen = [function], {function}
    while waiting:
        one = waiting.pop()
        module = one.__module__
        if module not in sys.modules:
            continue
        yield module, one.__code__
        for name in _names(one.__code__):
            called = getattr(one.__globals__.get(name), "fn", None)
            if inspect.isfunction(called) and called not in seen:
                seen.add(called)
                waiting.append(called)


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            found |= _names(constant)
    return found

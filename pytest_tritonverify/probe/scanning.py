"""Find the tensors that a model holds, wherever it keeps them, under names that are stable.

Names are paths: `dense.weight`, `layers.0.weight`, `_cache.w`. They leave out what differs between
two files that do the same: a plain list stands like a `ModuleList`, a dict like a `ModuleDict`,
`self.__w` without the name of its class, and a key that names a device without its name.

Nothing is asked of the objects themselves, as far as Python allows: their properties and their
`__getattr__` may raise, or tell anything.
"""

from __future__ import annotations

import collections
import functools
import re
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.probe import digests
from pytest_tritonverify.probe.inventory import MOST_TENSORS

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 40
_MOST_VISITED = 20_000
_LONGEST_NAME = 200
# Names under which a shared module or container is shown.
_MOST_NAMES = 4
# What the module itself is made of.
_TORCH_STATE = ("_parameters", "_buffers", "_modules")
# The attributes that torch gives every module; none of them is its author's.
_TORCH_OWN = frozenset(vars(torch.nn.Module())) | {"_is_hf_initialized"}
_SEQUENCES = (list, tuple, collections.deque)
_MODULE_SEQUENCES = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)
_MODULE_LEVEL = "<module>"
_DEVICE = re.compile(r"\b(?:cpu|cuda|npu|xpu|mps)(?::\d+)?\b")
_UNINITIALISED = (
    torch.nn.parameter.UninitializedParameter,
    torch.nn.parameter.UninitializedBuffer,
)
_WITHOUT_ATTRIBUTES = frozenset({dict, set, frozenset, *_SEQUENCES})
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


@dataclass(frozen=True)
class Held:
    """A tensor, and whether it is a parameter or a buffer."""

    tensor: torch.Tensor
    registered: bool


@dataclass
class Found:
    """What a scan found.

    Attributes:
        tensors: by name; a shared tensor stands under all its names.
        sequences: lengths by name; None for what has no order.
        truncated: there was more than a scan goes through.
    """

    tensors: dict[str, Held] = field(default_factory=dict)
    sequences: dict[str, int | None] = field(default_factory=dict)
    truncated: bool = False


def scan(model: Any, folder: Path, module_level: dict[str, Any]) -> Found:
    """Find the tensors that a model holds.

    Args:
        model: the model.
        folder: where its author's files are: only classes and functions from there are looked
            into, and torch's modules.
        module_level: values of its file that count too, by their names.
    """
    scanner = _Scanner(folder)
    scanner.walk("", model)
    for name, value in module_level.items():
        scanner.walk(f"{_MODULE_LEVEL}.{name}", value)
    return scanner.result()


def module_values(module: Any) -> dict[str, Any]:
    """Return what a module's file keeps at its top level: caches, weights, whole layers."""
    kept = {}
    kinds = (torch.Tensor, torch.nn.Module, dict, *_SEQUENCES, set, functools.partial)
    for name, value in list(vars(module).items()):
        own = (value if _is(value, type) else type(value)).__module__ == module.__name__
        if not name.startswith("__") and (_is(value, *kinds) or own):
            kept[name] = value
    return kept


def named_values(model: Any, module: Any) -> dict[str, Any]:
    """Return what a model's own code names of its file's top level: the rest isn't its state."""
    values = module_values(module)
    named: set[str] = set()
    pending: list[Any] = [cls for cls in type(model).__mro__ if cls.__module__ == module.__name__]
    while pending:
        value = pending.pop()
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                pending += vars(value).values()
            continue
        code = _code_of(value)
        if code is None:
            continue
        pending += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        fresh = [name for name in code.co_names if name not in named and name in vars(module)]
        named.update(fresh)
        pending += [vars(module)[name] for name in fresh]
    return {name: value for name, value in values.items() if name in named}


def _code_of(value: Any) -> types.CodeType | None:
    if isinstance(value, types.CodeType):
        return value
    if isinstance(value, property):
        value = value.fget
    for inner in ("__func__", "__wrapped__"):
        value = getattr(value, inner, value)
    return value.__code__ if isinstance(value, types.FunctionType) else None


def _is(value: Any, *kinds: type) -> bool:
    """Whether a value is an instance, by its true type: `__class__` may be a property."""
    return issubclass(type(value), kinds)


class _Scanner:
    """Walks through objects; what is shared is shown under its first few names."""

    def __init__(self, folder: Path) -> None:
        self.found = Found()
        self._folder = folder
        self._visited = 0
        # What the walk is inside of, as a cycle has no end; and how often a part was walked.
        self._above: set[int] = set()
        self._walks: collections.Counter[int] = collections.Counter()
        self._homes: dict[str, bool] = {}

    def result(self) -> Found:
        """Return what was found; of sequences those that hold tensors."""
        steps = [name.split(".") for name in self.found.tensors]
        holding = {".".join(path[:depth]) for path in steps for depth in range(len(path))}
        kept = [item for item in self.found.sequences.items() if item[0] in holding]
        self.found.sequences = dict(kept[:MOST_TENSORS])
        self.found.truncated |= len(kept) > MOST_TENSORS
        return self.found

    def walk(self, name: str, value: Any, *, registered: bool = False, depth: int = 0) -> None:
        """Note a tensor, or look into what may hold some."""
        if _is(value, torch.Tensor):
            self._note(name, value, registered=registered)
            return
        if not self._may_hold(value) or id(value) in self._above:
            return
        self._walks[id(value)] += 1
        if self._walks[id(value)] > _MOST_NAMES:
            return
        self._visited += 1
        full = len(self.found.tensors) >= MOST_TENSORS or self._visited > _MOST_VISITED
        if full or depth > _DEEPEST or len(name) > _LONGEST_NAME:
            self.found.truncated = True
            return
        self._above.add(id(value))
        try:
            for step, part, own in self._parts(name, value):
                self.walk(_joined(name, step), part, registered=own, depth=depth + 1)
        except Exception:  # noqa: BLE001 - user code may be anywhere: what can't be seen isn't there
            self.found.truncated = True
        finally:
            self._above.discard(id(value))

    def _note(self, name: str, tensor: torch.Tensor, *, registered: bool) -> None:
        if len(self.found.tensors) >= MOST_TENSORS or len(name) > _LONGEST_NAME:
            self.found.truncated = True
            return
        # One that waits for its first input has no values yet, and an empty one never has any.
        if _is(tensor, *_UNINITIALISED) or not digests.count(tensor):
            return
        number, free = 1, name or "<model>"
        while free in self.found.tensors:
            number, free = number + 1, f"{name}#{number + 1}"
        self.found.tensors[free] = Held(tensor, registered)

    def _may_hold(self, value: Any) -> bool:
        kinds = (torch.nn.Module, dict, *_SEQUENCES, set, frozenset, types.SimpleNamespace)
        if _is(value, *kinds, *_FUNCTIONS):
            return True
        return self._is_users(value if _is(value, type) else type(value))

    def _is_users(self, thing: Any) -> bool:
        """Whether a class or a function is from the author's files."""
        home = getattr(thing, "__module__", None)
        if not isinstance(home, str):
            return False
        if home not in self._homes:
            spec = getattr(sys.modules.get(home), "__spec__", None)
            file = getattr(spec, "origin", None)
            self._homes[home] = isinstance(file, str) and self._folder in Path(file).parents
        return self._homes[home]

    def _parts(self, name: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
        """Yield the parts of a value: step of the name, part, and whether it is registered."""
        if _is(value, torch.nn.Module):
            yield from self._parts_of_module(name, value)
        elif _is(value, dict):
            for key, part in list(dict.items(value)):
                yield _step(key), part, False
            yield from self._attributes(value)
        elif _is(value, *_SEQUENCES, set, frozenset):
            ordered = _is(value, *_SEQUENCES)
            self.found.sequences[name] = len(value) if ordered else None
            for index, part in enumerate(list(value)):
                yield str(index), part, False
            yield from self._attributes(value)
        elif _is(value, *_FUNCTIONS):
            yield from self._parts_of_function(value)
        elif _is(value, type):
            for key, part in list(vars(value).items()):
                if not key.startswith("__"):
                    yield key, part, False
        else:
            yield from self._attributes(value)

    def _parts_of_module(
        self, name: str, module: torch.nn.Module
    ) -> Iterator[tuple[str, Any, bool]]:
        own = object.__getattribute__(module, "__dict__")
        if "_parameters" not in own:
            # A compiled module keeps its tensors out of Python's sight.
            for key, part in (*module.named_parameters(), *module.named_buffers()):
                yield key, part, True
            return
        if _is(module, *_MODULE_SEQUENCES):
            self.found.sequences[name] = sum(len(own.get(kind) or ()) for kind in _TORCH_STATE)
        for kind in _TORCH_STATE:
            for key, part in list((own.get(kind) or {}).items()):
                if part is not None:
                    yield _step(key), part, kind != "_modules"
        yield from self._attributes(module)

    def _parts_of_function(self, function: Any) -> Iterator[tuple[str, Any, bool]]:
        if _is(function, functools.partial):
            for index, part in enumerate(function.args):
                yield f"args.{index}", part, False
            for key, part in function.keywords.items():
                yield f"keywords.{key}", part, False
            yield "func", function.func, False
            return
        if _is(function, types.MethodType):
            yield "self", function.__self__, False
            return
        if self._is_users(function):
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
            for key, cell in cells:
                try:
                    yield f"closure.{key}", cell.cell_contents, False
                except ValueError:  # nothing was put into it yet
                    continue

    def _attributes(self, value: Any) -> Iterator[tuple[str, Any, bool]]:
        """Yield plain attributes: of the instance first, then those that its classes keep."""
        if type(value) in _WITHOUT_ATTRIBUTES:
            return
        seen: set[str] = set()
        mangled = [f"_{cls.__name__.lstrip('_')}__" for cls in type(value).__mro__]
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:  # it has slots, or is one of Python's own
            own = {}
        layers = [own] if isinstance(own, dict) else []
        layers += [
            {key: _slot(part, value) for key, part in vars(cls).items()}
            for cls in type(value).__mro__
            if self._is_users(cls)
        ]
        is_module = _is(value, torch.nn.Module)
        for layer in layers:
            for key, part in list(layer.items()):
                hidden = not _is(key, str) or (key.startswith("__") and key.endswith("__"))
                if hidden or key in seen or (is_module and key in _TORCH_OWN):
                    continue
                seen.add(key)
                if layer is not own and _is(part, types.FunctionType):
                    continue
                short = next((key[len(m) - 2 :] for m in mangled if key.startswith(m)), key)
                yield short, part, False


def _slot(value: Any, instance: Any) -> Any:
    """Return what a slot of an instance holds; other attributes of a class are their own value."""
    if not _is(value, types.MemberDescriptorType):
        return value
    try:
        return value.__get__(instance)
    except AttributeError:
        return None


def _joined(name: str, step: str) -> str:
    return f"{name}.{step}" if name else step


def _step(key: Any) -> str:
    """Return a key as a step of a name."""
    if isinstance(key, torch.device):
        return "[<device>]"
    if isinstance(key, str):
        text = _DEVICE.sub("<device>", key)
        return text if re.fullmatch(r"[\w<>]+", text) else f"[{text!r}]"
    if key is None or isinstance(key, (bool, int, float, complex, torch.dtype, torch.Size)):
        return f"[{key!r}]" if not isinstance(key, int) or isinstance(key, bool) else str(int(key))
    if isinstance(key, tuple):
        return f"[{', '.join(_step(part).strip('[]') for part in key)}]"
    return f"[<{type(key).__name__}>]"

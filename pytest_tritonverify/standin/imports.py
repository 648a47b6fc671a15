"""Modules that the stand-in makes, or completes, when they are imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.standin import usage
from pytest_tritonverify.standin.refusals import StandinImportError, sentence

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from pytest_tritonverify.standin.patches import Patches


class Imports(importlib.abc.MetaPathFinder):
    """Comes first when a module is looked for."""

    def __init__(self) -> None:
        self._provided: dict[str, tuple[Callable[[], ModuleType], str]] = {}
        self._completed: dict[str, Callable[[ModuleType], None]] = {}
        self._owned: tuple[str, ...] = ()
        self._looking = False

    def install(self, patches: Patches) -> None:
        """Take part in imports."""
        sys.meta_path.insert(0, self)
        patches.later(self._leave)

    def _leave(self) -> None:
        sys.meta_path.remove(self)
        for name in self._provided:
            sys.modules.pop(name, None)

    def provide(self, name: str, make: Callable[[], ModuleType], word: str) -> None:
        """Have a module made when it is imported, which is noted as a word."""
        self._provided[name] = make, word

    def own(self, package: str) -> None:
        """Answer for everything in a package: what isn't provided isn't there."""
        self._owned += (package,)

    def complete(self, name: str, change: Callable[[ModuleType], None]) -> None:
        """Have a module changed after it was imported; at once, if it was."""
        if name in sys.modules:
            change(sys.modules[name])
        else:
            self._completed[name] = change

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find what is provided, and what is to be completed."""
        del path, target
        if fullname in self._provided:
            make, word = self._provided[fullname]
            usage.note(word)
            loader = _Maker(make)
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
        if fullname.partition(".")[0] in self._owned:
            raise StandinImportError(sentence(f"the module {fullname}"), name=fullname)
        change = self._completed.get(fullname)
        if change is None or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Completer(spec.loader, change)
        return spec


class _Maker(importlib.abc.Loader):
    def __init__(self, make: Callable[[], ModuleType]) -> None:
        self._make = make

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        del spec
        return self._make()

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Completer(importlib.abc.Loader):
    def __init__(self, loader: Any, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)

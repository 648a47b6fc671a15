"""The part of CANN's Python packages that kernels' launchers ask for the chip's buffers."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.standin import facts
from pytest_tritonverify.standin.refusals import refuse
from pytest_tritonverify.standin.torch_npu import StandinModule

if TYPE_CHECKING:
    from types import ModuleType

    from pytest_tritonverify.standin.imports import Imports

_WORD = "cann"
_PLATFORM = "tbe.common.platform"


def install(imports: Imports) -> None:
    """Provide `tbe.common.platform`, where CANN isn't installed."""
    if importlib.util.find_spec("tbe") is not None:
        return
    contents: dict[str, dict[str, Any]] = {
        "tbe": {},
        "tbe.common": {},
        _PLATFORM: {
            "get_soc_spec": _specification,
            "set_current_compile_soc_info": lambda *_, **__: None,
        },
    }
    for name, offered in contents.items():
        imports.provide(name, _making(name, offered), _WORD)


def _making(name: str, offered: dict[str, Any]) -> Any:
    def make() -> ModuleType:
        module = StandinModule(name, _WORD, offered)
        module.__path__ = []
        return module

    return make


def _specification(key: str) -> Any:
    found = facts.soc_specification()
    if key not in found:
        raise refuse(f"{_PLATFORM}.get_soc_spec({key!r})")
    return found[key]

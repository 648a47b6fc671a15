"""Stand-ins for what the environment is gathered from."""

from __future__ import annotations

import platform
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.support.environments import VARIABLES, InstallTriton

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def install_triton(monkeypatch: pytest.MonkeyPatch) -> InstallTriton:
    """Replace triton by stand-in modules, or (with no module at all) by nothing."""

    def install(**modules: object) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
            monkeypatch.delitem(sys.modules, name)
        if not modules:
            monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "triton", None)
            return
        top = ModuleType("triton")
        top.__file__ = "/opt/python/site-packages/triton/__init__.py"
        monkeypatch.setitem(sys.modules, "triton", top)
        for name, attributes in modules.items():
            target = top if name == "top" else ModuleType(f"triton.{name.replace('__', '.')}")
            target.__dict__.update(cast("dict[str, object]", attributes))
            monkeypatch.setitem(sys.modules, target.__name__, target)

    return install


@pytest.fixture
def install_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(**attributes: object) -> None:
        torch = ModuleType("torch")
        torch.__dict__.update({"__version__": "2.1.0"} | attributes)
        monkeypatch.setitem(sys.modules, "torch", torch)

    return install


@pytest.fixture
def cann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an x86 toolkit's info files, with no file in it yet."""
    folder = tmp_path / "ascend-toolkit" / "latest" / "x86_64-linux"
    folder.mkdir(parents=True)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(folder.parent))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return folder

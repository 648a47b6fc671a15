"""Sections of the environment, as they are gathered in this process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, cast

import pytest

from pytest_tritonverify.environment import CacheFacts, collect

SECTIONS = ["timestamp", "triton", "cache", "cann", "torch", "device", "cmdline"]
TOOLKIT_INFO = (
    "package_name=Ascend-cann-toolkit\n"
    "version=8.3.RC2\n"
    "innerversion=V100R001C23SPC002B210\n"
    "compatible_version=[V100R001C15],[V100R001C23]\n"
    "arch=x86_64\n"
    "os=linux\n"
)
VARIABLES = (
    "ASCEND_HOME_PATH",
    "ASCEND_RT_VISIBLE_DEVICES",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_CACHE_DIR",
    "TRITON_CACHE_MANAGER",
    "TRITON_HOME",
    "TRITON_REMOTE_CACHE_BACKEND",
)

InstallTriton = Callable[..., None]

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton isn't installed"
)


def section(name: str, *, device: str = "cpu", fresh: bool = False) -> dict[str, Any]:
    return cast(
        "dict[str, Any]", collect(device=device, cmdline={}, cache=CacheFacts(fresh=fresh))[name]
    )

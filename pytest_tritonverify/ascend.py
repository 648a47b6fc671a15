"""Advice for set-ups of Ascend servers that go wrong, by what was raised and what is installed.

The patterns are texts of torch, torch_npu, triton, CANN and the dynamic linker. Nothing here
imports any of them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tritonverify.execution import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
_HOME = "ASCEND_HOME_PATH"

_NO_LIBRARY = re.compile(r"(lib\w+\.so[.\d]*): cannot open shared object file")
# Of the driver, which a container must be given; all others are CANN's.
_OF_THE_DRIVER = re.compile(r"libascend_hal|libdrv|libdcmi")
_UNDEFINED = re.compile(r"undefined symbol|version `\w+_[\d.]+' not found")
_NO_MODULE = re.compile(r"No module named '(\w+)")
_TWO_KINDS = re.compile(r"Two accelerators cannot be used at the same time")
_NO_DRIVER = re.compile(r"\b0 active drivers")
_CODE = re.compile(r"error code is (\d{6})")
# From acl/error_codes/rt_error_codes.h: wrong number, no such device, set-up, driver, connection.
_NOT_TO_BE_HAD = {"107001", "207004", "507033", "507899", "507901"}
_INVALID = re.compile(r"[Ii]nvalid device ID", re.IGNORECASE)
_MEMORY = re.compile(r"NPU out of memory|error code is 2070(01|18)|EL0004")

_SOURCE = (
    "source CANN's set_env.sh in the shell that starts pytest (/usr/local/Ascend/cann/set_env.sh, "
    "before CANN 8.5 /usr/local/Ascend/ascend-toolkit/set_env.sh; a non-interactive shell does not "
    "do it by itself)"
)
_BUSY = (
    "`npu-smi info` shows whether it is healthy and which processes use it; choose another one "
    f"with {_VISIBLE}"
)


def explained(error: BaseException, environment: Mapping[str, str]) -> str:
    """Say what was raised, and what to do about it where that is known.

    Args:
        error: what importing or opening raised.
        environment: the variables of the process that raised.
    """
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links:
        links.append(link)
        link = link.__cause__ or link.__context__
    root = links[-1]
    text = f"{errors.type_name(root)}: {errors.message_of(root).strip().partition(chr(10))[0]}"
    known = advice("\n".join(errors.message_of(one) for one in links), environment)
    return f"{text}; {known}" if known else text


def advice(text: str, environment: Mapping[str, str]) -> str | None:
    """Return what to do about a failure of the set-up, or None where nothing is known.

    Args:
        text: what was raised, causes included.
        environment: the variables of the process that raised.
    """
    # Libraries that don't match fail in many ways, which say nothing of it.
    known = [said for said in (by_text(text, environment), mismatch()) if said]
    return "; and ".join(known) or None


def by_text(text: str, environment: Mapping[str, str]) -> str | None:  # noqa: PLR0911 - one case a cause
    """Return what to do about what was raised alone, whatever is installed."""
    library = _NO_LIBRARY.search(text)
    if library is not None:
        return _missing_library(library[1], environment)
    if _UNDEFINED.search(text):
        return (
            "torch_npu was built for another torch or another CANN: install the torch and the "
            "CANN that its release notes name"
        )
    module = _NO_MODULE.search(text)
    if module is not None:
        return _missing_module(module[1])
    if _TWO_KINDS.search(text):
        return "this torch brings another accelerator along: install its CPU build"
    if _NO_DRIVER.search(text):
        return _no_backend(environment)
    if _MEMORY.search(text):
        return f"other processes use the device's memory: {_BUSY}"
    code = _CODE.search(text)
    if (code is not None and code[1] in _NOT_TO_BE_HAD) or _INVALID.search(text):
        return f"the device can't be opened: {_BUSY}"
    return None


def _missing_library(name: str, environment: Mapping[str, str]) -> str:
    if _OF_THE_DRIVER.match(name):
        return (
            f"{name} belongs to the driver: install it, or give it to the container, and put "
            "/usr/local/Ascend/driver/lib64/driver into LD_LIBRARY_PATH"
        )
    home = environment.get(_HOME)
    if not home:
        return f"CANN is not set up ({_HOME} is not set): {_SOURCE}"
    if not Path(home).is_dir():
        return f"{_HOME} names {home}, and there is no such folder: {_SOURCE}"
    return (
        f"{_HOME} names {home}, but {name} is not on LD_LIBRARY_PATH: {_SOURCE}; where that was "
        "done, CANN is not complete, or not the version that torch_npu needs"
    )


def _missing_module(name: str) -> str:
    if name == "torch_npu":
        return "install the torch_npu that belongs to the installed torch: " + _matching()
    return f"install {name}, which torch_npu or triton-ascend needs"


def _matching() -> str:
    torch = _version("torch")
    return f"pip install torch_npu=={_public(torch)}" if torch else "pip install torch torch_npu"


def mismatch() -> str | None:
    """Say that torch and torch_npu are not for each other, where their versions tell it."""
    torch, torch_npu = _version("torch"), _version("torch_npu")
    if torch is None or torch_npu is None or _series(torch) == _series(torch_npu):
        return None
    return (
        f"torch {torch} and torch_npu {torch_npu} don't belong together: install either "
        f"torch=={_series(torch_npu)}.* or torch_npu=={_series(torch)}.*"
    )


def foreign_triton(target: str) -> str:
    """Say that Triton compiles for something else."""
    return f"triton compiles for {target}, not for the NPU; {_reinstall()}"


def _no_backend(environment: Mapping[str, str]) -> str:
    backend = _backend_folder()
    if backend is not None and not backend.is_dir():
        return _reinstall()
    if not environment.get(_HOME):
        return (
            f"triton-ascend finds no compiler, as CANN is not set up ({_HOME} is not set): "
            f"{_SOURCE}"
        )
    return (
        "triton-ascend finds no compiler: `bishengir-compile` and `bisheng` of CANN must be on "
        f"PATH; {_SOURCE}"
    )


def _reinstall() -> str:
    """Return how the two packages that own `triton` are put in order."""
    both = [name for name in ("triton", "triton-ascend") if _version(name)]
    found = " and ".join(f"{name} {_version(name)}" for name in both) or "no Triton"
    why = (
        "both install the package `triton`, and the later one has overwritten the other's files: "
        if len(both) > 1
        else ""
    )
    return (
        f"{found} {'are' if len(both) > 1 else 'is'} installed; {why}pip uninstall -y triton "
        "triton-ascend && pip install triton-ascend"
    )


def _backend_folder() -> Path | None:
    """Return where triton-ascend keeps its back end, without importing triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), "backends", "ascend")


def none_visible(environment: Mapping[str, str]) -> str:
    """Say why torch_npu sees no device."""
    wanted = environment.get(_VISIBLE)
    said = f"torch_npu {_version('torch_npu') or ''}".strip() + " sees no NPU"
    if wanted is None:
        return f"{said}; `npu-smi info` must list one: {_BUSY.partition(';')[0]}"
    return (
        f"{said} ({_VISIBLE}={wanted!r}); it takes numbers of `npu-smi info` in ascending order, "
        "separated by commas, and stops at the first one that doesn't exist"
    )


def signs(environment: Mapping[str, str]) -> list[str]:
    """Return what of an Ascend set-up there is beside device files, for people."""
    found = [f"{_HOME}={environment[_HOME]}"] if environment.get(_HOME) else []
    versions = ((name, _version(name)) for name in ("torch_npu", "triton-ascend"))
    return [*found, *(f"{name} {version}" for name, version in versions if version)]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _public(version: str) -> str:
    """Return a version without what says how it was built."""
    return version.partition("+")[0]


def _series(version: str) -> str:
    return ".".join(_public(version).split(".")[:2])

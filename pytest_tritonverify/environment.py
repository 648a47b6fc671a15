"""The environment fingerprint of a result file: what a verdict was reached with.

Two verdicts can be compared only where the compiler, the toolkit and the device agree, so the
fingerprint names them: Triton by the digest of its own cache key, CANN by the digest of the
file that the Ascend backend hashes into that key, torch, the compile cache and the device.

It runs in a worker process that has the implementation's environment. Collecting never raises
and never starts an accelerator other than the judged one: an entry that can't be had leaves an
`error` in its section, beside whatever of that section could be had.
"""

import hashlib
import importlib
import importlib.metadata
import math
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

from pytest_tritonverify import own_cache, plain_files

_KEY_MODULES = ("triton.runtime.cache", "triton.compiler.compiler")
"""Where `triton_key` is, in newer tritons and in older ones (triton-ascend 3.2 included)."""

_CANN_INFO_FILES = ("ascend_toolkit_install.info", "ascend_all_cann_install.info")
"""In the order in which the Ascend backend looks for them."""

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Machine names that differ from those in CANN's folder names."""

_CANN_VERSION = re.compile(r"^\s*version\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_CPU_MODEL = re.compile(r"^model name\s*:\s*(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class CacheFacts:
    """What only the caller knows of the compile cache.

    Attributes:
        fresh: Whether this run asked for an empty cache of its own.
    """

    fresh: bool = False


def collect(*, device: str, cmdline: Mapping[str, object], cache: CacheFacts) -> dict[str, object]:
    """Collect the fingerprint of the running process.

    Args:
        device: The device judged on: `npu`, `cuda` or `cpu`. No other one is started.
        cmdline: The options that decided the run, copied in their order.
        cache: What the caller knows of the compile cache.

    Returns:
        The sections `timestamp`, `triton`, `cache`, `cann`, `torch`, `device` and `cmdline`, in
        this order, made of JSON's own types. A section that failed, wholly or in part, holds
        `error`: `"Type: message"`.
    """
    return {
        "timestamp": datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds"),
        "triton": _triton(),
        "cache": _cache(cache),
        "cann": _cann(),
        "torch": _torch(device),
        "device": _device(device),
        "cmdline": {str(name): _plain(value) for name, value in cmdline.items()},
    }


def sources(paths_by_role: Mapping[str, Path]) -> dict[str, str | None]:
    """Return the SHA-256 of each file by its role, so that a result is tied to contents.

    Args:
        paths_by_role: Files by role, for instance `task`, `data` and `implementation`.

    Returns:
        Hex digests in the same order; None for a file that isn't there or can't be read.
    """
    return {role: plain_files.digest(path) for role, path in paths_by_role.items()}


@contextmanager
def _noting_errors(section: dict[str, object]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a broken installation may raise anything
        section["error"] = _describe(error)


def _describe(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - __str__ is the raiser's code
        text = "<no text: __str__ failed>"
    return f"{type(error).__name__}: {text}"


def _triton() -> dict[str, object]:
    section: dict[str, object] = {}
    with _noting_errors(section):
        triton = importlib.import_module("triton")
        section["version"] = str(triton.__version__)
        section["path"] = str(Path(str(triton.__file__)).parent)
        section["key_sha256"] = None  # what stays where the key cannot be made
        section["key_sha256"] = hashlib.sha256(_triton_key().encode()).hexdigest()
    return section


def _triton_key() -> str:
    for name in _KEY_MODULES:
        triton_key = getattr(_optional_module(name), "triton_key", None)
        if triton_key is not None:
            return str(triton_key())
    raise AttributeError(
        f"this triton has no triton_key in {' or '.join(_KEY_MODULES)}; "
        "compare its version and path instead"
    )


def _optional_module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _cache(facts: CacheFacts) -> dict[str, object]:
    section: dict[str, object] = {
        "dir": None,
        "fresh": facts.fresh,
        "fresh_effective": _is_set(own_cache.VARIABLE) and own_cache.redirected() is None,
        "always_compile": None,
    }
    with _noting_errors(section):
        knobs = _optional_module("triton.knobs")
        section["always_compile"] = (
            bool(knobs.compilation.always_compile)
            if knobs
            else os.environ.get("TRITON_ALWAYS_COMPILE") == "1"
        )
        section["dir"] = _cache_dir(knobs)
    return section


def _is_set(variable: str) -> bool:
    return bool(os.environ.get(variable, "").strip())


def _cache_dir(knobs: ModuleType | None) -> str:
    """Return the absolute path of the folder that triton compiles into.

    A triton with a `knobs` module answers for itself. Earlier ones take TRITON_CACHE_DIR where it
    isn't blank, else a default of their own, which not all of them let TRITON_HOME move.
    """
    if knobs:
        folder = str(knobs.cache.dir)
        if not folder:
            raise ValueError(
                "TRITON_CACHE_DIR is set but empty, so triton has no cache folder; "
                "unset it or name a folder"
            )
        return str(Path(folder).absolute())
    default_cache_dir = getattr(
        _optional_module("triton.runtime.cache"),
        "default_cache_dir",
        lambda: Path(os.environ.get("TRITON_HOME") or Path.home(), ".triton", "cache"),
    )
    folder = os.environ.get("TRITON_CACHE_DIR", "").strip() or str(default_cache_dir())
    return str(Path(folder).absolute())


def _cann() -> dict[str, object]:
    """Describe CANN by the file that the Ascend backend's `NPUOptions.hash` takes the digest of.

    The digest is the SHA-256 of the file's bytes. Releases of triton-ascend up to 3.2.0 don't have
    it in their cache key; there it tells toolkits apart, not cache entries.
    """
    home = os.environ.get("ASCEND_HOME_PATH", "")
    if not home:
        # The type's documented name: Python itself now calls it OSError.
        return {
            "error": "EnvironmentError: ASCEND_HOME_PATH is not set; to judge on an Ascend device, "
            "source <ascend-toolkit>/set_env.sh in the shell that starts the run "
            "(a non-interactive shell doesn't do it by itself)"
        }
    section: dict[str, object] = {}
    with _noting_errors(section):
        machine = platform.machine()
        folder = Path(home, f"{_ARCHITECTURES.get(machine.lower(), machine)}-linux")
        file = next((folder / name for name in _CANN_INFO_FILES if (folder / name).exists()), None)
        if file is None:
            raise FileNotFoundError(
                f"neither {' nor '.join(_CANN_INFO_FILES)} is in {folder}; "
                f"does ASCEND_HOME_PATH ({home}) name a complete CANN toolkit of this machine?"
            )
        content = file.read_bytes()
        version = _CANN_VERSION.search(content.decode(errors="replace"))
        section |= {
            "ascend_home_path": home,
            "info_file": str(file),
            "info_sha256": hashlib.sha256(content).hexdigest(),
            "version": version[1] if version else None,
        }
    return section


def _torch(device: str) -> dict[str, object]:
    section: dict[str, object] = {}
    with _noting_errors(section):
        section["version"] = str(importlib.import_module("torch").__version__)
        section["torch_npu_version"] = _torch_npu_version(device)
    return section


def _torch_npu_version(device: str) -> str | None:
    # Importing torch_npu registers its device, so elsewhere only the installation is asked.
    if device == "npu":
        version = getattr(_optional_module("torch_npu"), "__version__", None)
        if version is not None:
            return str(version)
    try:
        return importlib.metadata.version("torch_npu")
    except importlib.metadata.PackageNotFoundError:
        return None


def _device(device: str) -> dict[str, object]:
    section: dict[str, object] = {
        "ASCEND_RT_VISIBLE_DEVICES": os.environ.get("ASCEND_RT_VISIBLE_DEVICES"),
        "current_device": None,
        "npu_name": None,
    }
    if device != "npu":
        section |= {"backend": device, "name": None}
    with _noting_errors(section):
        if device == "cpu":
            section["name"] = f"{_cpu_model()} (Triton interpreter)"
            return section
        if device not in ("cuda", "npu"):
            raise ValueError(f"unknown device {device!r}; expected npu, cuda or cpu")
        if device == "npu":
            importlib.import_module("torch_npu")
        runtime = getattr(importlib.import_module("torch"), device)
        section["current_device"] = int(runtime.current_device())
        name = str(runtime.get_device_name())
        section["npu_name" if device == "npu" else "name"] = name
    return section


def _cpu_model() -> str:
    # On ARM the kernel gives no model name.
    try:
        model = _CPU_MODEL.search(Path("/proc/cpuinfo").read_text(errors="replace"))
    except OSError:
        model = None
    return model[1] if model else platform.machine()


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)

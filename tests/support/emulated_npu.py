"""The surroundings of an Ascend server, emulated: a device, its tools, and a CANN tree."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import pytest
from torch.utils import backend_registration

_HERE = Path(__file__).parents[1] / "emulated_npu"
SITE = _HERE / "site"
CANN_VERSION = "8.2.RC1"
# Torch before 2.9 lets nobody register a device in Python.
emulated = pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch has no hooks for a device in Python",
)
# Of the shared cases: total, passed, error types, where they are others than on the CPU.
ON_NPU: dict[str, tuple[int, int, list[str]]] = {
    "29_static_alias_and_matmul_operator": (1, 0, ["PyTorchFallback"]),
    "52_segfault_in_second_case": (2, 1, ["WorkerCrash"]),
    "59_reference_refuses_cpu": (1, 1, []),
}
_ENTRY_POINTS = "[torch.backends]\ntorch_npu = torch_npu:_autoload\n"
_INFO = (
    "package_name=Ascend-cann-toolkit\nversion={version}\narch={machine}\nos=linux\npath={path}\n"
)


def write_installation(folder: Path, name: str, version: str, entry_points: str = "") -> None:
    """Let a package look installed to `importlib.metadata`."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points)


def write_cann(folder: Path) -> Path:
    """Write as much of a CANN toolkit as is looked at, and return its home."""
    home = folder / "ascend-toolkit" / "latest"
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    tree = home / f"{machine}-linux"
    tree.mkdir(parents=True)
    text = _INFO.format(version=CANN_VERSION, machine=machine, path=home)
    (tree / "ascend_toolkit_install.info").write_text(text)
    (home / "version.cfg").write_text(f"runtime_running_version=[7.7.0.0:{CANN_VERSION}]\n")
    return home


def environment(folder: Path) -> dict[str, str]:
    """Write what an Ascend server has into a folder, and return the variables that lead there.

    The stand-in for torch_npu registers itself to be loaded by `import torch`, as the real one
    does. Which process imports it is written into the file `imports` of the folder.
    """
    version = importlib.metadata.version("torch").partition("+")[0]
    write_installation(folder / "installed", "torch_npu", version, _ENTRY_POINTS)
    path = [str(SITE), str(folder / "installed"), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(entry for entry in path if entry),
        "PATH": os.pathsep.join((str(_HERE / "bin"), os.environ["PATH"])),
        "ASCEND_HOME_PATH": str(write_cann(folder)),
        "EMULATED_NPU_LOG": str(folder / "imports"),
    }

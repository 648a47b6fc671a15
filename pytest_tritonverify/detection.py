"""Which accelerator this machine seems to have, without touching it or importing torch."""

from __future__ import annotations

import glob
import importlib.util
import os

from pytest_tritonverify import ascend

_SIGNS = {
    "npu": ("/dev/davinci[0-9]*", "/dev/davinci_manager"),
    "cuda": (
        "/dev/nvidia[0-9]*",
        "/dev/nvidiactl",
        "/proc/driver/nvidia/version",
        "/dev/dxg",
        "/dev/kfd",
    ),
}
_VISIBLE = {"npu": "ASCEND_RT_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}


def signs_of(device: str) -> list[str]:
    """Return the device files and driver files that speak for an accelerator."""
    return [path for pattern in _SIGNS[device] for path in sorted(glob.glob(pattern))]  # noqa: PTH207 - absolute patterns


def hidden(device: str) -> bool:
    """Say whether an environment variable hides every such device from this process."""
    return os.environ.get(_VISIBLE[device]) in ("", "-1")


def likely(devices: tuple[str, ...]) -> list[str]:
    """Return those of the named accelerators that this machine seems to have, in their order."""
    return [device for device in devices if signs_of(device) and not hidden(device)]


def what_was_looked_for(device: str) -> str:
    """Say where an accelerator was looked for."""
    more = ("ASCEND_HOME_PATH", "torch_npu", "triton-ascend") if device == "npu" else ()
    return ", ".join((*_SIGNS[device], *more))


def what_was_found(device: str) -> str:
    """Say what of that there is."""
    more = ascend.signs(os.environ) if device == "npu" else []
    return ", ".join((*signs_of(device), *more)) or "nothing"


def missing_packages(names: tuple[str, ...]) -> list[str]:
    """Return the packages that are not installed, without importing any."""
    return [name for name in names if importlib.util.find_spec(name) is None]

"""What is known of a device's clock, and who knows it.

A tool that is missing, fails or answers nonsense gives words, never an exception.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_DEVICES = 128
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CURRENT = re.compile(r"Aicore\s+curFreq\(MHZ\)\s*:\s*(\d+)", re.IGNORECASE)
_NPU_ID = re.compile(r"NPU\s+ID\s*:\s*\d+")

# Seconds; the tools talk to a driver, and a driver may hang.
_READ_TIMEOUT, _LOCK_TIMEOUT = 10.0, 30.0


@dataclass(frozen=True)
class Reading:
    """One look at a device's clock.

    Attributes:
        mhz: its frequency; None where it can't be told.
        throttled: reasons for which the driver holds it down, by their names.
    """

    mhz: int | None = None
    throttled: tuple[str, ...] = ()


class Clocks(Protocol):
    """The clocks of a machine's devices of one kind.

    Attributes:
        backend: `npu`, `cuda` or `cpu`.
        lockable: they can be locked, so that a lock that fails is a failure.
        tool: what locks them; None where nothing does.
        remark: what users ought to know of the clocks of this backend; empty where nothing.
    """

    backend: str
    lockable: bool
    tool: str | None
    remark: str

    def devices(self) -> tuple[list[int], str]:
        """Return the numbers of the visible devices, and what is wrong where there are none."""
        ...

    def lock(self, device: int) -> str | None:
        """Lock a device's clock; return what went wrong."""
        ...

    def unlock(self, device: int) -> str | None:
        """Take a lock back; return what went wrong."""
        ...

    def read(self, device: int) -> Reading:
        """Look at a device's clock."""
        ...


def clocks_of(backend: str, environ: Mapping[str, str] | None = None) -> Clocks:
    """Return the clocks of a backend's devices.

    Args:
        backend: `npu`, `cuda` or `cpu`.
        environ: the environment that says which devices are visible; the process's by default.
    """
    chosen = os.environ if environ is None else environ
    if backend == "npu":
        return NpuClocks(chosen)
    return CudaClocks(chosen) if backend == "cuda" else NoClocks(backend)


class NoClocks:
    """A backend whose clock nobody reads."""

    lockable = False
    tool: str | None = None

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.remark = f"clocks of the {backend} are neither locked nor watched"

    def devices(self) -> tuple[list[int], str]:
        """Return that there are none."""
        return [], ""

    def lock(self, device: int) -> str | None:
        """Return that it can't be done."""
        return f"device {device} can't be locked"

    unlock = lock

    def read(self, device: int) -> Reading:
        """Return nothing."""
        del device
        return Reading()


class NpuClocks:
    """Ascend devices, by the tools of their driver.

    A lock is `drv_hlt_dsmi_test set_lp_idle <device> 0`: it keeps the device from lowering its
    clock while it idles. Taking it back is the same command with 1.

    Args:
        environ: says which devices are visible (ASCEND_RT_VISIBLE_DEVICES) and where tools are
            (PATH).
    """

    backend, lockable, remark = "npu", True, ""
    tool: str | None = "drv_hlt_dsmi_test"

    _LOCKER = ("drv_hlt_dsmi_test", "/usr/local/Ascend/driver/tools/drv_hlt_dsmi_test")
    _READER = ("npu-smi", "/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi")

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._locker = self._find(self._LOCKER)
        self._reader = self._find(self._READER)

    def _find(self, names: Sequence[str]) -> str | None:
        path = self._environ.get("PATH")
        return next((found for name in names if (found := shutil.which(name, path=path))), None)

    def devices(self) -> tuple[list[int], str]:
        """Return the visible devices; where nothing narrows them, those that npu-smi knows."""
        visible = self._environ.get("ASCEND_RT_VISIBLE_DEVICES")
        if visible is not None:
            found = visible_numbers(visible)
            return found, "" if found else f"ASCEND_RT_VISIBLE_DEVICES={visible!r} shows no device"
        if self._reader is None:
            return [], "npu-smi was not found, so the devices are not known"
        found = []
        while len(found) < _MOST_DEVICES:
            output, problem = self._ask(len(found))
            if problem or not _NPU_ID.search(output):
                break
            found.append(len(found))
        return found, "" if found else "npu-smi shows no device"

    def lock(self, device: int) -> str | None:
        """Keep a device from lowering its clock."""
        return self._set(device, "0")

    def unlock(self, device: int) -> str | None:
        """Let a device lower its clock again."""
        return self._set(device, "1")

    def _set(self, device: int, value: str) -> str | None:
        if self._locker is None:
            return "drv_hlt_dsmi_test was not found"
        # The tool loads a library that lies beside it.
        command, folder = [self._locker, "set_lp_idle", str(device), value], Path(self._locker)
        return self._run(command, _LOCK_TIMEOUT, str(folder.absolute().parent))[1]

    def read(self, device: int) -> Reading:
        """Return `Aicore curFreq(MHZ)`; of a card with several chips the first one's."""
        output, _ = self._ask(device)
        found = _CURRENT.search(output)
        return Reading(int(found[1])) if found else Reading()

    def _ask(self, device: int) -> tuple[str, str | None]:
        if self._reader is None:
            return "", "npu-smi was not found"
        command = [self._reader, "info", "-t", "common", "-i", str(device)]
        return self._run(command, _READ_TIMEOUT)

    def _run(
        self, command: Sequence[str], timeout: float, cwd: str | None = None
    ) -> tuple[str, str | None]:
        words = " ".join([Path(command[0]).name, *command[1:]])
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                cwd=cwd,
                env=dict(self._environ),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "", f"`{words}` did not end within {timeout:g} s"
        except OSError as error:
            return "", f"`{words}` can't be run: {error.strerror or error}"
        output = _ANSI.sub("", done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0:
            said = (done.stderr.decode("utf-8", "replace") or output).strip().partition("\n")[0]
            text = f"`{words}` failed with status {done.returncode}"
            return output, f"{text}: {said:.200}" if said else text
        return output, None


class CudaClocks:
    """NVIDIA devices, by nvidia-ml-py where it is installed. They are watched and not locked.

    Args:
        environ: says which devices are visible (CUDA_VISIBLE_DEVICES).
    """

    backend, lockable = "cuda", False
    tool: str | None = None
    remark = "clocks are watched and not locked on cuda; `nvidia-smi -lgc` locks them"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._handles: dict[int, Any] = {}
        self._nvml: Any = None

    def devices(self) -> tuple[list[int], str]:
        """Return the visible devices as PyTorch numbers them: from 0, in the order given."""
        try:
            with warnings.catch_warnings():
                # An abandoned package of the same name warns when it is imported.
                warnings.simplefilter("ignore")
                self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._handles = dict(enumerate(self._visible()))
        except ImportError:
            return [], "nvidia-ml-py is not installed, so the clocks are not watched"
        except Exception as error:  # noqa: BLE001 - its errors derive from Exception alone
            return [], f"the driver does not tell about its devices: {error}"
        return list(self._handles), "" if self._handles else "no device is visible"

    def _visible(self) -> list[Any]:
        nvml, chosen = self._nvml, self._environ.get("CUDA_VISIBLE_DEVICES")
        if chosen is None:
            count = nvml.nvmlDeviceGetCount()
            return [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        handles = []
        for entry in filter(None, (entry.strip() for entry in chosen.split(","))):
            if entry.startswith(("GPU-", "MIG-")):
                handles.append(nvml.nvmlDeviceGetHandleByUUID(entry))
            elif entry.isdecimal():
                handles.append(nvml.nvmlDeviceGetHandleByIndex(int(entry)))
            else:
                break  # what follows is not visible
        return handles

    def lock(self, device: int) -> str | None:
        """Return that it is not done: it needs rights that a test should not have."""
        return f"device {device} is not locked on cuda"

    unlock = lock

    def read(self, device: int) -> Reading:
        """Return the clock of the multiprocessors, and why it is held down."""
        nvml, handle = self._nvml, self._handles.get(device)
        if handle is None:
            return Reading()
        try:
            mhz = int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        except Exception:  # noqa: BLE001 - as above
            return Reading()
        return Reading(mhz, self._throttling(handle))

    def _throttling(self, handle: Any) -> tuple[str, ...]:
        for kind in ("ThrottleReason", "EventReason"):
            ask = getattr(self._nvml, f"nvmlDeviceGetCurrentClocks{kind}s", None)
            if ask is None:
                continue
            try:
                mask = int(ask(handle))
            except Exception:  # noqa: BLE001 - as above
                return ()
            return tuple(n for n, bit in _reasons(self._nvml, f"nvmlClocks{kind}") if mask & bit)
        return ()


def _reasons(nvml: Any, prefix: str) -> list[tuple[str, int]]:
    """Return names and bits of what holds a clock down. A device that idles is not held down."""
    found: dict[int, str] = {}
    for name, bit in vars(nvml).items():
        short = name.removeprefix(prefix)
        if short != name and isinstance(bit, int) and bit.bit_count() == 1 and short != "GpuIdle":
            found.setdefault(bit, short)
    return [(name, bit) for bit, name in sorted(found.items())]


def visible_numbers(text: str) -> list[int]:
    """Return the numbers in a list of visible devices, such as `0,2` or `0-3`.

    What follows the first entry that is no number is not visible, as for the runtime.
    """
    found: list[int] = []
    for entry in (entry.strip() for entry in text.split(",")):
        first, dash, last = entry.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            break
        numbers = range(int(first), int(last or first) + 1)
        found += [n for n in numbers[:_MOST_DEVICES] if n not in found]
    return found

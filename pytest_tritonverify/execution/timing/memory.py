"""The most memory that one forward takes, each side in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from pytest_tritonverify.execution.timing.forward import Forward

MIB = 1 << 20
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
# Sets the peak of the resident set back to what is resident now: proc(5), since Linux 4.0.
_RESET_PEAK = "5"
_CPU_NOTE = "peak memory on the CPU: what a forward adds to the process's resident set"


def peak(forward: Forward) -> tuple[float | None, str | None]:
    """Run a forward and return the most memory in use during it, in MiB, and a note on it.

    On a device it is what torch's allocator had handed out, inputs and weights included; on the
    CPU what the resident set grew by. None: it can't be measured, and the note says why.
    """
    device = forward.side.place.name
    module: Any = getattr(torch, device, None)
    with forward.graded():
        forward.turn(0)
        if device == "cpu":
            return _resident(forward)
        forward.side.place.synchronize()
        module.reset_peak_memory_stats()
        forward.call()
        forward.side.place.synchronize()
        return module.max_memory_allocated() / MIB, None


def _resident(forward: Forward) -> tuple[float | None, str | None]:
    try:
        _CLEAR.write_text(_RESET_PEAK)
        before = _kib("VmRSS")
    except (OSError, LookupError) as error:
        forward.call()
        return None, f"peak memory was not measured: {error}"
    forward.call()
    return max(_kib("VmHWM") - before, 0) * 1024 / MIB, _CPU_NOTE


def _kib(name: str) -> int:
    for line in _STATUS.read_text("ascii", "replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"{_STATUS} has no {name}")

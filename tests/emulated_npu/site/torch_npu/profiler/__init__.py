"""torch_npu.profiler, as far as it leads to kernel_details.csv."""

from __future__ import annotations

import csv
import os
import socket
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from torch_npu import _profile

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADERS = (
    "Device_id",
    "Name",
    "Type",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Num",
)


class ProfilerActivity(Enum):
    """What is profiled."""

    CPU = 0
    NPU = 1


class ProfilerLevel:
    """How much is profiled."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics:
    """Which counters are read."""

    AiCoreNone = "ACL_AICORE_NONE"


def _ExperimentalConfig(**options: Any) -> SimpleNamespace:  # noqa: N802 - torch_npu's name
    return SimpleNamespace(**options)


_folder: list[str] = []


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[profile], None]:
    _folder[:] = [dir_name or str(Path.cwd())]

    def handler(finished: profile) -> None:
        if analyse_flag:
            finished._analyse()

    return handler


class profile:  # noqa: N801 - torch_npu's name
    """Profile what the device does for a while."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Any = None,
        on_trace_ready: Callable[[profile], None] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
    ) -> None:
        self._ready = on_trace_ready

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        _profile.start()

    def step(self) -> None:
        return None

    def stop(self) -> None:
        _profile.stop()
        if self._ready is not None:
            self._ready(self)

    def _analyse(self) -> None:
        now = datetime.now(tz=timezone.utc).strftime("%Y%m%d%H%M%S%f")[:-3]
        span = f"{socket.gethostname()}_{os.getpid()}_{now}_ascend_pt"
        output = Path(_folder[0], span, "ASCEND_PROFILER_OUTPUT")
        output.mkdir(parents=True)
        with (output / "kernel_details.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_HEADERS)
            for kernel in _profile.kernels:
                times = (f"{kernel.start:.3f}\t", f"{kernel.took:.3f}", "0.000")
                core = "AI_VECTOR_CORE"
                writer.writerow((0, kernel.name, kernel.kind, core, *times, kernel.programs))

"""torch_npu.profiler, as far as it leads to kernel_details.csv."""

from __future__ import annotations

import csv
import os
import socket
from dataclasses import dataclass
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
    PipeUtilization = "PipeUtilization"


class ProfilerAction(Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@dataclass(frozen=True)
class schedule:
    """What is done in each step, as torch.profiler.schedule says it."""

    wait: int
    active: int
    warmup: int = 0
    repeat: int = 0
    skip_first: int = 0

    def __call__(self, step: int) -> ProfilerAction:
        length = self.wait + self.warmup + self.active
        cycle, place = divmod(step - self.skip_first, length)
        if cycle < 0 or (self.repeat and cycle >= self.repeat) or place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def _ExperimentalConfig(**options: Any) -> SimpleNamespace:
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


class profile:
    """Profile what the device does for a while."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], None] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
    ) -> None:
        self._ready = on_trace_ready
        self._schedule = schedule or _always
        self._numbered = schedule is not None
        self._step = 0

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        _profile.kernels.clear()
        self._watch()

    def step(self) -> None:
        ended = self._schedule(self._step)
        self._step += 1
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        self._watch()

    def stop(self) -> None:
        if self._recording():
            self._save()
        _profile.watch(on=False)

    def _recording(self) -> bool:
        return self._schedule(self._step) in (
            ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE,
        )

    def _watch(self) -> None:
        _profile.watch(on=self._recording(), step=self._step if self._numbered else None)

    def _save(self) -> None:
        _profile.watch(on=False)
        if self._ready is not None:
            self._ready(self)
        _profile.kernels.clear()

    def _analyse(self) -> None:
        now = datetime.now(tz=timezone.utc).strftime("%Y%m%d%H%M%S%f")[:-3]
        span = f"{socket.gethostname()}_{os.getpid()}_{now}_ascend_pt"
        output = Path(_folder[0], span, "ASCEND_PROFILER_OUTPUT")
        output.mkdir(parents=True)
        with (output / "kernel_details.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow((*["Step Id"] * self._numbered, *_HEADERS))
            for kernel in _profile.kernels:
                times = (f"{kernel.start:.3f}\t", f"{kernel.took:.3f}", "0.000")
                core = "AI_VECTOR_CORE"
                steps = [kernel.step] * self._numbered
                writer.writerow(
                    (*steps, 0, kernel.name, kernel.kind, core, *times, kernel.programs)
                )

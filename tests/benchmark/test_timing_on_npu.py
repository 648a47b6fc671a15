"""The timer for NPUs, on a module that writes what torch_npu's profiler writes."""

from __future__ import annotations

import re
import tempfile
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.execution.timing import on_npu
from pytest_tritonverify.execution.timing.timers import Plan, Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

HEADER = "Step Id,Device_id,Name,Type,Start Time(us),Duration(us)"


class Profiler:
    """Records rows while it is entered, by the step that runs, and writes them at its end."""

    def __init__(self, keep: Callable[[list[str]], list[str]]) -> None:
        self.rows: list[str] = []
        self.step_number = 0
        self.active = False
        self._keep = keep
        self._folder = ""
        self._schedule: dict[str, int] = {}
        self.ProfilerActivity = types.SimpleNamespace(CPU=0, NPU=1)
        self.ProfilerLevel = types.SimpleNamespace(Level1=1)
        self.AiCMetrics = types.SimpleNamespace(PipeUtilization=1)

    def launch(self, name: str, us: float) -> None:
        first = self._schedule.get("warmup", 0)
        last = first + self._schedule.get("active", 0)
        if self.active and first <= self.step_number < last:
            cells = (self.step_number, 0, name, name, f"{100 + len(self.rows)}\t", us)
            self.rows.append(",".join(map(str, cells)))

    def schedule(self, **counts: int) -> dict[str, int]:
        return counts

    def tensorboard_trace_handler(self, folder: str) -> str:
        return folder

    def _ExperimentalConfig(self, **settings: Any) -> None:  # noqa: N802 - stands for it
        assert settings["data_simplification"] is False

    def profile(self, **settings: Any) -> Profiler:
        self._folder, self._schedule = settings["on_trace_ready"], settings["schedule"]
        return self

    def __enter__(self) -> Self:
        self.active = True
        return self

    def step(self) -> None:
        self.step_number += 1

    def __exit__(self, *exception: object) -> None:
        self.active = False
        lines = self._keep([HEADER, *self.rows])
        if lines:
            folder = Path(self._folder) / "host_1_2026_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
            folder.mkdir(parents=True)
            (folder / "kernel_details.csv").write_text("\n".join(lines) + "\n")


class Forward:
    """Launches a copy for its inputs and, when called, two kernels."""

    def __init__(self, profiler: Profiler) -> None:
        self._profiler = profiler
        self.kept: list[int] = []

    def turn(self, number: int) -> None:
        self._profiler.launch("TensorMove", 40.0)

    def call(self) -> None:
        self._profiler.launch("norm_kernel", 3.0)
        self._profiler.launch("scale_kernel", 2.0)

    def keep(self, number: int, outputs: object) -> None:
        # Copies the outputs.
        self._profiler.launch("TensorMove", 25.0)
        self.kept.append(number)


def measured(keep: Callable[[list[str]], list[str]] = list) -> tuple[Timing, Forward, list[str]]:
    profiler = Profiler(keep)
    npu = types.SimpleNamespace(synchronize=lambda: None)
    timer = on_npu.NpuTimer(types.SimpleNamespace(profiler=profiler, npu=npu))
    forward: Any = Forward(profiler)
    entered: list[str] = []
    plan = Plan(warmup=2, repeats=4, kept=frozenset({1, 3, 4, 6}), entered=entered.append)
    return timer.measure(forward, plan), forward, entered


def test_forwards_are_the_sums_of_their_kernels_without_their_inputs_copies() -> None:
    timing, forward, entered = measured()
    assert timing.method == "npu_profiler"
    assert timing.samples_ms == pytest.approx([0.005] * 4)
    assert timing.operators == pytest.approx({"norm_kernel": 0.003, "scale_kernel": 0.002})
    assert timing.launches_per_forward == 2
    assert forward.kept == [1, 3, 4, 6]
    assert entered == ["timed", "measured"]


@pytest.mark.parametrize(
    ("keep", "why"),
    [
        (lambda lines: [], "the profiler left no kernel_details.csv"),
        (lambda lines: lines[:1], "a header and no row"),
        (lambda lines: [""], "has no column|is empty"),
    ],
)
def test_a_profile_without_kernels_is_no_measurement(
    keep: Callable[[list[str]], list[str]], why: str
) -> None:
    timing, _, _ = measured(keep)
    assert timing.method == "none"
    assert timing.latency_ms is None
    assert timing.reason is not None
    assert re.search(why, timing.reason)


def test_the_profiles_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    measured()
    assert list(tmp_path.iterdir()) == []

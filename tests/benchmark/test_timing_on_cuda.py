"""The loops of the timer for CUDA devices, on a device that only keeps a clock.

Where there is a GPU, the last tests run on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined] # it is there

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from pytest_tritonverify.execution.timing import on_cuda
from pytest_tritonverify.execution.timing.timers import Plan, Timing
from tests.support.measuring import MeasuringBench
from tests.support.workers import attack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLUSH_MS = 0.08


class Device:
    """A stream of work with a clock: launches queue up, and waiting lets the host's clock pass.

    Attributes:
        host: milliseconds on the host's clock.
        busy: when the stream is done.
        elsewhere: when other streams are done.
    """

    def __init__(self) -> None:
        self.host = self.busy = self.elsewhere = 0.0

    def launch(self, ms: float) -> None:
        self.host += 0.005
        self.busy = max(self.busy, self.host) + ms

    def launch_elsewhere(self, ms: float) -> None:
        self.elsewhere = max(self.busy, self.host) + ms

    def synchronize(self) -> None:
        self.host = max(self.host, self.busy, self.elsewhere)

    def mark(self, _stream: object) -> float:
        return max(self.busy, self.host)

    def nanoseconds(self) -> int:
        return round(self.host * 1e6)


class Forward:
    """One kernel of a millisecond, and whatever else a test wants."""

    def __init__(self, device: Device, also: Any = None) -> None:
        self._device = device
        self._also = also
        self.turns: list[int] = []
        self.kept: list[int] = []

    def turn(self, number: int) -> None:
        self.turns.append(number)
        self._device.launch(0.5)

    def call(self) -> None:
        self._device.host += 0.02
        self._device.launch(1.0)
        if self._also is not None:
            self._also()

    def keep(self, number: int, outputs: object) -> None:
        self.kept.append(number)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    monkeypatch.setattr(on_cuda, "_synchronize", device.synchronize)
    monkeypatch.setattr(on_cuda, "_current_stream", lambda: None)
    monkeypatch.setattr(on_cuda, "_fill", lambda buffer: device.launch(FLUSH_MS))
    monkeypatch.setattr(on_cuda, "_spin", lambda cycles: device.launch(cycles / 2e6))
    monkeypatch.setattr(on_cuda.CudaTimer, "_buffer", lambda timer: None)
    return device


def measured(device: Device, forward: Forward) -> Timing:
    timer = on_cuda.CudaTimer.__new__(on_cuda.CudaTimer)
    events: Any = SimpleNamespace(mark=device.mark, between=lambda one, other: other - one)
    timer._events, timer._now = events, device.nanoseconds
    timer._head_start_cycles, timer._cycles_per_ms = 0, 0.0
    entered: list[str] = []
    plan = Plan(warmup=3, repeats=6, kept=frozenset({0, 4, 8}), entered=entered.append)
    found = timer.measure(forward, plan)  # type: ignore[arg-type] # what it uses is there
    assert entered == ["timed", "measured"]
    return found


def test_events_take_the_time_of_the_forward_alone(device: Device) -> None:
    forward = Forward(device)
    found = measured(device, forward)
    assert found.method == "cuda_events"
    assert found.samples_ms == pytest.approx([1.0] * 6)
    assert found.latency_ms == pytest.approx(1.0)
    # The last one is looked at by the profiler, too.
    assert forward.kept == [0, 4, 8]
    assert forward.turns == list(range(-3, 12))
    assert "torch's profiler" in found.notes[0]


def test_work_on_another_stream_that_outlasts_the_forward_is_part_of_its_time(
    device: Device,
) -> None:
    found = measured(device, Forward(device, lambda: device.launch_elsewhere(9.0)))
    # Forwards whose outputs are kept are told by their outputs.
    others = [ms for number, ms in enumerate(found.samples_ms) if number not in (0, 4)]
    assert min(others) >= 8.5
    assert any("were not done when they returned" in note for note in found.notes)


def test_a_host_that_is_slow_to_launch_is_no_part_of_the_time(device: Device) -> None:
    def slow() -> None:
        device.host += 0.4
        device.launch(1.0)

    found = measured(device, Forward(device, slow))
    assert found.samples_ms == pytest.approx([2.0] * 6, abs=0.05)


class Event:
    """An event as torch's profiler hands it out."""

    def __init__(self, name: str, kind: str, begin: int, lasted: int) -> None:
        self._name, self._kind, self._begin, self._lasted = name, kind, begin, lasted

    def name(self) -> str:
        return self._name

    def activity_type(self) -> str:
        return self._kind

    def device_type(self) -> Any:
        on_host = self._kind in ("cpu_op", "user_annotation")
        return DeviceType.CPU if on_host else DeviceType.CUDA

    def start_ns(self) -> int:
        return self._begin

    def duration_ns(self) -> int:
        return self._lasted


FLUSH = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"


def profile_of(*events: Event) -> Any:
    return SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events))


def test_a_profile_is_read_without_flushes_mirrored_ranges_and_kept_outputs() -> None:
    forward, aside = "tritonverify::forward", "tritonverify::aside"
    watch = profile_of(
        Event("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 100, 50),
        Event(FLUSH, "kernel", 200, 80),
        Event(forward, "user_annotation", 1_000, 1_000),
        Event(forward, "gpu_user_annotation", 1_100, 800),
        Event("aten::mul", "cpu_op", 1_010, 500),
        Event("softmax_kernel", "kernel", 1_100, 300),
        Event("softmax_kernel", "kernel", 1_500, 300),
        Event(aside, "user_annotation", 2_500, 1_000),
        Event("elementwise_copy", "kernel", 2_600, 700),
        Event(forward, "user_annotation", 5_000, 1_000),
        Event("softmax_kernel", "kernel", 5_100, 300),
    )
    sums, problem = on_cuda._read(watch, 2)
    assert problem is None
    assert sums is not None
    assert sums.samples_ms == pytest.approx([600e-6, 300e-6])
    assert sums.launches_per_forward == 1.5
    assert not sums.strays


def test_a_profile_that_says_too_little_is_none() -> None:
    forward = Event("tritonverify::forward", "user_annotation", 1_000, 1_000)
    assert on_cuda._read(profile_of(forward), 1)[1] == (
        "torch's profiler sees nothing of what runs on the device"
    )
    flush = Event(FLUSH, "kernel", 200, 80)
    assert on_cuda._read(profile_of(forward, flush), 2)[1] == (
        "torch's profiler saw 1 of 2 forwards"
    )
    # A forward that launches nothing takes no time, which is something else.
    sums, problem = on_cuda._read(profile_of(forward, flush), 1)
    assert problem is None
    assert sums is not None
    assert sums.samples_ms == (0.0,)


pytestmark = pytest.mark.filterwarnings("ignore:CUDA is not available")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def cuda_measuring() -> Iterator[MeasuringBench]:
    """Measures pairs on a GPU."""
    host = Host(HostConfig(DEVICES["cuda"], fork=True))
    bench = MeasuringBench(host)
    yield bench
    bench.close()
    host.close()


@on_gpu
def test_a_gpu_is_measured(cuda_measuring: MeasuringBench, tmp_path: Path) -> None:
    found = cuda_measuring.measure(attack(tmp_path, "pass"), device="cuda")
    assert found.passed, found.error_msg
    assert found.implementation is not None
    assert found.implementation.method in ("cuda_profiler", "cuda_events")
    assert (found.implementation.latency_ms or 0) > 0


@on_gpu
def test_a_side_stream_gains_nothing(cuda_measuring: MeasuringBench, tmp_path: Path) -> None:
    forward = """
    out = torch.empty_like(x)
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000)
        torch.mul(x, 2, out=out)
    return out
    """
    pair = attack(tmp_path, forward, "side = torch.cuda.Stream()")
    found = cuda_measuring.measure(pair, device="cuda")
    slow = found.implementation is not None and (found.implementation.latency_ms or 0) > 0.5
    assert not found.passed or slow

"""Lock the clocks of the visible devices for a benchmark, watch them, and take the locks back.

What is locked, how often the clock is read and what counts as drift is documented: the lock
command for each device, a baseline read after it, and a reading every interval. A locked clock
has one frequency, so any other reading is a drift. A device that could not be locked changes its
clock with its load: it is watched, and what is seen is no drift.
"""

from __future__ import annotations

import atexit
import dataclasses
import logging
import threading
import time
from typing import TYPE_CHECKING

from pytest_tritonverify.benchmark.claims import Claim
from pytest_tritonverify.benchmark.frequency_report import (
    MAX_DRIFTS,
    DeviceFrequency,
    FrequencyReport,
)

if TYPE_CHECKING:
    from pytest_tritonverify.benchmark.clocks import Clocks, Reading
    from pytest_tritonverify.benchmark.measurement import PerfSettings

_LOG = logging.getLogger("pytest_tritonverify")

SETTLE_S = 0.5
"""Seconds between locking and reading the baseline."""

SHORTEST_INTERVAL_S = 0.1
"""Seconds between two readings that are at least kept: each one starts a process."""


class FrequencyError(RuntimeError):
    """A clock can't be locked, and the user has made that an error; the text is for them."""


class FrequencyWatch:
    """The clocks of the visible devices while a benchmark runs.

    Args:
        clocks: those of the benchmark's backend.
        settings: whether they are locked and watched, how often, and what a failure is.
        settle_s: seconds that a clock is given after locking.
    """

    def __init__(self, clocks: Clocks, settings: PerfSettings, settle_s: float = SETTLE_S) -> None:
        self._clocks = clocks
        self._settings = settings
        self._settle_s = settle_s
        self._devices: dict[int, DeviceFrequency] = {}
        self._claims: dict[int, Claim] = {}
        self._messages: list[str] = []
        self._failures: list[str] = []
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._running = False

    @property
    def interval_s(self) -> float:
        """Seconds between two readings."""
        return max(SHORTEST_INTERVAL_S, self._settings.freq_check_interval)

    def start(self) -> None:
        """Lock the devices and begin to watch them.

        Raises:
            FrequencyError: a device can't be locked, or there is none, and that is an error. No
                lock is left.
        """
        if not self._settings.lock_frequency or self._running:
            return
        self._running = True
        # Whatever ends the process short of a signal, no device stays locked.
        atexit.register(self.stop)
        if self._clocks.remark:
            self._messages.append(self._clocks.remark)
        numbers, problem = self._clocks.devices()
        if problem:
            self._fail(problem)
        self._lock(numbers)
        if self._failures and self._is_error:
            self.stop()
            raise FrequencyError(
                f"the clocks can't be locked: {'; '.join(self._failures)}. "
                "--verify-lock-frequency-fail-action=warn measures all the same, "
                "--verify-no-lock-frequency without trying"
            )
        if self._devices:
            _LOG.info(
                "[频率监控] 启动对设备 %s 的监控，采样间隔 %.1fs",
                list(self._devices),
                self.interval_s,
            )
            self._thread = threading.Thread(target=self._watch, name="clocks", daemon=True)
            self._thread.start()

    @property
    def _is_error(self) -> bool:
        return self._clocks.lockable and self._settings.lock_frequency_fail_action == "error"

    def _fail(self, text: str) -> None:
        self._messages.append(text)
        if self._clocks.lockable:
            self._failures.append(text)
            _LOG.warning("[锁频] %s", text)

    def _lock(self, numbers: list[int]) -> None:
        problems: dict[str, list[int]] = {}
        for number in numbers:
            problem = None
            if self._clocks.lockable:
                self._claims[number] = Claim(f"{self._clocks.backend}{number}")
                problem = self._clocks.lock(number)
            locked = self._clocks.lockable and problem is None
            self._devices[number] = DeviceFrequency(device=number, locked=locked)
            if problem is not None:
                problems.setdefault(problem, []).append(number)
        for problem, which in problems.items():
            self._fail(f"{_named(which)} not locked: {problem}")
        if any(device.locked for device in self._devices.values()):
            time.sleep(self._settle_s)
        for number, device in self._devices.items():
            mhz = self._clocks.read(number).mhz
            self._devices[number] = dataclasses.replace(device, baseline_mhz=mhz)
            if mhz is None:
                self._messages.append(f"the clock of device {number} can't be read")
            elif device.locked:
                _LOG.info("[锁频] 设备 %d 当前频率: %d MHz", number, mhz)

    def _watch(self) -> None:
        sample = 0
        while not self._end.is_set():
            sample += 1
            for number in self._devices:
                reading = self._clocks.read(number)
                self._devices[number] = _seen(self._devices[number], sample, reading)
            self._end.wait(self.interval_s)

    def stop(self) -> FrequencyReport:
        """Stop watching, take the locks back, and report. A second call only reports."""
        if self._running:
            self._running = False
            atexit.unregister(self.stop)
            self._end.set()
            if self._thread is not None:
                self._thread.join()
            for number, device in self._devices.items():
                if device.locked:
                    self._devices[number] = self._restored(device)
            for claim in self._claims.values():
                claim.end()
        return self.report()

    def _restored(self, device: DeviceFrequency) -> DeviceFrequency:
        if not self._claims[device.device].is_last():
            text = f"device {device.device} stays locked: another process still measures there"
            self._messages.append(f"{text}, and gives it back")
            return device
        problem = self._clocks.unlock(device.device)
        if problem is not None:
            text = f"device {device.device} stays locked: {problem}"
            self._messages.append(text)
            _LOG.warning("[锁频] %s", text)
        return dataclasses.replace(device, restored=problem is None)

    def report(self) -> FrequencyReport:
        """Return what has been seen so far."""
        report = FrequencyReport(
            backend=self._clocks.backend,
            requested=self._settings.lock_frequency,
            tool=self._clocks.tool if any(d.locked for d in self._devices.values()) else None,
            interval_s=self.interval_s if self._devices else None,
            devices=tuple(self._devices.values()),
            messages=tuple(self._messages),
        )
        failed = self._is_error and bool(self._failures or report.drifted)
        return dataclasses.replace(report, failed=failed)


def _named(devices: list[int]) -> str:
    word = "device" if len(devices) == 1 else "devices"
    return f"{word} {', '.join(map(str, devices))}"


def _seen(device: DeviceFrequency, sample: int, reading: Reading) -> DeviceFrequency:
    """Enter a reading."""
    throttled = tuple(dict.fromkeys((*device.throttled, *reading.throttled)))
    mhz, baseline = reading.mhz, device.baseline_mhz
    if mhz is None:
        return dataclasses.replace(device, throttled=throttled)
    drifted = device.locked and baseline is not None and mhz != baseline
    if drifted:
        text = "[频率漂移] 设备 %d 频率从 %d MHz 变为 %d MHz (sample #%d)"
        _LOG.warning(text, device.device, baseline, mhz, sample)
    return dataclasses.replace(
        device,
        samples=device.samples + 1,
        lowest_mhz=mhz if device.lowest_mhz is None else min(device.lowest_mhz, mhz),
        highest_mhz=mhz if device.highest_mhz is None else max(device.highest_mhz, mhz),
        drifts=(*device.drifts, (sample, mhz))[:MAX_DRIFTS] if drifted else device.drifts,
        drift_count=device.drift_count + drifted,
        throttled=throttled,
    )

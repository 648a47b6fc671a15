"""Clocks are locked on visible devices alone, watched, and given back."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.benchmark import clocks, frequency
from pytest_tritonverify.benchmark.frequency import FrequencyError, FrequencyWatch
from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
from pytest_tritonverify.benchmark.measurement import PerfSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SMI = """
import pathlib, sys
here = pathlib.Path(__file__).parent
device = sys.argv[sys.argv.index("-i") + 1]
with (here / "asked").open("a") as stream:
    print(*sys.argv[1:], file=stream)
clock = here / f"clock{device}"
if not clock.exists():
    sys.exit("This device does not exist")
print(f"\\x1b[1m\\tNPU ID                         : {device}")
print("\\tChip Count                     : 1\\n\\x1b[0m")
print("\\tAicore Usage Rate(%)           : 0")
print("\\tAicore Freq(MHZ)               : 1800")
print(f"\\tAicore curFreq(MHZ)            : {clock.read_text()}")
print("\\tAicore Count                   : 20")
"""
LOCKER = """
import pathlib, sys
here = pathlib.Path(__file__).parent
assert pathlib.Path.cwd() == here, "the library beside me is not found"
with (here / "locks").open("a") as stream:
    print(*sys.argv[1:], file=stream)
command, device, value = sys.argv[1:]
if (here / f"stuck{device}{value}").exists():
    print("dsmi failed, ret = -8", file=sys.stderr)
    sys.exit(3)
(here / f"clock{device}").write_text("800" if value == "1" else "1800")
"""


class Machine:
    """A machine with Ascend devices, made of two small programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": str(folder)}
        self.program("npu-smi", SMI)
        self.program("drv_hlt_dsmi_test", LOCKER)

    def program(self, name: str, source: str) -> None:
        path = self.folder / name
        path.write_text(f"#!{sys.executable} -S\n{source}", "utf-8")
        path.chmod(0o755)

    def has(self, *devices: int) -> None:
        for device in devices:
            self.clock(device, 800)

    def clock(self, device: int, mhz: int) -> None:
        path = self.folder / f"clock{device}"
        beside = path.with_suffix(".new")
        beside.write_text(str(mhz), "utf-8")
        beside.replace(path)

    def wait_for_reading(self, count: int = 1) -> None:
        """Wait until a reading has begun after this moment, and the one before it has ended."""
        wanted = len(self.lines("asked")) + 1 + count
        end = time.monotonic() + 60
        while len(self.lines("asked")) < wanted:
            assert time.monotonic() < end, "the clock is not watched"
            time.sleep(0.01)

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def watch(self, **settings: Any) -> FrequencyWatch:
        chosen = PerfSettings(**{"freq_check_interval": 0.0, **settings})
        return FrequencyWatch(clocks.clocks_of("npu", self.environ), chosen, settle_s=0)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    # Other tests that run at the same time lock other machines' devices.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # A real driver's tools, where there are some, are none of a test's business.
    for name, found in (("_LOCKER", "drv_hlt_dsmi_test"), ("_READER", "npu-smi")):
        monkeypatch.setattr(clocks.NpuClocks, name, (found,))
    return Machine(tmp_path)


def test_every_device_is_locked_watched_and_given_back(machine: Machine) -> None:
    machine.has(0, 1)
    watch = machine.watch()
    watch.start()
    assert machine.lines("locks") == ["set_lp_idle 0 0", "set_lp_idle 1 0"]
    machine.wait_for_reading()
    report = watch.stop()
    assert machine.lines("locks")[2:] == ["set_lp_idle 0 1", "set_lp_idle 1 1"]
    assert (report.backend, report.tool) == ("npu", "drv_hlt_dsmi_test")
    assert report.locked
    assert not report.drifted
    assert not report.failed
    assert report.messages == ()
    for number, device in enumerate(report.devices):
        assert (device.device, device.locked, device.restored) == (number, True, True)
        assert (device.baseline_mhz, device.lowest_mhz, device.highest_mhz) == (1800, 1800, 1800)
        assert device.samples >= 1
    assert "info -t common -i 1" in machine.lines("asked")


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [("3", [3]), ("5,3", [5, 3]), ("3-5", [3, 4, 5]), ("4,x,5", [4]), (" 4 , 4", [4])],
)
def test_only_visible_devices_are_touched(
    machine: Machine, visible: str, numbers: list[int]
) -> None:
    machine.has(*range(8))
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = visible
    watch = machine.watch()
    watch.start()
    report = watch.stop()
    assert [device.device for device in report.devices] == numbers
    assert machine.lines("locks") == [
        f"set_lp_idle {number} {value}" for value in (0, 1) for number in numbers
    ]
    asked = {int(line.rpartition(" ")[2]) for line in machine.lines("asked")}
    assert asked == set(numbers)


@pytest.mark.parametrize("visible", ["", "none", "-1"])
def test_no_visible_device_is_no_reason_to_touch_others(machine: Machine, visible: str) -> None:
    machine.has(0, 1)
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = visible
    watch = machine.watch()
    watch.start()
    report = watch.stop()
    assert machine.lines("locks") == machine.lines("asked") == []
    assert report.messages == (f"ASCEND_RT_VISIBLE_DEVICES={visible!r} shows no device",)


def test_a_clock_that_leaves_its_baseline_has_drifted(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.has(0)
    watch = machine.watch()
    with caplog.at_level(logging.INFO, "pytest_tritonverify"):
        watch.start()
        machine.clock(0, 1200)
        machine.wait_for_reading()
        report = watch.stop()
    [device] = report.devices
    assert report.drifted
    assert not report.failed  # a warning, unless the user says otherwise
    assert device.lowest_mhz == 1200
    assert device.drift_count == len(device.drifts) >= 1
    sample = device.drifts[0][0]
    assert f"[频率漂移] 设备 0 频率从 1800 MHz 变为 1200 MHz (sample #{sample})" in caplog.messages
    assert "[锁频] 设备 0 当前频率: 1800 MHz" in caplog.messages


def test_a_drift_is_a_failure_where_the_user_says_so(machine: Machine) -> None:
    machine.has(0)
    watch = machine.watch(lock_frequency_fail_action="error")
    watch.start()
    machine.clock(0, 1200)
    machine.wait_for_reading()
    assert watch.stop().failed


def test_drifts_are_counted_and_the_first_ones_listed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequency, "MAX_DRIFTS", 2)
    machine.has(0)
    watch = machine.watch()
    watch.start()
    machine.clock(0, 1200)
    machine.wait_for_reading(3)
    [device] = watch.stop().devices
    assert len(device.drifts) == 2
    assert device.drift_count > 2


def test_a_lock_that_fails_is_a_warning(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.has(0, 1)
    (machine.folder / "stuck10").touch()
    watch = machine.watch()
    watch.start()
    machine.wait_for_reading()
    report = watch.stop()
    text = (
        "device 1 not locked: `drv_hlt_dsmi_test set_lp_idle 1 0` failed with status 3: "
        "dsmi failed, ret = -8"
    )
    assert report.messages == (text,)
    assert f"[锁频] {text}" in caplog.messages
    assert [device.locked for device in report.devices] == [True, False]
    assert not report.locked
    # What was not locked is not given back, and its changing clock is no drift.
    assert machine.lines("locks") == ["set_lp_idle 0 0", "set_lp_idle 1 0", "set_lp_idle 0 1"]
    assert report.devices[1].restored is None
    assert not report.drifted


def test_a_lock_that_fails_is_an_error_where_the_user_says_so(machine: Machine) -> None:
    machine.has(0, 1)
    (machine.folder / "stuck10").touch()
    watch = machine.watch(lock_frequency_fail_action="error")
    with pytest.raises(FrequencyError, match=r"device 1 not locked: .* ret = -8"):
        watch.start()
    # The other one is given back at once.
    assert machine.lines("locks")[-1] == "set_lp_idle 0 1"
    assert watch.report().failed


def no_locker(machine: Machine) -> None:
    (machine.folder / "drv_hlt_dsmi_test").unlink()


def no_reader(machine: Machine) -> None:
    (machine.folder / "npu-smi").unlink()


def neither(machine: Machine) -> None:
    no_locker(machine)
    no_reader(machine)


def another_machines_program(machine: Machine) -> None:
    path = machine.folder / "drv_hlt_dsmi_test"
    path.write_bytes(b"\x7fELF\x02\x01\x01 for another processor")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("break_it", "visible", "words"),
    [
        (no_locker, None, ["devices 0, 1 not locked: drv_hlt_dsmi_test was not found"]),
        (no_reader, None, ["npu-smi was not found, so the devices are not known"]),
        (neither, "0", ["device 0 not locked: drv_hlt", "the clock of device 0 can't be read"]),
        (another_machines_program, "0", ["device 0 not locked: `drv_hlt_dsmi_test set_lp_idle"]),
    ],
)
def test_tools_that_are_not_there_warn_or_fail(
    machine: Machine, break_it: Callable[[Machine], None], visible: str | None, words: list[str]
) -> None:
    machine.has(0, 1)
    break_it(machine)
    if visible is not None:
        machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = visible
    watch = machine.watch()
    watch.start()
    report = watch.stop()
    assert len(report.messages) == len(words)
    for message, start in zip(report.messages, words, strict=True):
        assert message.startswith(start)
    assert (report.tool, report.failed) == (None, False)
    with pytest.raises(FrequencyError, match="the clocks can't be locked"):
        machine.watch(lock_frequency_fail_action="error").start()


def test_no_device_at_all_is_said(machine: Machine) -> None:
    watch = machine.watch()
    watch.start()
    assert watch.stop().messages == ("npu-smi shows no device",)


def test_a_lock_that_stays_is_said(machine: Machine) -> None:
    machine.has(0)
    (machine.folder / "stuck01").touch()
    watch = machine.watch()
    watch.start()
    report = watch.stop()
    assert report.devices[0].restored is False
    assert report.messages[0].startswith(
        "device 0 stays locked: `drv_hlt_dsmi_test set_lp_idle 0 1`"
    )


def test_a_driver_that_hangs_does_not_hang_the_benchmark(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(0)
    machine.program("drv_hlt_dsmi_test", "import time; time.sleep(600)")
    monkeypatch.setattr(clocks, "_LOCK_TIMEOUT", 0.2)
    watch = machine.watch()
    watch.start()
    assert "did not end within 0.2 s" in watch.stop().messages[0]


def test_nothing_is_touched_where_nobody_asks(machine: Machine) -> None:
    machine.has(0)
    watch = machine.watch(lock_frequency=False)
    watch.start()
    assert watch.stop() == FrequencyReport(backend="npu", requested=False)
    assert machine.lines("locks") == machine.lines("asked") == []


def test_a_second_stop_only_reports(machine: Machine) -> None:
    machine.has(0)
    watch = machine.watch()
    watch.start()
    assert watch.stop() == watch.stop()
    assert len(machine.lines("locks")) == 2


def test_the_last_one_that_measures_gives_the_lock_back(machine: Machine) -> None:
    machine.has(0, 1)
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"
    first, second = machine.watch(), machine.watch()
    first.start()
    second.start()
    report = first.stop()
    assert report.devices[0].restored is None
    assert "device 0 stays locked: another process still measures" in report.messages[0]
    assert machine.lines("locks") == ["set_lp_idle 0 0"] * 2
    assert second.stop().devices[0].restored is True
    assert machine.lines("locks")[2:] == ["set_lp_idle 0 1"]


def test_a_folder_that_is_not_there_keeps_nobody_from_giving_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(machine.folder / "nowhere"))
    machine.has(0)
    watch = machine.watch()
    watch.start()
    assert watch.stop().devices[0].restored is True


def test_a_process_that_ends_early_gives_the_locks_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has(0)
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    machine.watch().start()
    assert len(machine.lines("locks")) == 1
    at_exit[0]()
    assert machine.lines("locks")[1:] == ["set_lp_idle 0 1"]


def test_readings_are_not_closer_than_a_tenth_of_a_second(machine: Machine) -> None:
    assert machine.watch(freq_check_interval=0.001).interval_s == 0.1
    assert machine.watch(freq_check_interval=2.5).interval_s == 2.5


def test_a_card_without_that_line_has_no_clock(machine: Machine) -> None:
    machine.program("npu-smi", "print('NPU ID : 0')\nprint('Aicore Freq(MHZ) : 1800')")
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"
    watch = machine.watch()
    watch.start()
    report = watch.stop()
    assert report.devices[0].baseline_mhz is None
    assert report.devices[0].samples == 0
    assert report.messages == ("the clock of device 0 can't be read",)


# Other backends

NVML = """
import pathlib, warnings
warnings.warn("use nvidia-ml-py", FutureWarning)
NVML_CLOCK_SM = 1
nvmlClocks{kind}GpuIdle = 1
nvmlClocks{kind}ApplicationsClocksSetting = 2
nvmlClocks{kind}UserDefinedClocks = 2
nvmlClocks{kind}SwPowerCap = 4
nvmlClocks{kind}None = 0
nvmlClocks{kind}All = 7
class NVMLError(Exception): ...
def nvmlInit(): ...
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(k): return f"index {k}"
def nvmlDeviceGetHandleByUUID(uuid):
    if uuid != "GPU-7": raise NVMLError("Not Found")
    return "uuid 7"
def nvmlDeviceGetClockInfo(handle, kind):
    if handle == "index 1": raise NVMLError("Not Supported")
    return 1980
def nvmlDeviceGetCurrentClocks{kind}s(handle): return 1 | 2 | 4
"""


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)

    def install(kind: str) -> None:
        (tmp_path / "pynvml.py").write_text(NVML.replace("{kind}", kind), "utf-8")

    yield install
    sys.modules.pop("pynvml", None)


def watched(backend: str, environ: dict[str, str], **settings: Any) -> FrequencyReport:
    watch = FrequencyWatch(clocks.clocks_of(backend, environ), PerfSettings(**settings))
    watch.start()
    end = time.monotonic() + 60
    while watch.report().devices and not any(d.samples for d in watch.report().devices):
        assert time.monotonic() < end
        time.sleep(0.01)
    return watch.stop()


@pytest.mark.parametrize("kind", ["ThrottleReason", "EventReason"])
def test_cuda_clocks_are_watched_and_not_locked(nvml: Callable[[str], None], kind: str) -> None:
    nvml(kind)
    report = watched("cuda", {}, lock_frequency_fail_action="error")
    first, second = report.devices
    assert (first.baseline_mhz, first.lowest_mhz, first.locked) == (1980, 1980, False)
    assert first.throttled == ("ApplicationsClocksSetting", "SwPowerCap")
    assert second.baseline_mhz is None
    assert not report.failed
    assert report.messages == (
        "clocks are watched and not locked on cuda; `nvidia-smi -lgc` locks them",
        "the clock of device 1 can't be read",
    )


def test_cuda_devices_are_those_that_are_visible(nvml: Callable[[str], None]) -> None:
    nvml("EventReason")
    report = watched("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-7,0,-1,1"})
    assert [device.device for device in report.devices] == [0, 1]
    report = watched("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-unknown"})
    assert "the driver does not tell about its devices: Not Found" in report.messages


def test_without_the_package_nothing_is_watched(
    nvml: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    report = watched("cuda", {}, lock_frequency_fail_action="error")
    assert report.messages[1] == "nvidia-ml-py is not installed, so the clocks are not watched"
    assert not report.failed


def test_the_cpu_is_left_alone() -> None:
    report = watched("cpu", dict(os.environ), lock_frequency_fail_action="error")
    assert report.devices == ()
    assert report.messages == ("clocks of the cpu are neither locked nor watched",)
    assert not report.failed

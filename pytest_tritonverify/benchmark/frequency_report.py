"""What happened to the clocks of the devices while a benchmark ran, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = Any

MAX_DRIFTS = 20
"""Drifts of one device that are listed; all are counted."""


@dataclass(frozen=True, kw_only=True)
class DeviceFrequency:
    """What the monitor saw of one device's clock.

    Attributes:
        device: the number by which the tools know the device.
        locked: the lock command succeeded on it.
        restored: the lock was taken back; None where there was nothing to take back, or another
            process does so.
        baseline_mhz: the clock after locking; None where it can't be read.
        samples: how often the clock was read afterwards.
        lowest_mhz, highest_mhz: over these readings.
        drifts: `[sample number from 1, MHz]` of readings that differ from the baseline, the first
            `MAX_DRIFTS` of them.
        drift_count: number of all of them.
        throttled: reasons for which the device held its clock down, as its driver names them.
    """

    device: int
    locked: bool = False
    restored: bool | None = None
    baseline_mhz: int | None = None
    samples: int = 0
    lowest_mhz: int | None = None
    highest_mhz: int | None = None
    drifts: tuple[tuple[int, int], ...] = ()
    drift_count: int = 0
    throttled: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the report as builtins."""
        return {
            "device": self.device,
            "locked": self.locked,
            "restored": self.restored,
            "baseline_mhz": self.baseline_mhz,
            "samples": self.samples,
            "lowest_mhz": self.lowest_mhz,
            "highest_mhz": self.highest_mhz,
            "drifts": [list(drift) for drift in self.drifts],
            "drift_count": self.drift_count,
            "throttled": list(self.throttled),
        }

    def joined(self, other: DeviceFrequency) -> DeviceFrequency:
        """Return what two processes saw of the same device, this one first."""
        lows = [mhz for mhz in (self.lowest_mhz, other.lowest_mhz) if mhz is not None]
        highs = [mhz for mhz in (self.highest_mhz, other.highest_mhz) if mhz is not None]
        outcomes = [done for done in (self.restored, other.restored) if done is not None]
        return DeviceFrequency(
            device=self.device,
            locked=self.locked and other.locked,
            restored=all(outcomes) if outcomes else None,
            baseline_mhz=self.baseline_mhz if other.baseline_mhz is None else other.baseline_mhz,
            samples=self.samples + other.samples,
            lowest_mhz=min(lows, default=None),
            highest_mhz=max(highs, default=None),
            drifts=(*self.drifts, *other.drifts)[:MAX_DRIFTS],
            drift_count=self.drift_count + other.drift_count,
            throttled=tuple(dict.fromkeys((*self.throttled, *other.throttled))),
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> DeviceFrequency:
        """Rebuild a report that travelled as builtins, from a process of ours."""
        drifts = tuple((int(number), int(mhz)) for number, mhz in data["drifts"])
        return cls(**{**data, "drifts": drifts, "throttled": tuple(data["throttled"])})


@dataclass(frozen=True, kw_only=True)
class FrequencyReport:
    """What happened to the clocks of the devices while a benchmark ran.

    Attributes:
        backend: `npu`, `cuda` or `cpu`.
        requested: locking and monitoring were asked for.
        tool: what the clocks were locked with; None where nothing was locked.
        interval_s: seconds between two readings.
        devices: one entry for each visible device.
        messages: what went wrong or is worth knowing, in sentences.
        failed: by the option that makes such failures errors, the run is one.
    """

    backend: str
    requested: bool
    tool: str | None = None
    interval_s: float | None = None
    devices: tuple[DeviceFrequency, ...] = ()
    messages: tuple[str, ...] = ()
    failed: bool = False

    @property
    def locked(self) -> bool:
        """Whether every visible device is locked, and there is one."""
        return bool(self.devices) and all(device.locked for device in self.devices)

    @property
    def drifted(self) -> bool:
        """Whether any clock left its baseline."""
        return any(device.drift_count for device in self.devices)

    def to_json(self) -> dict[str, Json]:
        """Return the report as builtins."""
        return {
            "backend": self.backend,
            "requested": self.requested,
            "tool": self.tool,
            "locked": self.locked,
            "drifted": self.drifted,
            "failed": self.failed,
            "interval_s": self.interval_s,
            "devices": [device.to_json() for device in self.devices],
            "messages": list(self.messages),
        }

    def joined(self, other: FrequencyReport) -> FrequencyReport:
        """Return one report of two processes that measured on the same machine."""
        devices = {device.device: device for device in self.devices}
        for device in other.devices:
            earlier = devices.get(device.device)
            devices[device.device] = earlier.joined(device) if earlier else device
        return FrequencyReport(
            backend=other.backend,
            requested=self.requested or other.requested,
            tool=self.tool or other.tool,
            interval_s=self.interval_s if other.interval_s is None else other.interval_s,
            devices=tuple(devices.values()),
            messages=tuple(dict.fromkeys((*self.messages, *other.messages))),
            failed=self.failed or other.failed,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> FrequencyReport:
        """Rebuild a report that travelled as builtins, from a process of ours."""
        return cls(
            backend=data["backend"],
            requested=data["requested"],
            tool=data["tool"],
            interval_s=data["interval_s"],
            devices=tuple(DeviceFrequency.from_json(device) for device in data["devices"]),
            messages=tuple(data["messages"]),
            failed=data["failed"],
        )

"""Measurements travel between processes unchanged, and nothing else passes for one."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given

from pytest_tritonverify.benchmark.frequency_report import DeviceFrequency, FrequencyReport
from pytest_tritonverify.benchmark.measurement import (
    CaseMeasurement,
    MeasurementError,
    PerfSettings,
    SideMeasurement,
)
from tests.support import measurements


def travelled(data: Any) -> Any:
    return json.loads(json.dumps(data))


def in_words(found: CaseMeasurement | SideMeasurement) -> str:
    # nan is not equal to itself.
    return json.dumps(found.to_json(), sort_keys=True)


@given(measurements.cases)
def test_a_measurement_survives_its_way_through_json(case: CaseMeasurement) -> None:
    again = CaseMeasurement.from_json(travelled(case.to_json()))
    assert in_words(again) == in_words(case)


@given(measurements.sides)
def test_nothing_of_a_side_stays_behind(side: SideMeasurement) -> None:
    fields = {field.name for field in dataclasses.fields(SideMeasurement)}
    assert set(side.to_json()) == fields
    assert in_words(SideMeasurement.from_json(side.to_json())) == in_words(side)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"latency_ms": "1.0"}, "`latency_ms` is a number, not str"),
        ({"latency_ms": True}, "`latency_ms` is a number, not bool"),
        ({"latency_ms": 10**400}, "`latency_ms` is too large"),
        ({"samples_ms": [1.0, None]}, "`samples_ms` is a number, not NoneType"),
        ({"samples_ms": {"0": 1.0}}, "`samples_ms` is a list, not dict"),
        ({"samples_ms": [0.0] * 1_000_001}, "`samples_ms` has 1000001 entries"),
        ({"operators": [1.0]}, "`operators` is an object, not list"),
        ({"operators": {"k": "fast"}}, "`operators` is a number, not str"),
        ({"operators": {str(k): 0.0 for k in range(10_001)}}, "`operators` has 10001 entries"),
        ({"method": "stopwatch"}, "`method` is none of npu_profiler"),
        ({"method": ["given"]}, "`method` is a text, not list"),
        ({"notes": [None]}, "`notes` is a text, not NoneType"),
        ({"speedup": 9.0}, "has no field speedup"),
    ],
)
def test_what_is_no_measurement_is_refused_by_field(change: dict[str, Any], words: str) -> None:
    with pytest.raises(MeasurementError, match=words):
        SideMeasurement.from_json({**SideMeasurement().to_json(), **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"case_idx": 0}, "`case_idx` is no number from 1: 0"),
        ({"case_idx": True}, "`case_idx` is no number from 1: True"),
        ({"status": "passed"}, "`status` is neither pass nor fail: 'passed'"),
        ({"framework": []}, "a measurement of a side is an object, not list"),
        ({"warnings": [{"code": "x"}]}, "has a code and a message, and no more"),
    ],
)
def test_a_case_is_read_with_the_same_care(change: dict[str, Any], words: str) -> None:
    with pytest.raises(MeasurementError, match=words):
        CaseMeasurement.from_json({**CaseMeasurement(case_idx=1).to_json(), **change})


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_something_else_altogether_is_refused(data: Any) -> None:
    with pytest.raises(MeasurementError, match="is an object"):
        CaseMeasurement.from_json(data)


def test_a_field_that_is_missing_is_named() -> None:
    data = SideMeasurement().to_json()
    del data["operators"]
    with pytest.raises(MeasurementError, match="needs the field `operators`"):
        SideMeasurement.from_json(data)


def test_frequency_reports_and_settings_travel_too() -> None:
    report = FrequencyReport(
        backend="npu",
        requested=True,
        tool="drv_hlt_dsmi_test",
        interval_s=0.5,
        devices=(
            DeviceFrequency(device=3, locked=True, baseline_mhz=1800, drifts=((2, 900),)),
            DeviceFrequency(device=4, throttled=("SwPowerCap",)),
        ),
        messages=("one",),
    )
    assert FrequencyReport.from_json(travelled(report.to_json())) == report
    settings = PerfSettings(repeats=7, framework_latency_ms=0.25)
    assert PerfSettings.from_json(travelled(settings.to_json())) == settings


def test_devices_are_locked_only_if_there_are_some_and_all_are() -> None:
    one, other = DeviceFrequency(device=0, locked=True), DeviceFrequency(device=1)
    assert FrequencyReport(backend="npu", requested=True, devices=(one,)).locked
    assert not FrequencyReport(backend="npu", requested=True, devices=(one, other)).locked
    assert not FrequencyReport(backend="npu", requested=True).locked


def test_what_several_processes_saw_of_the_clocks_is_one_report() -> None:
    def seen(number: int, **facts: Any) -> FrequencyReport:
        device = DeviceFrequency(device=number, locked=True, **facts)
        return FrequencyReport(backend="npu", requested=True, tool="t", devices=(device,))

    first = seen(
        0,
        restored=None,
        samples=2,
        lowest_mhz=900,
        highest_mhz=1800,
        drifts=((1, 900),),
        drift_count=1,
    )
    second = seen(0, restored=True, samples=3, lowest_mhz=1800, highest_mhz=1850)
    joined = first.joined(dataclasses.replace(second, failed=True, messages=("m",))).joined(seen(1))
    device, other = joined.devices
    assert (device.samples, device.lowest_mhz, device.highest_mhz) == (5, 900, 1850)
    assert (device.drifts, device.drift_count, device.restored) == (((1, 900),), 1, True)
    assert other.device == 1
    assert joined.failed
    assert joined.drifted
    assert joined.messages == ("m",)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [(True, True, True), (True, False, False), (None, True, True), (None, None, None)],
)
def test_a_lock_is_given_back_if_everybody_who_tried_says_so(
    *, one: bool | None, other: bool | None, both: bool | None
) -> None:
    first, second = (DeviceFrequency(device=0, restored=done) for done in (one, other))
    assert first.joined(second).restored is both
    assert second.joined(first).restored is both

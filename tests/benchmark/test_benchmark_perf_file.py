"""Reports hold the documented keys in their order, and can be read again."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any, get_args

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from pytest_tritonverify.benchmark import perf_file
from pytest_tritonverify.benchmark.frequency_report import DeviceFrequency, FrequencyReport
from pytest_tritonverify.benchmark.measurement import (
    CaseMeasurement,
    Method,
    PerfSettings,
    SideMeasurement,
)
from pytest_tritonverify.benchmark.perf_file import PerfFileError
from tests.support import measurements
from tests.support.measurements import ENVIRONMENT, SOURCES, TOP_LEVEL, case, failed, side, steady

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VALIDATOR = jsonschema.Draft202012Validator(json.loads(perf_file.SCHEMA_PATH.read_text("utf-8")))

PER_SHAPE = [
    "case_idx",
    "input_desc",
    "status",
    "framework",
    "implementation",
    "speedup_vs_torch",
    "error_type",
    "error_msg",
]


def document(*cases: CaseMeasurement, **facts: Any) -> dict[str, Any]:
    return compose(cases, **facts)


def compose(
    cases: Iterable[CaseMeasurement], bench: PerfSettings | None = None, **facts: Any
) -> dict[str, Any]:
    content = perf_file.document(
        "softmax",
        cases,
        bench or PerfSettings(),
        **{"environment": ENVIRONMENT, "sources": SOURCES, **facts},
    )
    VALIDATOR.validate(content)
    return content


def test_the_documented_keys_come_first_in_their_order() -> None:
    content = document(case(1), failed(2))
    assert list(content)[: len(TOP_LEVEL)] == TOP_LEVEL
    for entry in content["per_shape_results"]:
        assert list(entry)[: len(PER_SHAPE)] == PER_SHAPE
    for name in ("framework", "implementation"):
        assert list(content[name]) == ["avg_latency_ms", "peak_memory_mb", "operators"]
        assert list(content["per_shape_results"][0][name])[:2] == [
            "avg_latency_ms",
            "peak_memory_mb",
        ]


def test_a_report_says_what_was_measured() -> None:
    content = document(case(2, 9.0, 1.0), case(1, 4.0, 2.0))
    assert (content["warmup"], content["repeats"]) == (5, 50)
    assert (content["total_cases"], content["passed_cases"], content["failed_cases"]) == (2, 2, 0)
    assert content["speedup_vs_torch"] == pytest.approx(math.sqrt(18))
    assert content["framework"]["avg_latency_ms"] == pytest.approx(6.5)
    assert content["implementation"]["operators"] == pytest.approx({"kernel": 1.5})
    first, second = content["per_shape_results"]
    assert (first["case_idx"], second["case_idx"]) == (1, 2)
    assert first["speedup_vs_torch"] == pytest.approx(2.0)
    assert (first["error_type"], first["error_msg"]) == (None, None)
    measured = first["implementation"]
    assert measured["method"] == "npu_profiler"
    assert measured["median_ms"] == pytest.approx(2.0)
    assert measured["quantiles_ms"]["p00"] == pytest.approx(1.99)
    assert measured["launches_per_forward"] == 1
    assert measured["cv"] == pytest.approx(0.003, rel=0.05)
    assert measured["samples"]["count"] == 50


def test_intervals_lie_around_the_speedups() -> None:
    content = document(case(1, 4.0, 2.0), case(2, 9.0, 1.0))
    for found in (content, *content["per_shape_results"]):
        low, high = found["speedup_ci95"]
        assert low < found["speedup_vs_torch"] < high
        assert high / low < 1.01


def test_a_failed_case_has_no_times_and_is_in_no_list() -> None:
    content = document(case(1), failed(2))
    entry = content["per_shape_results"][1]
    assert entry["status"] == "fail"
    assert (entry["framework"], entry["implementation"]) == (None, None)
    assert (entry["speedup_vs_torch"], entry["speedup_class"]) == (None, None)
    assert (entry["error_type"], entry["error_msg"]) == ("AccuracyError", "AccuracyError: 3 of 9")
    assert content["failed_cases"] == 1
    assert not any(content[key] for key in content if key.endswith("_indices"))


def test_abnormal_cases_have_passed_and_are_listed() -> None:
    content = document(
        case(1, 0.0, 1.0),
        case(2, 1.0, 0.0),
        case(3, 0.0, 0.0),
        case(4, None, 1.0),
        case(5, -1.0, 1.0),
    )
    assert content["passed_cases"] == 5
    assert {key: content[key] for key in content if key.endswith("_indices")} == {
        "nan_indices": [3],
        "inf_indices": [2],
        "zero_indices": [1],
        "negative_indices": [5],
        "none_indices": [4],
    }
    assert content["speedup_vs_torch"] is None
    assert content["speedup_ci95"] is None
    assert all(entry["speedup_vs_torch"] is None for entry in content["per_shape_results"])
    codes = [[w["code"] for w in entry["warnings"]] for entry in content["per_shape_results"]]
    assert codes == [
        ["below_resolution"],
        ["below_resolution"],
        ["below_resolution", "below_resolution"],
        ["not_measured"],
        ["impossible_latency"],
    ]
    texts = [entry["warnings"][0]["message"] for entry in content["per_shape_results"]]
    assert texts[4] == "the reference was measured at -1 ms, which is no time"


def test_noise_is_called_noise() -> None:
    wild = (1.0,) * 40 + (2.0,) * 10
    content = document(case(1, 2.0, side(1.2, samples_ms=wild)))
    entry = content["per_shape_results"][0]
    assert entry["implementation"]["noisy"] is True
    assert entry["framework"]["noisy"] is False
    [warning] = entry["warnings"]
    assert warning["code"] == "noisy"
    assert warning["message"].startswith("the implementation was measured with noise: the standard")
    assert "34 % of the mean (limit 10 %)" in warning["message"]


def test_a_latency_that_its_samples_belie_has_no_interval() -> None:
    content = document(case(1, 2.0, side(0.5, samples_ms=steady(1.0))))
    [entry] = content["per_shape_results"]
    assert entry["speedup_vs_torch"] == pytest.approx(4.0)
    assert entry["speedup_ci95"] is None
    assert [w["code"] for w in entry["warnings"]] == ["inconsistent_samples"]


def test_one_case_without_samples_leaves_the_mean_without_an_interval() -> None:
    content = document(case(1), case(2, 2.0, side(1.0, samples_ms=())))
    assert content["per_shape_results"][0]["speedup_ci95"] is not None
    assert content["speedup_ci95"] is None


def test_a_given_latency_varies_with_nothing() -> None:
    bench = PerfSettings(skip_framework=True, framework_latency_ms=3.0)
    content = compose([case(1, SideMeasurement.given(3.0), 1.0)], bench)
    [entry] = content["per_shape_results"]
    assert entry["speedup_vs_torch"] == pytest.approx(3.0)
    assert entry["framework"]["method"] == "given"
    assert entry["speedup_ci95"][0] < 3.0 < entry["speedup_ci95"][1]
    assert content["settings"]["framework_latency_ms"] == 3.0


def test_a_latency_that_was_given_as_nothing_is_told() -> None:
    content = document(case(1, SideMeasurement.given(0.0), 1.0))
    assert content["zero_indices"] == [1]
    [warning] = content["per_shape_results"][0]["warnings"]
    assert warning["message"].startswith("the latency of the reference was given as 0 ms")


def test_many_samples_are_stored_in_few() -> None:
    content = document(case(1, 2.0, side(1.0, samples_ms=steady(1.0, 999))))
    samples = content["per_shape_results"][0]["implementation"]["samples"]
    assert (samples["count"], samples["compressed"], len(samples["values_ms"])) == (999, True, 200)


def test_long_messages_keep_both_ends() -> None:
    text = "first line\n" + "x" * 5000 + "\nlast line"
    content = document(case(1, status="fail", error_type="RuntimeError", error_msg=text))
    message = content["per_shape_results"][0]["error_msg"]
    assert len(message) <= 2000
    assert message.startswith("first line")
    assert message.endswith("last line")


def test_the_clocks_and_the_gate_have_their_sections() -> None:
    clocks = FrequencyReport(
        backend="npu",
        requested=True,
        tool="drv_hlt_dsmi_test",
        interval_s=1.0,
        devices=(
            DeviceFrequency(
                device=3,
                locked=True,
                restored=True,
                baseline_mhz=1800,
                samples=4,
                lowest_mhz=900,
                highest_mhz=1800,
                drifts=((2, 900),),
                drift_count=1,
            ),
        ),
    )
    gate = {
        "required": True,
        "verify_json": "verify_result.json",
        "passed_cases": 1,
        "total_cases": 1,
        "warnings": [],
    }
    content = compose([case(1)], frequency=clocks, gate=gate)
    assert content["frequency"]["drifted"] is True
    assert content["frequency"]["devices"][0]["drifts"] == [[2, 900]]
    assert content["gate"] == gate


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(measurements.several)
def test_whatever_was_measured_makes_a_strict_file(cases: list[CaseMeasurement]) -> None:
    content = compose(cases, frequency=measurements.NO_CLOCKS)
    text = json.dumps(content, allow_nan=False)
    assert json.loads(text) == content
    assert content["passed_cases"] + content["failed_cases"] == content["total_cases"]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "below" / "perf_result.json"
    content = document(case(1), failed(2))
    perf_file.write(path, content)
    assert perf_file.read(path) == content
    assert [found.name for found in path.parent.iterdir()] == ["perf_result.json"]


def test_a_file_with_the_documented_keys_alone_is_read(tmp_path: Path) -> None:
    content = document(case(1), failed(2))
    short = {key: content[key] for key in TOP_LEVEL}
    short["per_shape_results"] = [
        {key: entry[key] for key in PER_SHAPE} for entry in content["per_shape_results"]
    ]
    path = tmp_path / "perf_result.json"
    path.write_text(json.dumps(short), "utf-8")
    assert perf_file.read(path) == short


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "holds no JSON object"),
        ("{}", "`op_name` is no text"),
        ('{"op_name": "x", "failures": []}', "this looks like a verification's result"),
        ('{"op_name": "x", "speedup_vs_torch": "2"}', "`speedup_vs_torch` is neither"),
        ('{"op_name": "x", "speedup_vs_torch": true}', "`speedup_vs_torch` is neither"),
        ('{"op_name": "x", "speedup_vs_torch": 2}', "`per_shape_results` is no list"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "perf_result.json"
    path.write_text(text, "utf-8")
    with pytest.raises(PerfFileError, match=words):
        perf_file.read(path)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([1], "is no object"),
        ([{"case_idx": "1"}], "has no number `case_idx`"),
        ([{"case_idx": 1, "status": "passed"}], "has a `status` other than"),
        ([{"case_idx": 1, "status": "pass", "framework": 2.0}], "has no object `framework`"),
        (
            [{"case_idx": 1, "status": "pass", "implementation": {"avg_latency_ms": "2"}}],
            "has a latency of `implementation` that is no number",
        ),
        ([{"case_idx": 1, "status": "fail"}] * 2, "has a case number twice"),
    ],
)
def test_cases_are_read_with_care(tmp_path: Path, shapes: list[Any], words: str) -> None:
    path = tmp_path / "perf_result.json"
    path.write_text(
        json.dumps({"op_name": "x", "speedup_vs_torch": None, "per_shape_results": shapes}), "utf-8"
    )
    with pytest.raises(PerfFileError, match=words):
        perf_file.read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PerfFileError, match=r"nowhere\.json can't be read: No such file"):
        perf_file.read(tmp_path / "nowhere.json")


def test_the_schema_knows_every_setting() -> None:
    schema = json.loads(perf_file.SCHEMA_PATH.read_text("utf-8"))
    known = set(schema["properties"]["settings"]["properties"]) | {"warmup", "repeats"}
    assert known == {field.name for field in dataclasses.fields(PerfSettings)}


def test_the_schema_knows_every_method() -> None:
    schema = json.loads(perf_file.SCHEMA_PATH.read_text("utf-8"))
    assert set(schema["$defs"]["side"]["properties"]["method"]["enum"]) == set(get_args(Method))

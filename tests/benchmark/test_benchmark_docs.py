"""The pages on benchmarks agree with the program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from pytest_tritonverify.benchmark import (
    aggregate,
    compare,
    frequency,
    gate,
    history,
    measurement,
    perf_file,
    stats,
)
from pytest_tritonverify.results import reliance
from tests.support.measurements import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[2] / "docs"
BENCHMARK = (DOCS / "benchmark.md").read_text("utf-8")
WARNINGS = {
    "below_resolution",
    "gate",
    "impossible_latency",
    "inconsistent_samples",
    "inputs_not_rotated",
    "noisy",
    "not_measured",
    "shared_device",
}
REPORT = (DOCS / "perf_result.md").read_text("utf-8")


def keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys(value)


def cells(page: str, place: int) -> set[str]:
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row[place])}


def test_every_key_of_the_schema_is_on_the_page() -> None:
    schema = json.loads(perf_file.SCHEMA_PATH.read_text("utf-8"))
    named = set(re.findall(r"`([a-z_0-9]+)`", REPORT))
    assert set(keys(schema)) - {"code", "message"} <= named
    assert cells(REPORT, 0) - {"<op>_triton_ascend_impl.py", "<op>_triton_<x>.py"} <= (
        set(keys(schema)) | WARNINGS
    )


def test_every_warning_of_a_report_is_on_the_page() -> None:
    package = Path(perf_file.__file__).parent
    source = "".join(path.read_text("utf-8") for path in package.glob("*.py"))
    codes = set(re.findall(r'"code": "(\w+)"', source))
    assert codes == WARNINGS
    assert codes <= cells(REPORT, 0)


def test_every_method_is_on_the_page() -> None:
    for method in get_args(measurement.Method):
        assert f"`{method}`" in REPORT


def test_the_words_of_the_gate_are_on_the_page() -> None:
    words = {gate.MISSING, gate.UNREADABLE}
    words |= {
        value
        for name, value in vars(reliance).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("_")
    }
    assert words == {word for word in cells(BENCHMARK, 0) if word in words}


def test_the_refusal_on_the_page_is_what_is_printed() -> None:
    content = {
        "total_cases": 5,
        "passed_cases": 4,
        "failures": [
            {
                "case_idx": 2,
                "error_type": "AccuracyError",
                "error_msg": "AccuracyError: 3 of 32768 elements differ\nmore",
            }
        ],
    }
    now = reliance.Now(op_name="softmax", sources={})
    passage = gate.judge(content, now, Path("/ops/softmax/verify_result.json"))
    assert f"```text\n{passage.words()}\n```" in BENCHMARK


@pytest.mark.parametrize(
    "text",
    [
        f"exceeds {100 * stats.NOISE_LIMIT:.0f} %",
        f"{stats.RESAMPLES} times",
        f"takes {stats.MIN_SAMPLES} samples",
        f"Up to {stats.MAX_STORED} samples",
        f"margin of {100 * compare.MARGIN:.0f} %",
        f"at least {frequency.SHORTEST_INTERVAL_S:g} s apart",
        f"{history.FOLDER}/{history.machine_of(ENVIRONMENT)}/0001_base/",
    ],
)
def test_figures_are_those_of_the_program(text: str) -> None:
    assert text in BENCHMARK


def test_classes_are_in_their_order() -> None:
    rows = re.findall(r"^\| (\w+) \|", BENCHMARK, re.MULTILINE)
    classes = [row for row in rows if row in (*aggregate.ABNORMAL, "valid")]
    assert classes == ["none", "nan", "inf", "negative", "zero", "valid"]
    assert classes == list(get_args(aggregate.SpeedupClass))

"""Two reports are compared case by case, with words that are never forced."""

from __future__ import annotations

import collections
import copy
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.benchmark import compare_text, perf_file
from pytest_tritonverify.benchmark.compare import Comparison, ComparisonError, compare
from pytest_tritonverify.benchmark.measurement import CaseMeasurement, PerfSettings
from tests.support import measurements
from tests.support.measurements import ENVIRONMENT, SOURCES, case, failed, side, steady


def report(*cases: CaseMeasurement, **facts: Any) -> dict[str, Any]:
    content = perf_file.document(
        "softmax",
        cases,
        PerfSettings(),
        **{"environment": ENVIRONMENT, "sources": SOURCES, **facts},
    )
    found: dict[str, Any] = json.loads(json.dumps(content))
    return found


def one_case(before: float | Any, after: float | Any) -> Comparison:
    return compare(report(case(1, 9.0, before)), report(case(1, 9.0, after)))


def documented(content: dict[str, Any]) -> dict[str, Any]:
    """Return a report as other programs write it."""
    keys = ("op_name", "speedup_vs_torch", "per_shape_results")
    short = {key: content[key] for key in keys}
    short["per_shape_results"] = [
        {
            **{key: entry[key] for key in ("case_idx", "input_desc", "status", "speedup_vs_torch")},
            **{
                name: entry[name] and {"avg_latency_ms": entry[name]["avg_latency_ms"]}
                for name in ("framework", "implementation")
            },
        }
        for entry in content["per_shape_results"]
    ]
    return short


# Words


@pytest.mark.parametrize(
    ("before", "after", "verdict", "code"),
    [
        (1.0, 1.0, "SAME", "within_margin"),
        (1.0, 1.01, "SAME", "within_margin"),
        (1.0, 1.019, "UNCLEAR", "across_margin"),
        (1.0, 0.9, "FASTER", "beyond_margin"),
        (1.0, 0.5, "FASTER", "beyond_margin"),
        (1.0, 1.1, "SLOWER", "beyond_margin"),
    ],
)
def test_words(before: float, after: float, verdict: str, code: str) -> None:
    comparison = one_case(before, after)
    [row] = comparison.rows
    assert row.verdict == comparison.verdict == verdict
    assert row.reasons[0].code == comparison.reasons[0].code == code
    if code == "across_margin":
        assert row.reasons[0].message.endswith(" reaches across the margin of 2 %")
    assert row.ratio == pytest.approx(before / after)
    assert row.interval is not None
    assert row.interval.low <= before / after <= row.interval.high


def wild(latency: float) -> Any:
    """Return a side with two modes, a fifth above and below its mean."""
    return side(latency, samples_ms=(0.8 * latency, 1.2 * latency) * 25)


@pytest.mark.parametrize(
    ("after", "verdict", "code"),
    [(1.0, "UNCLEAR", "noisy"), (0.9, "UNCLEAR", "noisy"), (0.3, "FASTER", "beyond_margin")],
)
def test_noise_widens_the_margin_and_forbids_same(after: float, verdict: str, code: str) -> None:
    comparison = one_case(1.0, wild(after))
    [row] = comparison.rows
    assert row.noisy
    assert row.margin == pytest.approx(0.4)
    assert (row.verdict, row.reasons[0].code) == (verdict, code)
    assert comparison.verdict == verdict
    if code == "noisy":
        assert row.reasons[0].message.endswith(" does not leave the noise of 40 %")


@pytest.mark.parametrize(
    ("before", "after", "code", "words"),
    [
        (1.0, 0.0, "below_resolution", "B: 0 ms, below the clock's resolution"),
        (None, 1.0, "not_measured", "A: not measured: the profiler gave no table"),
        (-1.0, 1.0, "not_measured", "A: not measured"),
        (
            1.0,
            side(1.0, method="cpu_wall_clock"),
            "other_method",
            "npu_profiler and cpu_wall_clock",
        ),
        (1.0, side(1.0, samples_ms=()), "no_interval", "too few samples"),
        (1.0, side(1.0, samples_ms=steady(1.0, 5)), "no_interval", "too few samples"),
        (1.0, side(1.0, samples_ms=steady(2.0)), "no_interval", "too few samples"),
    ],
)
def test_where_nothing_can_be_said_nothing_is(
    before: Any, after: Any, code: str, words: str
) -> None:
    comparison = one_case(before, after)
    [row] = comparison.rows
    assert row.verdict == comparison.verdict == "UNCLEAR"
    assert row.reasons[0].code == code
    assert words in row.reasons[0].message


def test_a_case_that_failed_in_one_report_leaves_the_whole_unclear() -> None:
    comparison = compare(report(case(1), case(2)), report(case(1, 2.0, 0.5), failed(2)))
    assert [row.verdict for row in comparison.rows] == ["FASTER", "UNCLEAR"]
    assert comparison.rows[1].reasons[0].message == "B: the case failed (AccuracyError)"
    assert comparison.verdict == "UNCLEAR"
    assert comparison.reasons[0].code == "cases_changed"


def test_a_case_that_failed_in_both_is_left_out() -> None:
    comparison = compare(report(case(1), failed(2)), report(case(1, 2.0, 0.5), failed(2)))
    assert comparison.verdict == "FASTER"
    assert comparison.reasons[1].code == "cases_left_out"
    assert comparison.speedup_vs_baseline == pytest.approx(2.0)


def test_the_whole_is_the_geometric_mean_of_the_cases() -> None:
    before = report(case(1, 9.0, 1.0), case(2, 9.0, 4.0))
    after = report(case(1, 9.0, 0.5), case(2, 9.0, 4.5))
    comparison = compare(before, after)
    assert [row.verdict for row in comparison.rows] == ["FASTER", "SLOWER"]
    assert comparison.ratio == pytest.approx(math.sqrt(2 * 4 / 4.5))
    assert comparison.verdict == "FASTER"
    assert comparison.interval is not None
    assert comparison.interval.low < (comparison.ratio or 0) < comparison.interval.high


@settings(max_examples=8, deadline=None)
@given(st.floats(min_value=0.2, max_value=5.0), st.floats(min_value=0.2, max_value=5.0))
def test_turned_around_the_word_is_the_other_one(before: float, after: float) -> None:
    opposite = {"FASTER": "SLOWER", "SLOWER": "FASTER", "SAME": "SAME", "UNCLEAR": "UNCLEAR"}
    there, back = one_case(before, after), one_case(after, before)
    assert (there.ratio or 0) * (back.ratio or 0) == pytest.approx(1)
    # At the very edge of the margin resampling may tip the one and not the other.
    edge = min(abs(max(before / after, after / before) - edge) for edge in (1.02, 1.0201, 1.0195))
    assert back.verdict == opposite[there.verdict] or edge < 0.005


def jittered(seed: int, latency: float, sigma: float) -> Any:
    generator = random.Random(seed)
    samples = tuple(latency * math.exp(generator.gauss(0, sigma)) for _ in range(50))
    return side(math.fsum(samples) / 50, samples_ms=samples)


def words(times: int, before: float, after: float, sigma: float) -> collections.Counter[str]:
    return collections.Counter(
        one_case(jittered(2 * k, before, sigma), jittered(2 * k + 1, after, sigma)).verdict
        for k in range(times)
    )


def test_a_kernel_is_not_faster_than_itself() -> None:
    assert words(20, 1.0, 1.0, sigma=0.02) == {"SAME": 20}
    # Fifty samples with this much jitter don't tell two percent.
    assert set(words(20, 1.0, 1.0, sigma=0.05)) <= {"SAME", "UNCLEAR"}


def test_a_gain_of_a_tenth_is_seen_through_five_percent_of_jitter() -> None:
    assert words(10, 1.1, 1.0, sigma=0.05) == {"FASTER": 10}
    assert words(10, 1.0, 1.1, sigma=0.05) == {"SLOWER": 10}


# The documented ratio


def test_speedup_vs_baseline_is_the_ratio_of_the_geometric_means() -> None:
    before = report(case(1, 4.0, 2.0), case(2, 9.0, 3.0))
    after = report(case(1, 4.0, 1.0), case(2, 9.0, 1.0))
    comparison = compare(before, after)
    expected = after["speedup_vs_torch"] / before["speedup_vs_torch"]
    assert comparison.speedup_vs_baseline == pytest.approx(expected)
    assert expected == pytest.approx(math.sqrt(6))


def test_without_a_mean_there_is_no_ratio() -> None:
    comparison = compare(report(case(1)), report(case(1, None, 1.0)))
    assert comparison.speedup_vs_baseline is None
    assert "no speedup_vs_baseline: B has no speedup_vs_torch" in comparison.warnings
    # The implementations themselves can be compared all the same.
    assert comparison.verdict == "SAME"


def test_means_of_different_cases_have_no_ratio() -> None:
    comparison = compare(report(case(1), case(2)), report(case(1), case(2, 0.0, 1.0)))
    assert comparison.after_speedup == pytest.approx(2.0)
    assert comparison.speedup_vs_baseline is None
    text = "no speedup_vs_baseline: case 2 is in one of the two geometric means only"
    assert text in comparison.warnings


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([case(1), case(2)], [case(1)], "only A has case 2"),
        ([case(1)], [case(1), case(2), case(3)], "only B has case 2, 3"),
        ([case(1)], [case(1, input_desc=[{"type": "int"}])], "case 1 has other inputs in B"),
    ],
)
def test_different_cases_are_not_compared(before: Any, after: Any, words: str) -> None:
    with pytest.raises(ComparisonError, match=f"the cases differ: {words}"):
        compare(report(*before), report(*after))


def test_different_operators_are_not_compared() -> None:
    other = {**report(case(1)), "op_name": "gelu"}
    with pytest.raises(ComparisonError, match="new is of `softmax`"):
        compare(other, report(case(1)), names=("old", "new"))


# What else differs


def changed(path: str, value: Any) -> dict[str, Any]:
    content = report(case(1))
    *folders, name = path.split(".")
    place = content
    for folder in folders:
        place = place[folder]
    place[name] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            "environment.triton.version",
            "3.3.0",
            '`environment.triton.version` was "3.2.0" and is "3.3.0"',
        ),
        (
            "environment.torch.torch_npu_version",
            "2.6",
            "`environment.torch.torch_npu_version` was null",
        ),
        ("environment.cann.new", 1, "`environment.cann.new` was null and is 1"),
        ("sources.task", "1" * 64, "`sources.task` differs"),
        ("repeats", 5, "`repeats` was 50 and is 5"),
        ("environment", None, "the environment of one report is not known"),
    ],
)
def test_each_field_that_differs_is_a_warning(path: str, value: Any, words: str) -> None:
    comparison = compare(report(case(1)), changed(path, value))
    [warning] = comparison.warnings
    assert warning.startswith(words)
    assert comparison.verdict == "SAME"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("environment.timestamp", "2027-01-01"),
        ("environment.cmdline.triton_impl_name", "triton_optimized"),
        ("sources.implementation", "1" * 64),
    ],
)
def test_what_must_differ_is_no_warning(path: str, value: Any) -> None:
    assert compare(report(case(1)), changed(path, value)).warnings == ()


def test_clocks_that_were_locked_in_one_report_only_are_a_warning() -> None:
    free = report(case(1), frequency=measurements.NO_CLOCKS)
    locked = copy.deepcopy(free)
    locked["frequency"]["locked"] = True
    [warning] = compare(free, locked).warnings
    assert warning == "`frequency.locked` was false and is true"


def test_latencies_of_different_devices_are_not_compared() -> None:
    comparison = compare(report(case(1)), changed("environment.device.npu_name", "Ascend910B1"))
    assert comparison.verdict == comparison.rows[0].verdict == "UNCLEAR"
    assert comparison.rows[0].reasons[0].code == "other_device"
    assert "Ascend910B4 and Ascend910B1" in comparison.rows[0].reasons[0].message


def test_a_reference_that_moved_is_told() -> None:
    comparison = compare(report(case(1, 2.0, 1.0)), report(case(1, 3.0, 1.0)))
    assert comparison.verdict == "SAME"
    assert comparison.speedup_vs_baseline == pytest.approx(1.5)
    assert comparison.warnings == (
        "the reference took 50 % longer in B than in A: so speed-ups differ, too",
    )


# Reports of other programs


def test_documented_keys_are_enough_for_the_documented_ratio() -> None:
    before, after = report(case(1, 4.0, 2.0)), report(case(1, 4.0, 1.0))
    comparison = compare(documented(before), documented(after))
    assert comparison.speedup_vs_baseline == pytest.approx(2.0)
    assert comparison.rows[0].ratio == pytest.approx(2.0)
    assert comparison.verdict == "UNCLEAR"
    assert comparison.reasons[0].code == "no_interval"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
TAIL = ("method", "samples", "cv", "iqr", "noisy", "reason", "operators")


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(TAIL), json_values)
def test_odd_tails_are_as_none(name: str, value: Any) -> None:
    content = report(case(1))
    content["per_shape_results"][0]["implementation"][name] = value
    comparison = compare(report(case(1)), content)
    assert comparison.verdict in ("SAME", "UNCLEAR", "FASTER", "SLOWER")
    compare_text.text(comparison)


@pytest.mark.parametrize(
    "samples",
    [
        {"count": 50, "values_ms": [True] * 50},
        {"count": 50, "values_ms": [10**400] * 50},
        {"count": 2, "values_ms": [1.0] * 50},
        {"count": 50, "values_ms": [1.0, None] * 25},
        {"count": 50, "values_ms": [-1.0, 3.0] * 25},
    ],
)
def test_samples_of_another_form_give_no_interval(samples: Any) -> None:
    content = report(case(1))
    content["per_shape_results"][0]["implementation"]["samples"] = samples
    assert compare(report(case(1)), content).rows[0].interval is None


def test_the_environment_may_be_anything() -> None:
    values: tuple[Any, ...] = (
        None,
        [],
        "x",
        {"device": 1},
        {"device": {"npu_name": [1]}, "triton": []},
    )
    for value in values:
        content = {**report(case(1)), "environment": value, "sources": value, "frequency": value}
        compare(content, report(case(1)))


# How it is shown


def test_a_column_is_not_as_wide_as_the_path_of_its_report() -> None:
    one = report(case(1, 9.0, 1.0))
    deep = compare(one, one, names=("op/output/iter_0/before.json", "saved/npu/after/"))
    assert (
        " ".join(compare_text.text(deep).splitlines()[1].split()[:5]) == "case before ms after ms"
    )
    same = compare(one, one, names=("a/perf_result.json", "b/perf_result.json"))
    assert (
        " ".join(compare_text.text(same).splitlines()[1].split()[:5]) == "case before ms after ms"
    )


@pytest.fixture
def shown() -> Comparison:
    before = report(case(1, 9.0, 1.0), case(2, 9.0, 4.0), case(3, 9.0, None))
    after = report(case(1, 9.0, 0.5), case(2, 9.0, 4.0), case(3, 9.0, None))
    return compare(before, after, names=("old.json", "new|er.json"))


def test_the_table_has_a_line_for_each_case(shown: Comparison) -> None:
    lines = compare_text.text(shown).splitlines()
    assert lines[0] == "softmax: old.json -> new|er.json"
    assert " ".join(lines[1].split()) == "case old ms new|er ms ratio 95 % verdict"
    assert lines[2].startswith("  case1-float16-128       1        0.5  2.000x  [")
    assert "FASTER: [" in lines[2]
    assert "SAME: [" in lines[3]
    assert lines[4].split()[:5] == ["case3-float16-128", "-", "-", "-", "-"]
    assert "UNCLEAR: old.json: not measured: the profiler gave no table; new|er.json" in lines[4]
    assert lines[5].startswith("  all: FASTER: [")
    assert lines[5].endswith("; 1 of 3 cases can't be compared and are left out")
    assert lines[6].startswith("  geometric mean of the ratios: 1.414x [")
    assert lines[7].startswith("  speedup_vs_baseline: 1.4142 (")


def test_markdown_is_a_table_that_cells_do_not_break(shown: Comparison) -> None:
    lines = compare_text.markdown(shown).splitlines()
    assert lines[0] == "### softmax: old.json → new\\|er.json"
    assert lines[3] == "|---|--:|--:|--:|--:|---|"
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 4
    assert {line.replace("\\|", "").count("|") for line in rows} == {7}
    assert lines[-1].startswith("- speedup\\_vs\\_baseline: 1.4142")


def test_the_json_is_plain_and_whole(shown: Comparison) -> None:
    data = json.loads(json.dumps(shown.to_json(), allow_nan=False))
    assert data["verdict"] == "FASTER"
    assert data["speedup_vs_baseline"] == pytest.approx(math.sqrt(2))
    assert [entry["verdict"] for entry in data["cases"]] == ["FASTER", "SAME", "UNCLEAR"]
    assert data["cases"][0]["ratio_ci95"][0] < 2 < data["cases"][0]["ratio_ci95"][1]

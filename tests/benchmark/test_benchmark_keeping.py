"""Reports are compared with kept ones at the end of a run, and kept."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.benchmark import history, perf_file
from pytest_tritonverify.benchmark.history import HistoryError
from pytest_tritonverify.benchmark.keeping import Keeper, Kept
from pytest_tritonverify.benchmark.measurement import PerfSettings
from tests.support.measurements import ENVIRONMENT, SOURCES, case

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)
MACHINE = "npu-Ascend910B4"


def report(latency: float = 1.0, op_name: str = "softmax") -> dict[str, Any]:
    return perf_file.document(
        op_name, [case(1, 4.0, latency)], PerfSettings(), environment=ENVIRONMENT, sources=SOURCES
    )


def finish(root: Path, latency: float = 1.0, **wishes: Any) -> Kept:
    keeper = Keeper(root=root, cwd=root, **wishes)
    keeper.check()
    return keeper.finish({"a/softmax_triton_x": report(latency)}, NOW)


def test_nothing_is_kept_unasked(tmp_path: Path) -> None:
    assert finish(tmp_path) == Kept()
    assert Keeper(root=tmp_path, save="x").finish({}, NOW) == Kept()
    assert list(tmp_path.iterdir()) == []


def test_a_saved_run_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    first = finish(tmp_path, 1.0, save="", compare="")
    assert first.run is not None
    assert first.run.path == tmp_path / history.FOLDER / MACHINE / "0001_20260102T030405Z"
    assert list(history.reports_in(first.run.path)) == ["a/softmax_triton_x"]
    assert first.problems[0].startswith("there is no saved run in ")
    second = finish(tmp_path, 0.5, save="tuned", compare="")
    [comparison] = second.comparisons
    assert (comparison.verdict, comparison.before) == ("FASTER", "0001_20260102T030405Z")
    assert second.problems == ()
    third = finish(tmp_path, 0.5, compare="")
    assert third.run is None
    [comparison] = third.comparisons
    assert (comparison.verdict, comparison.before) == ("SAME", "0002_tuned")


@pytest.mark.parametrize("wanted", ["1", "base", "0001_base", f"{MACHINE}/base"])
def test_a_run_is_named_by_what_it_has(tmp_path: Path, wanted: str) -> None:
    finish(tmp_path, 1.0, save="base")
    finish(tmp_path, 0.5, save="other")
    [comparison] = finish(tmp_path, 0.5, compare=wanted).comparisons
    assert comparison.before == "0001_base"
    assert comparison.verdict == "FASTER"


def test_a_file_or_a_folder_of_another_making_will_do(tmp_path: Path) -> None:
    perf_file.write(tmp_path / "ops" / "baseline_perf_result.json", report(2.0))
    perf_file.write(tmp_path / "ops" / "perf_result_gelu.json", report(2.0, "gelu"))
    (tmp_path / "ops" / "perf_result_bad.json").write_text("{", "utf-8")
    for wanted in ("ops/baseline_perf_result.json", "ops"):
        kept = finish(tmp_path, 1.0, compare=wanted)
        assert [found.verdict for found in kept.comparisons] == ["FASTER"]
        assert kept.comparisons[0].speedup_vs_baseline == pytest.approx(2.0)


def test_what_can_not_be_compared_is_told_and_kept_all_the_same(tmp_path: Path) -> None:
    perf_file.write(tmp_path / "gelu.json", report(2.0, "gelu"))
    kept = finish(tmp_path, 1.0, compare="gelu.json", save="x")
    assert kept.comparisons == ()
    assert kept.problems == ("a/softmax_triton_x: gelu.json has no reports of `softmax`",)
    assert kept.run is not None
    (tmp_path / "bad.json").write_text("{", "utf-8")
    [problem] = finish(tmp_path, 1.0, compare="bad.json").problems
    assert "bad.json is no JSON" in problem


def test_reports_of_one_operator_that_are_several_are_not_guessed_at(tmp_path: Path) -> None:
    for name in ("perf_result_a.json", "perf_result_b.json"):
        perf_file.write(tmp_path / "ops" / name, report())
    [problem] = finish(tmp_path, compare="ops").problems
    assert problem.endswith("ops has 2 reports of `softmax`")


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"save": "a/b"}, "can't be a run's name"),
        ({"compare": ""}, "there is no saved run in"),
        ({"compare": "base"}, "there is no saved run 'base'"),
        ({"compare": "gone.json"}, r"there is no saved run 'gone\.json'"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    tmp_path: Path, wishes: dict[str, str], words: str
) -> None:
    with pytest.raises(HistoryError, match=words):
        Keeper(root=tmp_path, cwd=tmp_path, **wishes).check()


def test_a_folder_that_can_not_be_written_spoils_nothing(tmp_path: Path) -> None:
    (tmp_path / history.FOLDER).touch()
    kept = finish(tmp_path, save="x")
    assert kept.run is None
    assert kept.problems[0].startswith("the reports can't be saved: ")

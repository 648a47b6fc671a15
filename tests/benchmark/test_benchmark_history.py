"""Runs are saved by number and name, machine by machine, and found again."""

from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import cli
from pytest_tritonverify.benchmark import history, perf_file
from pytest_tritonverify.benchmark.history import History, HistoryError
from pytest_tritonverify.benchmark.measurement import PerfSettings
from pytest_tritonverify.discovery import Pair
from tests.support.measurements import ENVIRONMENT, SOURCES, case

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)


@pytest.fixture
def saved(tmp_path: Path) -> History:
    return History(tmp_path / history.FOLDER)


def report(latency: float = 1.0, op_name: str = "softmax", count: int = 1) -> dict[str, Any]:
    return perf_file.document(
        op_name,
        [case(k, 4.0, latency) for k in range(1, count + 1)],
        PerfSettings(),
        environment=ENVIRONMENT,
        sources=SOURCES,
    )


def test_numbers_go_up_machine_by_machine(saved: History) -> None:
    paths = [
        saved.begin(machine, name, NOW).path.relative_to(saved.folder).as_posix()
        for machine, name in (("a", "base"), ("a", None), ("b", "base"), ("a", "base"))
    ]
    assert paths == ["a/0001_base", "a/0002_20260102T030405Z", "b/0001_base", "a/0003_base"]
    assert [run.number for run in saved.runs("a")] == [1, 2, 3]
    assert len(saved.runs()) == 4


def test_the_zone_of_the_clock_does_not_matter(saved: History) -> None:
    there = NOW.astimezone(dt.timezone(dt.timedelta(hours=8)))
    assert saved.begin("a", None, there).name == "20260102T030405Z"


def test_runs_that_begin_together_are_apart(saved: History) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda k: saved.begin("a", f"run{k % 5}", NOW), range(24)))
    assert sorted(run.number for run in runs) == list(range(1, 25))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, "a/0003_base"),
        ("1", "a/0001_base"),
        ("0002", "a/0002_other"),
        ("base", "a/0003_base"),
        ("0001_base", "a/0001_base"),
        ("b/1", "b/0001_base"),
        ("b/base", "b/0001_base"),
    ],
)
def test_a_run_is_found_by_number_or_name(
    saved: History, wanted: str | None, expected: str
) -> None:
    for machine, name in (("a", "base"), ("a", "other"), ("a", "base"), ("b", "base")):
        saved.begin(machine, name, NOW)
    found = saved.find(wanted, "a").path.relative_to(saved.folder)
    assert found.as_posix() == expected


def test_what_is_not_there_is_told_with_what_is(saved: History) -> None:
    with pytest.raises(HistoryError, match=r"no saved run in .*there are: none.*--verify-save"):
        saved.find(None)
    saved.begin("a", "base", NOW)
    with pytest.raises(HistoryError, match=r"no saved run '7' in .*there are: 0001_base"):
        saved.find("7", "a")


def test_a_run_of_several_machines_must_be_named(saved: History) -> None:
    saved.begin("a", "base", NOW)
    saved.begin("b", "base", NOW)
    with pytest.raises(HistoryError, match="name one of a/base, b/base"):
        saved.find("base")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "7", "x" * 81, "é", "a\n"])
def test_what_can_be_no_name_is_refused(saved: History, name: str) -> None:
    with pytest.raises(HistoryError, match="can't be a run's name"):
        saved.begin("a", name, NOW)
    assert not saved.folder.exists()


def test_other_folders_are_no_runs(saved: History) -> None:
    for name in ("notes", "01_short", "x_0001"):
        (saved.folder / "a" / name).mkdir(parents=True)
    (saved.folder / "a" / "0007_file").touch()
    assert saved.runs() == []


@pytest.mark.parametrize(
    ("device", "machine"),
    [
        ({"npu_name": "Ascend910B4", "current_device": 0}, "npu-Ascend910B4"),
        ({"backend": "cuda", "name": "NVIDIA H200", "npu_name": None}, "cuda-NVIDIA-H200"),
        ({"backend": "cpu", "name": "AMD (Triton/interpreter)"}, "cpu-AMD-Triton-interpreter"),
        ({"backend": "cuda", "name": "../../x"}, "cuda-..-..-x"),
        ({"error": "x"}, "unknown"),
        (None, "unknown"),
    ],
)
def test_a_machine_is_called_by_its_device(device: Any, machine: str) -> None:
    assert history.machine_of({"device": device}) == machine


def test_a_pair_is_called_by_its_place(tmp_path: Path) -> None:
    def key(folder: Path) -> str:
        pair = Pair("gelu", "v2", folder / "gelu_torch.py", folder / "gelu_triton_v2.py")
        return history.key_of(pair, tmp_path / "root")

    assert key(tmp_path / "root") == "gelu_triton_v2"
    assert key(tmp_path / "root" / "ops" / "a") == "ops/a/gelu_triton_v2"
    outside, other = key(tmp_path / "elsewhere"), key(tmp_path / "root2")
    assert outside.startswith("_outside/")
    assert outside.endswith("/gelu_triton_v2")
    assert outside != other


def test_reports_are_found_by_their_places(saved: History) -> None:
    run = saved.begin("a", "base", NOW)
    run.save("ops/gelu_triton_v2", report())
    run.save("softmax_triton_ascend_impl", report())
    for name in ("verify_result.json", "softmax.json", ".perf_result.json.x", "perf_result_b.json"):
        (run.path / name).write_text("{}", "utf-8")
    assert list(history.reports_in(run.path)) == [
        "ops/gelu_triton_v2",
        "perf_result_b",
        "softmax_triton_ascend_impl",
    ]


# The command


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["compare", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    perf_file.write(tmp_path / "old.json", report(1.0))
    perf_file.write(tmp_path / "new.json", report(0.5))
    return tmp_path


@pytest.mark.usefixtures("here")
def test_two_files_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = command(capsys, "old.json", "new.json")
    assert (status, err) == (0, "")
    assert out.startswith("softmax: old.json -> new.json\n")
    assert "FASTER" in out
    status, out, _ = command(capsys, "old.json", "new.json", "--markdown")
    assert status == 0
    assert out.startswith("### softmax: old.json → new.json\n")


@pytest.mark.usefixtures("here")
def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, "old.json", "new.json", "--json")
    assert status == 0
    data = json.loads(out)
    assert data["problems"] == []
    [comparison] = data["comparisons"]
    assert comparison["speedup_vs_baseline"] == pytest.approx(2.0)
    assert comparison["verdict"] == "FASTER"


def test_reports_of_other_cases_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perf_file.write(here / "more.json", report(count=2))
    for option in ("--json", "--markdown"):
        status, out, err = command(capsys, "old.json", "more.json", option)
        assert status == 1
        assert "compare: the cases differ: only more.json has case 2" in err
        assert "speedup" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("old.json", "gone.json"), "there is no gone.json"),
        (("old.json", "./gone"), "there is no ./gone"),
        (("old.json", "base"), "there is no saved run 'base' in .verify_benchmarks"),
        (("old.json", "."), "not a report with a run"),
        (("bad.json", "old.json"), "bad.json is no benchmark report"),
        (("empty", "."), "no report is in both (0 in empty, 0 in .)"),
    ],
)
def test_what_can_not_be_compared_is_told_in_a_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], words: str
) -> None:
    (here / "bad.json").write_text("[]", "utf-8")
    (here / "empty").mkdir()
    status, _, err = command(capsys, *arguments)
    assert status == 1
    assert words in err
    assert len(err.splitlines()) == 1


def test_two_saved_runs_are_compared_pair_by_pair(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = History(here / history.FOLDER)
    for name, latency in (("base", 1.0), ("tuned", 0.5)):
        run = saved.begin("npu-Ascend910B4", name, NOW)
        run.save("a/softmax_triton_x", report(latency))
        run.save("a/gelu_triton_x", report(1.0, "gelu"))
    status, out, err = command(capsys, "1", "tuned")
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if not line.startswith(" ") and line] == [
        "gelu: 1 -> tuned",
        "softmax: 1 -> tuned",
    ]
    run.save("a/relu_triton_x", report(1.0, "relu"))
    status, _, err = command(capsys, "base", "tuned", "--json")
    assert status == 1
    assert err.startswith("compare: a/relu_triton_x is in ")

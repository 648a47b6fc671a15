"""Benchmarks under pytest and by the drop-in command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify import cli
from pytest_tritonverify.benchmark import perf_file
from tests.support.device import DEVICE
from tests.support.measurements import TOP_LEVEL
from tests.support.pairs import WRONG, WrittenPair, case_names, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Run, Runner

QUICK = ("--verify-bench-warmup=1", "--verify-bench-repeats=4")
# Right for the first values that it is given, and wrong for the others.
REMEMBERS = """\
if not hasattr(ModelNew, "first"):
    ModelNew.first = x.clone()
x = ModelNew.first
"""

METHOD = {"cpu": "cpu_wall_clock", "npu": "npu_profiler"}[DEVICE]


def bench_name(case: int) -> str:
    return f"benchmark{case}-float32-{case}x8"


def bench_names(cases: int) -> list[str]:
    return [bench_name(case) for case in range(1, cases + 1)]


def report(pair: WrittenPair, name: str = "perf_result.json") -> dict[str, Any]:
    content = pair.result(name)
    schema = json.loads(perf_file.SCHEMA_PATH.read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(content)
    return content


def measured(runner: Runner, *args: str | Path, plugins: tuple[str, ...] = ()) -> Run:
    return runner.run("--verify-dir=ops", *QUICK, *args, plugins=plugins)


def test_runs_verify_first_and_measure_then(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=2)

    run = measured(
        runner,
        "--benchmark",
        "--verify-save=base",
        "--verify-html=page.html",
        plugins=("pytest_benchmark.plugin",),
    )

    assert run.code == 0, run.out
    assert list(run.by_name) == [*case_names(2), *bench_names(2)]
    content = report(pair)
    assert content["environment"]["device"].get("backend", "npu") == DEVICE
    assert content["sources"] == pair.result()["sources"]
    assert list(content)[:15] == TOP_LEVEL
    assert (content["warmup"], content["repeats"], content["total_cases"]) == (1, 4, 2)
    for shape in content["per_shape_results"]:
        assert shape["implementation"]["method"] == METHOD
        assert shape["implementation"]["samples"]["count"] == 4
        expected = shape["framework"]["avg_latency_ms"] / shape["implementation"]["avg_latency_ms"]
        assert shape["speedup_vs_torch"] == pytest.approx(expected)
    assert "benchmark double (triton_ascend_impl): case 2 of 2: " in run.out
    assert "geometric mean over 2 of 2 cases" in run.out
    assert "report: ops/perf_result.json" in run.out
    assert not list(pair.folder.glob("*.journal.jsonl"))
    (saved,) = (runner.path / ".verify_benchmarks").glob(f"{DEVICE}-*/0001_base/ops/*.json")
    assert json.loads(saved.read_text()) == content

    # The files have all that the run's own page shows.
    assert (
        cli.main(["html", str(runner.path / "ops"), f"--output={runner.path / 'files.html'}"]) == 0
    )
    pages = [(runner.path / name).read_text("utf-8") for name in ("page.html", "files.html")]
    shown, again = (
        re.sub("in <bdi>.*|data-words=.*|<style>.*", "", page).splitlines() for page in pages
    )
    assert shown == again
    assert any(f'data-speedup="{content["speedup_vs_torch"]}"' in line for line in shown)

    # A later run goes by that verification, and compares with those times.
    only = ("--benchmark", "-m", "verify_benchmark")
    run = measured(runner, *only, "--verify-compare=base")
    assert run.code == 0, run.out
    assert list(run.by_name) == bench_names(2)
    assert report(pair)["gate"]["verify_json"] == "verify_result.json"
    assert "double: 0001_base -> this run" in run.out

    # It holds for that implementation alone.
    pair.implementation.write_text(pair.implementation.read_text() + "\n# changed\n")
    run = measured(runner, *only)
    assert run.code == 2
    assert "[L1 闸门] 拒绝执行 benchmark：验证结果已过期" in run.err
    assert "passed/total: 2/2" in run.err
    assert run.err.count("[L1 闸门]") == 1
    assert run.by_name == dict.fromkeys(bench_names(2), "failed")
    assert not (pair.folder / "perf_result.json").exists()


def test_what_fails_is_not_measured_and_exit_status_2_wins(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=2, at={2: WRONG})
    good = write_pair(runner.path / "ops", "good", cases=1)

    run = measured(runner, "--benchmark")

    assert run.code == 2
    file = "ops/double_triton_ascend_impl.py"
    assert run.outcomes[f"{file}::{bench_name(1)}"] == "failed"
    assert "passed/total: 1/2" in run.err
    assert "case_idx=2 AccuracyError" in run.err
    assert not (pair.folder / "double_perf_result.json").exists()
    assert report(good, "good_perf_result.json")["passed_cases"] == 1


def test_a_failed_shape_fails_its_item_and_not_the_command(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=2, at={2: REMEMBERS})

    run = measured(runner, "--benchmark")

    assert run.code == 1
    assert run.by_name[bench_name(1)] == "passed"
    assert run.by_name[bench_name(2)] == "failed"
    content = report(pair)
    assert (content["passed_cases"], content["failed_cases"]) == (1, 1)
    shape = content["per_shape_results"][1]
    assert (shape["status"], shape["error_type"]) == ("fail", "AccuracyError")
    assert shape["speedup_vs_torch"] is None
    first = content["per_shape_results"][0]
    assert content["speedup_vs_torch"] == pytest.approx(first["speedup_vs_torch"])

    ended = command(pair, "--repeats=4", "--warmup=1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1/2 组通过" in ended.stdout
    assert report(pair)["failed_cases"] == 1


def command(pair: WrittenPair, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["benchmark", "--op_name=double", f"--verify_dir={pair.folder}", *options]
    return subprocess.run(
        [sys.executable, "-m", "pytest_tritonverify", *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_command_refuses_what_is_not_verified(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=1)
    (pair.folder / "perf_result.json").write_text("{}")

    ended = command(pair)

    assert ended.returncode == 2
    assert "[L1 闸门] 拒绝执行 benchmark：文件不存在" in ended.stderr
    assert str(pair.folder / "verify_result.json") in ended.stderr
    assert not (pair.folder / "perf_result.json").exists()

    wanted = ("--verify_not_required", "--skip_framework", "--framework_latency_ms=2.5")
    ended = command(pair, *wanted, "--output=" + str(runner.path / "out.json"), "--repeats=3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    content = json.loads((runner.path / "out.json").read_text())
    assert content["framework"]["avg_latency_ms"] == 2.5
    assert content["repeats"] == 3


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    pair.task.unlink()
    ended = command(pair)
    assert ended.returncode == 1
    assert "benchmark: there is no" in ended.stderr


def test_xdist_and_random_order_measure_what_they_have_verified(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=2)

    plugins = ("xdist", "pytest_randomly")
    run = measured(runner, "--benchmark", "-n2", "--dist=loadfile", plugins=plugins)

    assert run.code == 0, run.out
    assert set(run.by_name) == {*case_names(2), *bench_names(2)}
    content = report(pair)
    assert content["passed_cases"] == 2
    assert [warning["code"] for warning in content["warnings"] if "pytest-xdist" in str(warning)]
    assert content["frequency"]["backend"] == DEVICE


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--verify-bench-repeats=0"], "is not between 1 and"),
        (["--verify-bench-warmup=few"], "'few' is no whole number"),
        (["--verify-framework-latency-ms=1"], "takes effect with --verify-skip-framework"),
        (["--verify-skip-framework", "--verify-framework-latency-ms=inf"], "is no number from 0"),
        (["--verify-freq-check-interval=0"], "no time between two readings"),
        (["--verify-save"], "takes effect with --benchmark"),
        (["--verify-compare=1"], "there is no saved run '1'"),
        (["--verify-in-process"], "can't be combined with --verify-in-process"),
    ],
)
def test_impossible_wishes_are_usage_errors(runner: Runner, arguments: list[str], why: str) -> None:
    write_pair(runner.path / "ops")
    wanted = () if "--verify-save" in arguments else ("--benchmark",)
    run = runner.run("--verify-dir=ops", *wanted, *arguments)
    assert run.code == 4
    assert why in run.err


def test_nothing_is_measured_unless_it_is_asked_for(runner: Runner) -> None:
    write_pair(runner.path / "ops", cases=1)
    listing = ("--collect-only", "-q", "-o", "verify_dirs=ops")
    run = runner.run(*listing)
    assert [name.partition("::")[2] for name in run.listed] == case_names(1)
    run = runner.run(*listing, "-o", "verify_benchmark=true")
    assert [name.partition("::")[2] for name in run.listed] == [*case_names(1), *bench_names(1)]

"""What people and other plugins are shown of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.support.pairs import RAISES, WRONG, case_name, case_names, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.pairs import WrittenPair
    from tests.support.runs import Run, Runner

FILE = "ops/double_triton_ascend_impl.py"
ANNOUNCES = "print('announced by the kernel')"
EVERY_REPORT = (
    "--junitxml=junit.xml",
    "--json-report",
    "--json-report-file=report.json",
    "--html=report.html",
    "--self-contained-html",
    "--cov=ops",
    "--cov-report=",
    "--durations=2",
    "--setup-show",
    "-ra",
)


def mixed(runner: Runner) -> WrittenPair:
    """Write a pair whose first case passes, whose second is wrong, whose third raises."""
    return write_pair(runner.path / "ops", at={2: WRONG, 3: f"{ANNOUNCES}; {RAISES}"})


def test_beside_every_plugin(runner: Runner) -> None:
    # All that are installed are on, pytest-randomly among them: the order is anyone's guess.
    pair = mixed(runner)
    run = runner.run("--verify-dir=ops", *EVERY_REPORT, plugins=None)
    assert run.code == 1
    assert "Using --randomly-seed=" in run.out

    result = pair.result()
    assert (result["total_cases"], result["passed_cases"]) == (3, 1)
    assert [case["name"] for case in result["cases"]] == case_names(3)
    assert error_types(result) == {2: "AccuracyError", 3: "ValueError"}

    check_terminal(run, pair)
    check_junit(runner, pair)
    check_json_report(runner)
    check_reportlog(run)
    page = (runner.path / "report.html").read_text()
    for part in (*case_names(3), "no such luck", "announced by the kernel"):
        assert part in page


def check_terminal(run: Run, pair: WrittenPair) -> None:
    lines = run.out.splitlines()
    assert f"{FILE}:{pair.line_of('raise ValueError')}: ValueError" in lines
    assert f"{FILE}:{pair.class_line}: AccuracyError" in lines
    assert f"FAILED {FILE}::{case_name(3)} - ValueError: no such luck" in lines
    assert f"FAILED {FILE}::{case_name(2)} - AccuracyError: output" in run.out
    assert "Traceback" not in run.out
    # Not a line of the plugin's own code is shown.
    assert not any("CaseFailure" in line or "nodes.py" in line for line in lines)
    assert "| announced by the kernel" in lines
    row = next(line for line in lines if line.startswith("double "))
    assert row.split()[:4] == ["double", "triton_ascend_impl", "3", "1"]
    assert row.endswith("failed: 1 AccuracyError, 1 ValueError")
    assert "result: ops/verify_result.json" in lines
    assert "slowest 2 durations" in run.out
    assert run.out.index("Triton verification") > run.out.index("FAILURES")


def check_junit(runner: Runner, pair: WrittenPair) -> None:
    suite = ET.parse(runner.path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    found = {entry.get("name"): entry for entry in suite.iter("testcase")}
    assert sorted(found, key=str) == case_names(3)
    for number, name in enumerate(case_names(3), 1):
        entry = found[name]
        assert entry.get("classname") == "ops.double_triton_ascend_impl"
        facts = {p.get("name"): p.get("value") for p in entry.iter("property")}
        assert facts["op"] == "double"
        assert facts["triton_impl_name"] == "triton_ascend_impl"
        assert facts["case_idx"] == str(number)
        failure = entry.find("failure")
        if number == 1:
            assert failure is None
            assert facts["golden_device"] == "cpu"
            assert facts["category"]
        elif number == 2:
            assert failure is not None
            assert facts["error_type"] == "AccuracyError"
            assert str(failure.get("message")).startswith("AccuracyError: output")
        else:
            assert failure is not None
            assert failure.get("message") == "ValueError: no such luck"
            assert f"{pair.implementation.name}:{pair.line_of('raise')} in forward" in str(
                failure.text
            )


def check_json_report(runner: Runner) -> None:
    report = json.loads((runner.path / "report.json").read_text())
    assert report["summary"] == {"passed": 1, "failed": 2, "total": 3, "collected": 3}
    outcomes = {test["nodeid"]: test["outcome"] for test in report["tests"]}
    assert outcomes == {
        f"{FILE}::{case_name(1)}": "passed",
        f"{FILE}::{case_name(2)}": "failed",
        f"{FILE}::{case_name(3)}": "failed",
    }
    section = report["tritonverify"]
    assert section["device"] == "cpu"
    (pair,) = section["pairs"]
    assert pair["op_name"] == "double"
    assert pair["triton_impl_name"] == "triton_ascend_impl"
    assert (pair["total_cases"], pair["passed_cases"]) == (3, 1)
    assert pair["result_file"] == str(runner.path / "ops" / "verify_result.json")
    assert [case["error_type"] for case in pair["cases"]] == [None, "AccuracyError", "ValueError"]


def check_reportlog(run: Run) -> None:
    for number, name in enumerate(case_names(3), 1):
        report = run.report(name)
        assert report["outcome"] == ("passed" if number == 1 else "failed")
        record = report["tritonverify"]["record"]
        assert (record["case_idx"], record["name"]) == (number, name)


@pytest.mark.parametrize(
    ("options", "shown", "hidden"),
    [
        pytest.param(
            ["-q", "--tb=line", "-s"],
            [
                f"{FILE}:{{raised}}: ValueError: no such luck",
                f"{FILE}:{{defined}}: AccuracyError: ",
            ],
            ["test session starts", "tritonverify: 1 pair"],
            id="-q line -s",
        ),
        pytest.param(
            ["-v", "--tb=short"],
            [
                f"{FILE}::{case_name(1)} PASSED",
                f"{FILE}::{case_name(2)} FAILED",
                "E   ValueError: no such luck",
                f"{FILE}:{{raised}}: ValueError",
            ],
            [],
            id="-v short",
        ),
        pytest.param(
            ["--tb=native", "--full-trace", "-rN"], ["CaseFailure: "], [], id="--full-trace"
        ),
    ],
)
def test_the_terminal_shows_what_is_asked_for(
    runner: Runner, options: list[str], shown: list[str], hidden: list[str]
) -> None:
    pair = mixed(runner)
    run = runner.run("--verify-dir=ops", *options)
    lines = {"raised": pair.line_of("raise ValueError"), "defined": pair.class_line}
    assert run.code == 1
    for text in shown:
        assert text.format(**lines) in run.out
    for text in hidden:
        assert text not in run.out
    assert "Triton verification" in run.out


def test_without_the_plugins_that_usually_help(runner: Runner) -> None:
    pair = mixed(runner)
    absent = ("terminal", "cacheprovider", "timeout", "json_report", "junitxml", "setuponly")
    blocked = [part for name in absent for part in ("-p", f"no:{name}")]
    run = runner.run("--verify-dir=ops", *blocked)
    assert run.code == 1
    assert run.out == ""
    assert pair.result()["passed_cases"] == 1
    assert not (runner.path / ".pytest_cache").exists()

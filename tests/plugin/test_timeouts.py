"""Cases that hang: pytest-timeout bounds an item, --verify-timeout a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pairs import HANGS, case_name, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

# Limits are short for the case that hangs alone: how long the others take is the machine's
# affair.
MARKING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("case2"):
            item.add_marker(pytest.mark.timeout(2))
"""


def test_a_marker_bounds_one_case_and_later_ones_run(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: f"print('now'); {HANGS}"})
    (runner.path / "conftest.py").write_text(MARKING)

    run = runner.run(
        "--verify-dir=ops", "--timeout=500", "--junitxml=junit.xml", plugins=("timeout",)
    )

    assert run.by_name == {
        case_name(1): "passed",
        case_name(2): "failed",
        case_name(3): "passed",
    }
    assert run.code == 1
    result = pair.result()
    assert error_types(result) == {2: "VerifyTimeout"}
    assert "验证超时（2秒）" in result["failures"][0]["error_msg"]
    assert result["cases"][1]["phase"] == "forward"
    assert "now" in result["cases"][1]["output"]
    # The Python stack of the hang names the user's line.
    assert f"line {pair.line_of('time.sleep')} in forward" in result["failures"][0]["error_msg"]
    assert "验证超时: double (triton_ascend_impl)" in run.out
    assert 'tests="3"' in (runner.path / "junit.xml").read_text()


def test_the_option_of_pytest_timeout_bounds_a_case(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: HANGS})
    arguments = ("--verify-dir=ops", "-k", "case2", "--timeout=3", "--tb=line")
    run = runner.run(*arguments, plugins=("timeout",))
    assert run.by_name == {case_name(2): "failed"}
    assert "VerifyTimeout: 验证超时（3秒）" in run.out
    assert run.code == 1
    assert not list(pair.folder.glob("*.json*"))


def test_the_limit_of_a_pair_keeps_its_later_cases_from_running(runner: Runner) -> None:
    slow = write_pair(runner.path / "ops" / "a", at={1: HANGS}, cases=3)
    quick = write_pair(runner.path / "ops" / "b", cases=1)
    (runner.path / "pytest.ini").write_text("[pytest]\nverify_timeout = 500\n")

    # The command line wins over the ini file. A pair that is quick needs no more than this.
    run = runner.run("--verify-dir=ops", "--verify-timeout=6")

    assert run.code == 1
    result = slow.result()
    assert (result["total_cases"], result["passed_cases"]) == (3, 0)
    assert error_types(result) == {1: "VerifyTimeout", 2: "NotRun", 3: "NotRun"}
    assert "验证超时（6秒）" in result["failures"][0]["error_msg"]
    assert "case 1 used up the 6 s" in result["failures"][1]["error_msg"]
    assert "验证超时: ops/a/double (triton_ascend_impl)" in run.out
    assert quick.result()["passed_cases"] == 1

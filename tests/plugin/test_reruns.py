"""pytest-rerunfailures: a pass on a second try is no pass."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.support.pairs import WRONG, case_name, error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner

# Right from the second time on, also in another process.
FIRST_TIME_ONLY = """
tried = os.path.join(os.path.dirname(__file__), 'tried')
if not os.path.exists(tried):
    open(tried, 'w').close()
    factor = 3.0
"""


def test_a_pass_on_a_rerun_is_flaky_and_not_green(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={2: FIRST_TIME_ONLY, 3: WRONG})

    run = runner.run(
        "--verify-dir=ops", "--reruns=1", "--junitxml=j.xml", plugins=("rerunfailures",)
    )

    assert run.by_name == {
        case_name(1): "passed",
        case_name(2): "passed",
        case_name(3): "failed",
    }
    assert run.code == 1
    assert "1 failed, 2 passed, 2 rerun" in run.out
    assert "failed: 1 AccuracyError, 1 FlakyCase" in run.out
    result = pair.result()
    assert (result["total_cases"], result["passed_cases"], result["failed_cases"]) == (3, 1, 2)
    assert error_types(result) == {2: "FlakyCase", 3: "AccuracyError"}
    assert [case["flaky"] for case in result["cases"]] == [False, True, False]
    assert "passed when it was run again" in result["failures"][0]["error_msg"]
    # Properties are of one try each, not of all tries in a row.
    tries = list(ET.parse(runner.path / "j.xml").getroot().iter("testcase"))  # noqa: S314 - ours
    assert len(tries) == 5
    for entry in tries:
        names = [str(found.get("name")) for found in entry.iter("property")]
        assert sorted(set(names)) == sorted(names)


def test_flakiness_alone_is_exit_code_1(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={1: FIRST_TIME_ONLY}, cases=1)
    run = runner.run("--verify-dir=ops", "--reruns=2", plugins=("rerunfailures",))
    assert run.by_name == {case_name(1): "passed"}
    assert run.code == 1
    assert pair.result()["passed_cases"] == 0

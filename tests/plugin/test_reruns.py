"""pytest-rerunfailures: a pass on a second try is no pass."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.support.pairs import WRONG, case_names, error_types, write_pair

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
    pair = write_pair(runner.path / "ops", at={2: FIRST_TIME_ONLY})
    # It leaves a note beside itself, which is kept from it otherwise.
    arguments = ("--verify-dir=ops", "--verify-isolation=off", "--reruns=2", "--junitxml=j.xml")

    run = runner.run(*arguments, plugins=("rerunfailures",))

    # Every item has passed in the end, and yet the run has not.
    assert run.by_name == dict.fromkeys(case_names(3), "passed")
    assert "3 passed, 1 rerun" in run.out
    assert "failed: 1 FlakyCase" in run.out
    assert run.code == 1
    result = pair.result()
    assert (result["total_cases"], result["passed_cases"], result["failed_cases"]) == (3, 2, 1)
    assert error_types(result) == {2: "FlakyCase"}
    assert "passed when it was run again" in result["failures"][0]["error_msg"]
    assert [case["flaky"] for case in result["cases"]] == [False, True, False]
    # Properties are of one try each, not of all tries in a row.
    tries = list(ET.parse(runner.path / "j.xml").getroot().iter("testcase"))
    assert len(tries) == 4
    for entry in tries:
        names = [str(found.get("name")) for found in entry.iter("property")]
        assert sorted(set(names)) == sorted(names)


def test_a_failure_on_every_try_stays_what_it_is(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", at={1: WRONG}, cases=1)
    run = runner.run("--verify-dir=ops", "--reruns=1", "-n1", plugins=("xdist", "rerunfailures"))
    assert "1 failed, 1 rerun" in run.out
    assert run.code == 1
    assert error_types(pair.result()) == {1: "AccuracyError"}

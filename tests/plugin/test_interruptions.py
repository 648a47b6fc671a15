"""Runs that end before their time: what stays on disk, and that no process does."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pairs import HANGS, case_name, error_types, write_pair
from tests.support.runs import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Run, Runner

JOURNAL = "verify_result.journal.jsonl"


def journal(folder: Path) -> list[dict[str, Any]]:
    path = folder / JOURNAL
    lines = path.read_text().splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def signalled_in_case_2(runner: Runner, sent: signal.Signals) -> Run:
    """Run a pair whose second case hangs, and signal pytest while it does.

    The hanging implementation has a child of its own, in a session of its own.
    """
    stray = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    pair = write_pair(runner.path / "ops", cases=4, at={2: f"{stray}\n{HANGS}"})
    (pair.folder / "verify_result.json").write_text("{}")
    (runner.path / "page.html").write_text("of an earlier run")
    process = runner.start("--verify-dir=ops", "--verify-html=page.html")

    def hanging() -> bool:
        return any("sleep 600" in line for line in runner.survivors())

    try:
        wait_until(hanging, "case 2 does not begin", lambda: journal(pair.folder))
    except BaseException:
        process.kill()
        raise
    return runner.finish(process, sent)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP])
def test_what_asks_it_to_end_counts_the_rest_as_failed(
    runner: Runner, sent: signal.Signals
) -> None:
    run = signalled_in_case_2(runner, sent)
    folder = runner.path / "ops"
    assert run.code == 2
    result = json.loads((folder / "verify_result.json").read_text())
    assert (result["total_cases"], result["passed_cases"]) == (4, 1)
    assert error_types(result) == dict.fromkeys((2, 3, 4), "NotRun")
    assert result["failures"][0]["error_msg"] == "NotRun: the run was interrupted"
    assert "3 NotRun" in run.out
    assert "page: page.html" in run.out
    page = (runner.path / "page.html").read_text("utf-8")
    assert "1/4<" in page
    assert page.count("the run was interrupted") == 3
    assert not (folder / JOURNAL).exists()


def test_a_killed_judge_leaves_its_journal_and_no_process(runner: Runner) -> None:
    run = signalled_in_case_2(runner, signal.SIGKILL)
    folder = runner.path / "ops"
    assert run.code == -signal.SIGKILL
    assert not (folder / "verify_result.json").exists()
    assert not (runner.path / "page.html").exists()
    entries = journal(folder)
    assert [(entry["event"], entry.get("case_idx")) for entry in entries] == [
        ("run", None),
        ("started", 1),
        ("finished", 1),
        ("started", 2),
    ]
    assert entries[0]["total_cases"] == 4
    assert entries[2]["status"] == "passed"
    assert entries[3]["name"] == case_name(2)

    # The next run is not disturbed by what the killed one left.
    write_pair(folder, cases=2)
    again = runner.run("--verify-dir=ops")
    assert again.code == 0
    assert not (folder / JOURNAL).exists()


def test_while_it_collects_it_ends_at_once_and_touches_nothing(runner: Runner) -> None:
    slow, other = runner.path / "ops" / "a", runner.path / "ops" / "b"
    for folder in (slow, other):
        write_pair(folder, cases=1)
        (folder / "verify_result.json").write_text("of an earlier run")
    task = next(slow.glob("*_torch.py"))
    begun = "import pathlib, time; (pathlib.Path(__file__).parent / 'begun').touch(); "
    task.write_text(f"{begun}time.sleep(600)\n{task.read_text()}")
    process = runner.start("--verify-dir=ops")
    wait_until((slow / "begun").exists, "it does not begin to list cases", lambda: "")
    run = runner.finish(process, signal.SIGTERM)
    assert run.code == 2
    assert "the run was ended by SIGTERM" in run.out
    assert "ERROR" not in run.out
    for folder in (slow, other):
        assert (folder / "verify_result.json").read_text() == "of an earlier run"
    runner.expect_no_survivors()

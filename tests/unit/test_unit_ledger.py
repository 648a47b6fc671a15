"""The ledger keeps what a run found out, and the journal what a killed run had found out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify import plain_files
from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.results import result_file
from pytest_tritonverify.results.journal import Journal
from pytest_tritonverify.results.ledger import Ledger
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json.loads(result_file.SCHEMA_PATH.read_text(encoding="utf-8"))
ENVIRONMENT = {"torch": {"version": "2.1.0"}}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    folder = tmp_path / "ops"
    folder.mkdir()
    for name in ("a_torch.py", "a_triton_v2.py", "a_torch.json"):
        (folder / name).write_text(name, encoding="utf-8")
    return Pair("a", "v2", folder / "a_torch.py", folder / "a_triton_v2.py")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(None, {"non_compute": False})


ENTRIES = [CaseEntry(f"case{k}-float32-{k}", "float32", [k]) for k in (1, 2, 3)]


def record(case_idx: int, status: str = PASSED, **facts: Any) -> CaseRecord:
    name = ENTRIES[case_idx - 1].name
    data = {"case_idx": case_idx, "name": name, "status": status, **facts}
    return CaseRecord.from_json(data)


def result(pair: Pair) -> dict[str, Any]:
    path = pair.implementation.with_name("verify_result_v2.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(content, SCHEMA)
    return content


def counts(content: dict[str, Any]) -> tuple[int, int, int]:
    total, passed, failed = (content[f"{name}_cases"] for name in ("total", "passed", "failed"))
    return total, passed, failed


def files(pair: Pair) -> set[str]:
    return {path.name for path in pair.implementation.parent.iterdir() if "_v2." in path.name}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Full runs


def test_a_full_run_writes_the_result_when_the_last_case_is_in(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [3, 1, 2])
    for case_idx in (2, 3):
        ledger.add(pair, record(case_idx), ENVIRONMENT if case_idx == 2 else None)
        assert files(pair) == {"a_triton_v2.py", "verify_result_v2.journal.jsonl"}
    ledger.add(pair, record(1, FAILED, error_type="ValueError", error_msg="no"), None)

    assert files(pair) == {"a_triton_v2.py", "verify_result_v2.json"}
    content = result(pair)
    assert counts(content) == (3, 2, 1)
    assert [case["case_idx"] for case in content["cases"]] == [1, 2, 3]
    assert content["environment"] == {
        **ENVIRONMENT,
        "cmdline": {"triton_impl_name": "triton_v2", "non_compute": False},
    }
    assert content["sources"] == {
        "task": plain_files.digest(pair.task),
        "data": plain_files.digest(pair.task.with_suffix(".json")),
        "implementation": plain_files.digest(pair.implementation),
    }
    account = ledger.account(pair)
    assert (account.complete, account.green) == (True, False)
    assert account.written == plain_files.digest(account.path)


def test_a_full_run_removes_old_results_first(ledger: Ledger, pair: Pair) -> None:
    folder = pair.implementation.parent
    others = ["verify_result.json", "verify_result_v3.json", "perf_result.json"]
    for name in ("verify_result_v2.json", "perf_result_v2.json", *others):
        (folder / name).write_text("old", encoding="utf-8")

    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])

    assert files(pair) == {"a_triton_v2.py", "verify_result_v2.journal.jsonl"}
    assert all((folder / name).is_file() for name in others)


def test_a_run_of_some_cases_leaves_files_alone(ledger: Ledger, pair: Pair) -> None:
    old = pair.implementation.with_name("verify_result_v2.json")
    old.write_text("old", encoding="utf-8")

    ledger.expect(pair, ENTRIES, 3, [2])
    ledger.start(pair, 2, ENTRIES[1].name)
    ledger.add(pair, record(2), ENVIRONMENT)
    ledger.finish("the run ended")

    assert files(pair) == {"a_triton_v2.py", "verify_result_v2.json"}
    assert old.read_text(encoding="utf-8") == "old"
    account = ledger.account(pair)
    assert (account.full, account.green, account.written) == (False, True, None)


def test_only_the_first_announcement_counts(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    ledger.expect(pair, (), 3, [1])
    assert ledger.account(pair).selected == (1, 2, 3)
    assert ledger.account(pair).entries == ENTRIES


def test_what_did_not_run_counts_as_failed(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    ledger.add(pair, record(1), ENVIRONMENT)
    ledger.finish("the run was interrupted")

    content = result(pair)
    assert counts(content) == (3, 1, 2)
    assert [(f["case_idx"], f["error_type"], f["error_msg"]) for f in content["failures"]] == [
        (2, "NotRun", "NotRun: the run was interrupted"),
        (3, "NotRun", "NotRun: the run was interrupted"),
    ]
    assert content["failures"][1]["input_desc"] == [3]
    assert "verify_result_v2.journal.jsonl" not in files(pair)
    assert not ledger.account(pair).green


def test_without_a_listing_cases_that_did_not_run_still_have_names(
    ledger: Ledger, pair: Pair
) -> None:
    ledger.expect(pair, (), 2, [1, 2])
    ledger.finish("the run ended before it")
    content = result(pair)
    assert [case["name"] for case in content["cases"]] == ["case1", "case2"]
    assert content["environment"]["error"].startswith("not gathered")


def test_a_result_that_somebody_removed_is_written_again(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    for case_idx in (1, 2, 3):
        ledger.add(pair, record(case_idx), ENVIRONMENT)
    path = pair.implementation.with_name("verify_result_v2.json")
    path.unlink()
    ledger.finish("the run ended before it")
    assert counts(result(pair)) == (3, 3, 0)


@pytest.mark.parametrize(
    ("outcomes", "passed", "error_type"),
    [
        ([FAILED, PASSED], 0, "FlakyCase"),
        ([FAILED, PASSED, PASSED], 0, "FlakyCase"),
        ([FAILED, PASSED, FAILED], 0, "ValueError"),
        ([FAILED, FAILED], 0, "ValueError"),
        ([PASSED, FAILED], 0, "ValueError"),
        ([PASSED, PASSED], 1, None),
        ([PASSED, FAILED, PASSED], 0, "FlakyCase"),
    ],
)
def test_reruns(
    ledger: Ledger, pair: Pair, outcomes: list[str], passed: int, error_type: str | None
) -> None:
    ledger.expect(pair, ENTRIES[:1], 1, [1])
    for number, status in enumerate(outcomes):
        failure = {"error_type": "ValueError", "error_msg": f"in run {number}"}
        ledger.add(pair, record(1, status, **(failure if status == FAILED else {})), ENVIRONMENT)

    content = result(pair)
    assert counts(content) == (1, passed, 1 - passed)
    assert [f["error_type"] for f in content["failures"]] == [error_type] * (1 - passed)
    assert ledger.account(pair).green is bool(passed)
    if error_type == "FlakyCase":
        assert f"in run {outcomes.index(FAILED)}" in content["failures"][0]["error_msg"]


# Pairs without cases


def test_a_pair_that_cannot_be_listed(ledger: Ledger, pair: Pair) -> None:
    (pair.implementation.with_name("perf_result_v2.json")).touch()
    ledger.add_load_failure(pair, "SyntaxError", "SyntaxError: invalid syntax", ENVIRONMENT)

    content = result(pair)
    assert counts(content) == (1, 0, 1)
    assert content["failures"] == [
        {
            "case_idx": 1,
            "input_desc": [],
            "error_type": "SyntaxError",
            "error_msg": "SyntaxError: invalid syntax",
        }
    ]
    assert content["environment"]["torch"] == {"version": "2.1.0"}
    assert "perf_result_v2.json" not in files(pair)
    assert ledger.account(pair).complete
    assert not ledger.account(pair).green


def test_a_task_without_cases_is_not_green(ledger: Ledger, pair: Pair) -> None:
    ledger.add_empty(pair, ENVIRONMENT)
    assert counts(result(pair)) == (0, 0, 0)
    assert not ledger.account(pair).green


def test_the_overview_tells_what_was_found(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [2])
    ledger.add(pair, record(2), ENVIRONMENT)
    overview = ledger.account(pair).overview()
    assert overview["op_name"] == "a"
    assert overview["triton_impl_name"] == "triton_v2"
    assert (overview["total_cases"], overview["passed_cases"]) == (3, 1)
    assert overview["result_file"] is None
    assert [case["case_idx"] for case in overview["cases"]] == [2]
    json.dumps(overview)


# Where files go


def test_the_output_replaces_the_place_beside_the_pair(pair: Pair, tmp_path: Path) -> None:
    default = pair.implementation.with_name("verify_result_v2.json")
    default.write_text("old", encoding="utf-8")
    ledger = Ledger(tmp_path / "new" / "deep" / "r.json", {"non_compute": True})

    ledger.expect(pair, ENTRIES[:1], 1, [1])
    assert (tmp_path / "new" / "deep" / "r.journal.jsonl").is_file()
    ledger.add(pair, record(1), ENVIRONMENT)

    content = json.loads((tmp_path / "new" / "deep" / "r.json").read_text(encoding="utf-8"))
    assert content["environment"]["cmdline"]["non_compute"] is True
    # An old verdict must not be taken for the new one.
    assert not default.exists()
    assert list((tmp_path / "new" / "deep").iterdir()) == [tmp_path / "new" / "deep" / "r.json"]


def test_operators_of_a_shared_folder_have_files_of_their_own(pair: Pair, ledger: Ledger) -> None:
    folder = pair.implementation.parent
    for name in ("b_torch.py", "b_triton_v2.py"):
        (folder / name).touch()
    other = Pair("b", "v2", folder / "b_torch.py", folder / "b_triton_v2.py")
    for one in (pair, other):
        ledger.expect(one, ENTRIES[:1], 1, [1])
        ledger.add(one, record(1), ENVIRONMENT)
    results = sorted(path.name for path in folder.glob("*.json"))
    assert results == ["a_torch.json", "a_verify_result_v2.json", "b_verify_result_v2.json"]


def test_a_folder_that_cannot_be_written_is_a_problem_to_tell(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ledger = Ledger(tmp_path / "file" / "r.json", {})

    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    ledger.start(pair, 1, ENTRIES[0].name)
    for case_idx in (1, 2, 3):
        ledger.add(pair, record(case_idx), ENVIRONMENT)
    ledger.finish("the run ended before it")

    account = ledger.account(pair)
    assert not account.written
    assert account.problem == f"{tmp_path / 'file' / 'r.json'} can't be written: Not a directory"
    assert account.journal is not None
    assert str(tmp_path / "file") in (account.journal.problem or "")


def test_folders_in_the_way_are_problems_to_tell(ledger: Ledger, pair: Pair) -> None:
    folder = pair.implementation.parent
    (folder / "verify_result_v2.json" / "x").mkdir(parents=True)
    ledger.expect(pair, ENTRIES[:1], 1, [1])
    assert "verify_result_v2.json can't be removed" in (ledger.account(pair).problem or "")

    ledger.add(pair, record(1), ENVIRONMENT)

    assert not ledger.account(pair).written
    assert "can't be written" in (ledger.account(pair).problem or "")


def test_a_candidate_cannot_stop_the_run_by_way_of_the_journal(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES[:1], 1, [1])
    journal = pair.implementation.with_name("verify_result_v2.journal.jsonl")
    journal.unlink()
    journal.mkdir()

    ledger.start(pair, 1, ENTRIES[0].name)
    ledger.add(pair, record(1), ENVIRONMENT)

    assert counts(result(pair)) == (1, 1, 0)
    assert "the journal" in (ledger.account(pair).problem or "")


# Sources


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a_torch.py", "a_torch.py changed"),
        ("a_triton_v2.py", "a_triton_v2.py changed"),
        ("a_torch.json", "the data of a_torch.py changed"),
    ],
)
def test_a_file_that_changes_while_it_is_judged_fails_all_cases(
    ledger: Ledger, pair: Pair, name: str, said: str
) -> None:
    ledger.expect(pair, ENTRIES[:1], 1, [1])
    before = result_file.sources_of(pair)
    pair.task.with_name(name).write_text("changed", encoding="utf-8")
    ledger.add(pair, record(1), None)
    content = result(pair)
    assert counts(content) == (1, 0, 1)
    (failure,) = content["failures"]
    assert failure["error_type"] == "SourceChanged"
    assert f"{said} while the run lasted" in failure["error_msg"]
    assert content["sources"] == before
    assert content["cases"][0]["status"] == "passed"
    assert not ledger.account(pair).green


def test_a_file_that_changes_once_its_pair_is_through_changes_no_verdict(
    ledger: Ledger, pair: Pair
) -> None:
    ledger.expect(pair, ENTRIES[:1], 1, [1])
    before = result_file.sources_of(pair)
    ledger.add(pair, record(1), None)
    pair.implementation.write_text("the next one", encoding="utf-8")
    ledger.finish("it ended")
    assert counts(result(pair)) == (1, 1, 0)
    # Whoever compares digests sees that the result is another file's.
    assert result(pair)["sources"] == before


# The journal


def test_the_journal_holds_what_was_finished_and_what_was_running(
    ledger: Ledger, pair: Pair
) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    path = pair.implementation.with_name("verify_result_v2.journal.jsonl")
    assert lines(path) == [
        {"event": "run", "op_name": "a", "triton_impl_name": "triton_v2", "total_cases": 3}
    ]

    ledger.start(pair, 2, ENTRIES[1].name)
    ledger.add(pair, record(2, metrics={"MERE": float("nan")}, output="\udcff"), ENVIRONMENT)
    ledger.start(pair, 1, ENTRIES[0].name)

    started, finished, running = lines(path)[1:]
    assert started == {"event": "started", "case_idx": 2, "name": "case2-float32-2"}
    assert finished["event"] == "finished"
    assert finished["metrics"] == {"MERE": None}
    rebuilt = CaseRecord.from_json({k: v for k, v in finished.items() if k != "event"})
    assert rebuilt == record(2, metrics={"MERE": None}, output="\\udcff")
    assert running == {"event": "started", "case_idx": 1, "name": "case1-float32-1"}


def test_a_journal_of_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text("old\n", encoding="utf-8")
    journal = Journal(path, "算子", "triton_x", 1)
    assert [line["op_name"] for line in lines(path)] == ["算子"]
    journal.remove()
    assert not path.exists()
    journal.remove()


def test_without_a_journal_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "j.jsonl"
    journal = Journal(path, "a", "triton_x", 1)
    journal.started(1, "case1")
    journal.finished(record(1))
    assert journal.problem == f"Not a directory: {path}"


def test_a_result_that_somebody_changed_is_written_again(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    for case_idx in (1, 2, 3):
        ledger.add(pair, record(case_idx), ENVIRONMENT)
    account = ledger.account(pair)
    written = account.path.read_text(encoding="utf-8")
    account.path.write_text('{"total_cases": 3, "passed_cases": 3}', encoding="utf-8")

    ledger.finish("the run ended")

    assert account.path.read_text(encoding="utf-8") == written
    assert "was changed by another process" in (account.problem or "")


def test_a_result_that_could_not_be_written_is_not_green(ledger: Ledger, pair: Pair) -> None:
    ledger.expect(pair, ENTRIES, 3, [1, 2, 3])
    account = ledger.account(pair)
    account.path.mkdir()
    for case_idx in (1, 2, 3):
        ledger.add(pair, record(case_idx), ENVIRONMENT)
    assert not account.green

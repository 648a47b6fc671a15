"""Checks of an implementation's code count for all cases of its pair: a fake passes none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.results import result_file
from pytest_tritonverify.results.ledger import Ledger
from pytest_tritonverify.results.records import PASSED, CaseRecord, CheckRecord, fallback_message

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.results.ledger import PairAccount

SCHEMA = json.loads(result_file.SCHEMA_PATH.read_text(encoding="utf-8"))
POLICIES = {"degeneration": "strict", "execution": "fail"}
BOTH = ["degeneration", "execution"]
TEXT = fallback_message(3, "forward computes with torch.matmul\n  line 7: torch.matmul")


def check(name: str, status: str = "passed", **facts: Any) -> CheckRecord:
    return CheckRecord.from_json({"name": name, "status": status, **facts})


FAKE = check(
    "execution", "failed", regression_type=3, error_type="PyTorchFallback", message=TEXT, line=7
)


class Book:
    """A ledger with one pair of two cases."""

    def __init__(self, folder: Path) -> None:
        self.pair = Pair("a", "x", folder / "a_torch.py", folder / "a_triton_x.py")
        for path in (self.pair.task, self.pair.implementation):
            path.touch()
        self.ledger = Ledger(None, {"non_compute": False}, POLICIES)
        self.entries = [CaseEntry(f"case{k}-float32-{k}", "float32", [k]) for k in (1, 2)]

    @property
    def account(self) -> PairAccount:
        return self.ledger.account(self.pair)

    def expect(self, selected: list[int], checks: list[str]) -> None:
        self.ledger.expect(self.pair, self.entries, 2, selected, checks)

    def case(self, case_idx: int) -> None:
        name = self.entries[case_idx - 1].name
        record = CaseRecord(case_idx=case_idx, name=name, status=PASSED)
        self.ledger.add(self.pair, record, None)

    def check(self, record: CheckRecord) -> None:
        self.ledger.add_check(self.pair, record, None)

    def result(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.account.path.read_text(encoding="utf-8"))
        jsonschema.validate(content, SCHEMA)
        return content


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_a_result_is_complete_with_its_checks(book: Book) -> None:
    book.expect([1, 2], BOTH)
    book.check(check("degeneration", report={"valid": True}))
    book.case(1)
    book.case(2)
    assert not book.account.path.exists()
    assert not book.account.green

    book.check(check("execution"))

    assert book.account.green
    content = book.result()
    assert content["passed_cases"] == 2
    assert content["degeneration"] == {
        "degeneration": {
            "policy": "strict",
            "status": "passed",
            "message": None,
            "report": {"valid": True},
        },
        "execution": {"policy": "fail", "status": "passed", "message": None, "report": None},
    }


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_fake_passes_no_case_whatever_its_outputs(book: Book, order: str) -> None:
    book.expect([1, 2], BOTH)
    book.check(check("degeneration"))
    if order == "before":
        book.check(FAKE)
    book.case(1)
    book.case(2)
    if order == "after":
        book.check(FAKE)

    content = book.result()
    assert [content[f"{name}_cases"] for name in ("total", "passed", "failed")] == [2, 0, 2]
    assert [f["case_idx"] for f in content["failures"]] == [1, 2]
    assert {f["error_type"] for f in content["failures"]} == {"PyTorchFallback"}
    assert all(f["error_msg"].startswith("A-PyTorchFallback-Type3: ") for f in content["failures"])
    # What the comparators said stays on record.
    assert [case["status"] for case in content["cases"]] == ["passed", "passed"]
    assert (book.account.passed_cases, book.account.green) == (0, False)


def test_a_finding_that_is_only_reported_fails_nothing(book: Book) -> None:
    book.expect([1, 2], [])
    book.check(check("degeneration", "warned", message=TEXT, error_type="PyTorchFallback"))
    book.case(1)
    book.case(2)

    assert book.account.green
    section = book.result()["degeneration"]["degeneration"]
    assert (section["status"], section["message"]) == ("warned", TEXT)


def test_a_check_that_did_not_run_lets_nothing_pass(book: Book) -> None:
    book.expect([1, 2], BOTH)
    book.check(check("degeneration"))
    book.case(1)
    book.case(2)

    book.ledger.finish("the run was interrupted")

    content = book.result()
    assert content["passed_cases"] == 0
    assert {f["error_type"] for f in content["failures"]} == {"NotRun"}
    assert "execution" in content["failures"][0]["error_msg"]
    assert "interrupted" in content["failures"][0]["error_msg"]
    assert not book.account.green


def test_a_check_that_did_not_run_takes_nothing_from_a_pair_that_failed_anyway(book: Book) -> None:
    book.expect([1, 2], ["execution"])
    book.case(1)

    book.ledger.finish("the run was interrupted")

    content = book.result()
    assert content["passed_cases"] == 1
    assert [failure["case_idx"] for failure in content["failures"]] == [2]
    assert not book.account.green


def test_a_run_of_checks_alone_can_be_green_and_writes_nothing(book: Book) -> None:
    book.expect([], ["degeneration"])
    assert not book.account.green
    book.check(check("degeneration"))
    assert book.account.green
    assert not book.account.path.exists()


def test_a_check_that_failed_once_stays_failed_when_it_is_run_again(book: Book) -> None:
    book.expect([1], BOTH)
    book.check(FAKE)
    book.check(check("execution"))
    assert book.account.objection == FAKE


def test_a_check_survives_the_way_between_processes() -> None:
    assert CheckRecord.from_json(json.loads(json.dumps(FAKE.to_json()))) == FAKE


def test_the_documented_message_needs_a_type() -> None:
    assert fallback_message(None, "it can't be read") == "it can't be read"

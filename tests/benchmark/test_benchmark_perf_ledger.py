"""What the ledger of measurements keeps, and when it writes it down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.benchmark.frequency_report import FrequencyReport
from pytest_tritonverify.benchmark.measurement import PerfSettings
from pytest_tritonverify.benchmark.perf_ledger import PerfLedger
from pytest_tritonverify.discovery import Pair
from tests.support.measurements import case
from tests.support.pairs import write_pair

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {1: "benchmark1-float32-1x8", 2: "benchmark2-float32-2x8"}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    written = write_pair(tmp_path / "ops", cases=2)
    return Pair("double", "ascend_impl", written.task, written.implementation)


def ledger_of(pair: Pair, names: dict[int, str] = NAMES, output: Path | None = None) -> PerfLedger:
    ledger = PerfLedger(output, PerfSettings())
    ledger.expect(pair, 2, names)
    return ledger


def add(ledger: PerfLedger, pair: Pair, case_idx: int, **facts: Any) -> None:
    ledger.add(pair, case(case_idx, **facts), {"required": True}, {"device": {}}, ())


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_a_report_is_written_as_soon_as_it_is_complete(pair: Pair) -> None:
    path = pair.task.with_name("perf_result.json")
    path.write_text("of an earlier run")
    ledger = ledger_of(pair)
    assert not path.exists()
    add(ledger, pair, 1)
    assert not path.exists()
    journal = path.with_name("perf_result.journal.jsonl")
    assert json.loads(journal.read_text().splitlines()[1])["case_idx"] == 1
    add(ledger, pair, 2)
    assert read(path)["passed_cases"] == 2
    assert not journal.exists()
    assert ledger.accounts[pair.implementation].green


def test_what_did_not_run_has_failed(pair: Pair) -> None:
    ledger = ledger_of(pair)
    add(ledger, pair, 2)
    ledger.finish("the run was interrupted")
    content = read(pair.task.with_name("perf_result.json"))
    assert [shape["status"] for shape in content["per_shape_results"]] == ["fail", "pass"]
    assert content["per_shape_results"][0]["error_msg"] == "NotRun: the run was interrupted"
    assert not ledger.accounts[pair.implementation].green


def test_a_part_of_the_cases_leaves_the_report_alone(pair: Pair) -> None:
    path = pair.task.with_name("perf_result.json")
    path.write_text("of an earlier run")
    ledger = ledger_of(pair, {2: NAMES[2]})
    add(ledger, pair, 2)
    ledger.finish("it ended")
    assert path.read_text() == "of an earlier run"
    account = ledger.accounts[pair.implementation]
    assert account.green
    assert ledger.content(account)["total_cases"] == 1


def test_a_refused_pair_leaves_no_report(pair: Pair) -> None:
    path = pair.task.with_name("perf_result.json")
    path.write_text("of an earlier run")
    ledger = ledger_of(pair)
    ledger.refuse(pair, "not verified")
    ledger.refuse(pair, "not verified")
    ledger.finish("it ended")
    assert not path.exists()
    assert ledger.refusals == ["not verified"]
    assert not ledger.accounts[pair.implementation].green


def test_a_report_that_somebody_changes_is_written_again(pair: Pair) -> None:
    ledger = ledger_of(pair)
    add(ledger, pair, 1)
    add(ledger, pair, 2)
    path = pair.task.with_name("perf_result.json")
    honest = path.read_bytes()
    path.write_text("{}")
    ledger.finish("it ended")
    assert path.read_bytes() == honest
    assert "was changed by another process" in (ledger.accounts[pair.implementation].problem or "")


def test_what_happened_to_the_clocks_is_written_at_the_end(pair: Pair) -> None:
    ledger = ledger_of(pair)
    add(ledger, pair, 1)
    add(ledger, pair, 2)
    ledger.frequency = FrequencyReport(backend="npu", requested=True, tool="npu-smi")
    ledger.finish("it ended")
    content = read(pair.task.with_name("perf_result.json"))
    assert content["frequency"]["backend"] == "npu"


def test_sources_are_those_that_were_there_when_the_run_began(pair: Pair) -> None:
    ledger = ledger_of(pair)
    before = dict(ledger.accounts[pair.implementation].sources)
    pair.implementation.write_text("# something else\n")
    add(ledger, pair, 1)
    add(ledger, pair, 2)
    assert read(pair.task.with_name("perf_result.json"))["sources"] == before


def test_a_file_that_can_not_be_written_is_a_problem_and_no_crash(
    pair: Pair, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ledger = ledger_of(pair, output=tmp_path / "file" / "perf.json")
    add(ledger, pair, 1)
    add(ledger, pair, 2)
    account = ledger.accounts[pair.implementation]
    assert "can't be written" in (account.problem or "")
    assert not account.green

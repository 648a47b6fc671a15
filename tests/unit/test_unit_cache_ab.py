"""A second run on an empty cache: what it repeats, what follows from it, and what is left."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import discovery
from pytest_tritonverify.cache_ab import (
    CacheTrial,
    Outcome,
    Runs,
    conclude,
    outcome_of,
    repeatable,
)
from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.results.ledger import PairAccount
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord, CheckRecord
from pytest_tritonverify.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.engine import Engine

WRONG = {"status": FAILED, "phase": "compare", "error_type": "AccuracyError"}
NAN = {"status": FAILED, "phase": "compare", "error_type": "AssertionError"}
RAISES = {"status": FAILED, "phase": "forward", "error_type": "AssertionError"}
CRASHED = {"status": FAILED, "phase": "forward", "error_type": "WorkerCrash"}
LANES = {"status": FAILED, "phase": "compare", "error_type": "MaskedLaneRead"}
HUNG = {"status": FAILED, "phase": "forward", "error_type": "VerifyTimeout"}
REFUSED = {"status": FAILED, "phase": "hidden_state", "error_type": "HiddenStateMismatch"}
NOT_RUN = {"status": FAILED, "error_type": "NotRun"}
GOOD = {"status": PASSED}


def records(*outcomes: dict[str, Any]) -> dict[int, CaseRecord]:
    return {
        k: CaseRecord.from_json({"case_idx": k, "name": f"case{k}", **facts})
        for k, facts in enumerate(outcomes, 1)
    }


def account(tmp_path: Path, *outcomes: dict[str, Any]) -> PairAccount:
    for name in ("a_torch.py", "a_triton_x.py"):
        (tmp_path / name).touch()
    pair = discovery.pair_of(tmp_path / "a_triton_x.py")
    assert pair is not None
    numbers = range(1, len(outcomes) + 1)
    return PairAccount(
        pair,
        tmp_path / "verify_result_x.json",
        total=len(outcomes),
        selected=tuple(numbers),
        entries=[CaseEntry(f"case{k}", "float32") for k in numbers],
        records=records(*outcomes),
        environment={"torch": {"version": "2.1.0"}, "cmdline": {}},
    )


# What is run again


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((GOOD, WRONG, GOOD), [1, 2, 3]),
        ((NAN,), [1]),
        ((REFUSED, WRONG, CRASHED), [2, 3]),
        ((GOOD, HUNG, WRONG), [1, 3]),
        ((WRONG, HUNG, NOT_RUN), [1]),
        ((GOOD, GOOD), []),
        ((RAISES, CRASHED, HUNG, LANES), []),
    ],
)
def test_all_that_ran_is_repeated_where_a_comparator_has_failed_something(
    tmp_path: Path, outcomes: tuple[dict[str, Any], ...], expected: list[int]
) -> None:
    assert repeatable(account(tmp_path, *outcomes)) == expected


def test_pairs_that_something_else_decides_are_left_alone(tmp_path: Path) -> None:
    unfinished = account(tmp_path, GOOD, WRONG)
    unfinished.selected = (1, 2, 3)
    assert repeatable(unfinished) == []
    fake = account(tmp_path, GOOD, WRONG)
    fake.checks["degeneration"] = CheckRecord(name="degeneration", status=FAILED, error_type="X")
    assert repeatable(fake) == []


def test_an_outcome_is_which_cases_fail_and_how() -> None:
    found = outcome_of(records(WRONG, GOOD, CRASHED), [1, 2, 3])
    assert found == Outcome({1: "AccuracyError", 3: "WorkerCrash"})
    assert not outcome_of(records(WRONG), [1, 2]).finished
    assert not outcome_of(records(WRONG, NOT_RUN), [1, 2]).finished


# What follows

failures = st.dictionaries(st.integers(1, 2), st.sampled_from(["AccuracyError", "ValueError"]))
outcomes = st.none() | st.builds(Outcome, failures, st.booleans())


@given(st.builds(Outcome, failures), outcomes, outcomes, outcomes)
def test_the_documents_rule(
    first: Outcome, fresh: Outcome | None, again: Outcome | None, control: Outcome | None
) -> None:
    code = conclude(Runs(first, fresh, again, control))
    known = fresh is not None and fresh.finished
    agree = fresh is not None and first.failures == fresh.failures
    assert (code == "accuracy_defect") == (known and agree)
    repeats = again == fresh and control == first
    assert (code == "compiler_defect_suspected") == (known and not agree and repeats)
    if code == "unstable":
        made = [run.failures for run in (first, fresh, again, control) if run is not None]
        assert made[1] != made[0]
        assert made[2] != made[1] or made[3] != made[0]


# The trial


class Judge:
    """Ends cases as a script says."""

    def __init__(self, script: tuple[dict[str, Any], ...], settings: Settings) -> None:
        self.script = script
        self.settings = settings
        self.ran: list[int | str] = []

    def run_case(self, case_idx: int, entry: CaseEntry, total: int, _: float | None) -> CaseRecord:
        assert (entry.name, total) == (f"case{case_idx}", len(self.script))
        self.ran.append(case_idx)
        return records(*self.script)[case_idx]

    def close(self) -> None:
        self.ran.append("closed")


class Scripted:
    """An engine whose runs are scripted: on an empty cache, and on the old one."""

    def __init__(self) -> None:
        self.fresh: list[tuple[dict[str, Any], ...]] = []
        self.old: list[tuple[dict[str, Any], ...]] = []
        self.effective: bool | None = True
        self.catalogue: Any = None
        self.judges: list[tuple[str | None, Judge]] = []

    def fingerprint_on(self, cache: str) -> dict[str, Any]:
        assert not list(Path(cache).iterdir())
        return {"cache": {"dir": cache, "fresh": True, "fresh_effective": self.effective}}

    def another_judge(self, _pair: object, settings: Settings, cache: str | None) -> Judge:
        judge = Judge((self.old if cache is None else self.fresh).pop(0), settings)
        if cache is not None:
            Path(cache, "kernel.npubin").touch()
        self.judges.append((cache, judge))
        return judge


@pytest.fixture
def engine() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    for cache, _ in scripted.judges:
        shutil.rmtree(cache or "", ignore_errors=True)


def section(engine: Scripted, found: PairAccount, **settings: Any) -> dict[str, Any] | None:
    return CacheTrial(cast("Engine", engine), Settings(**settings)).section(found)


def test_the_same_failures_leave_no_cache_behind(tmp_path: Path, engine: Scripted) -> None:
    engine.fresh = [(GOOD, WRONG)]
    found = section(engine, account(tmp_path, GOOD, WRONG))
    assert found is not None
    ((folder, judge),) = engine.judges
    assert (found["code"], found["conclusion"]) == ("accuracy_defect", "真实精度缺陷")
    assert (found["kept_cache"], found["fresh_again"]) == (None, None)
    assert folder is not None
    assert not Path(folder).exists()
    assert judge.ran == [1, 2, "closed"]
    assert found["first"] == {
        "failures": [{"case_idx": 2, "error_type": "AccuracyError"}],
        "environment": {"torch": {"version": "2.1.0"}},
    }
    assert found["fresh"]["environment"]["cache"]["dir"] == folder


def test_the_same_failures_leave_a_cache_that_is_asked_for(
    tmp_path: Path, engine: Scripted
) -> None:
    engine.fresh = [(WRONG,)]
    found = section(engine, account(tmp_path, WRONG), keep_cache=True)
    assert found is not None
    assert found["kept_cache"] == engine.judges[0][0]


@pytest.mark.parametrize(
    ("again", "old", "code", "conclusion"),
    [
        (GOOD, WRONG, "compiler_defect_suspected", "编译器缺陷嫌疑"),
        (GOOD, GOOD, "unstable", None),
        (GOOD, NAN, "unstable", None),
        (WRONG, None, "unstable", None),
    ],
)
def test_another_outcome_keeps_the_cache_and_has_to_repeat_on_both(
    tmp_path: Path,
    engine: Scripted,
    again: dict[str, Any],
    old: dict[str, Any] | None,
    code: str,
    conclusion: str | None,
) -> None:
    engine.fresh = [(GOOD, GOOD), (GOOD, again)]
    engine.old = [(GOOD, old)] if old else []
    found = section(engine, account(tmp_path, GOOD, WRONG))
    assert found is not None
    folders = [folder for folder, _ in engine.judges]
    assert (found["code"], found["conclusion"]) == (code, conclusion)
    assert folders == [found["kept_cache"]] * 2 + [None] * len([old] if old else [])
    assert (found["first_again"] is None) == (old is None)
    assert [path.name for path in Path(found["kept_cache"]).iterdir()] == ["kernel.npubin"]


def test_nothing_is_run_where_the_folder_does_not_decide(tmp_path: Path, engine: Scripted) -> None:
    for effective in (False, None):
        engine.effective = effective
        found = section(engine, account(tmp_path, WRONG))
        assert found is not None
        assert (found["code"], found["kept_cache"]) == ("not_isolated", None)
    assert engine.judges == []


def test_both_runs_together_take_no_longer_than_a_pair_may(
    tmp_path: Path, engine: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 10.0, 70.0, 70.0])
    monkeypatch.setattr("pytest_tritonverify.cache_ab.time.monotonic", lambda: next(clock))
    engine.fresh = [(GOOD,)]
    found = section(engine, account(tmp_path, WRONG), timeout=60.0)
    assert found is not None
    ((_, judge),) = engine.judges
    assert judge.settings.timeout == 50.0
    assert (found["code"], found["fresh_again"]) == ("not_finished", None)
    assert found["kept_cache"] is not None


def test_a_case_that_is_left_out_ends_the_process_as_it_did_before(
    tmp_path: Path, engine: Scripted
) -> None:
    engine.fresh = [(GOOD, HUNG, WRONG)]
    found = section(engine, account(tmp_path, GOOD, HUNG, WRONG))
    assert found is not None
    assert found["cases"] == [1, 3]
    assert engine.judges[0][1].ran == [1, "closed", 3, "closed"]


def test_pairs_without_accuracy_failures_have_no_section(tmp_path: Path, engine: Scripted) -> None:
    right = account(tmp_path, GOOD, RAISES)
    right.entries = ()  # nor are their cases listed again
    assert section(engine, right) is None
    assert engine.judges == []


def test_cases_are_listed_by_the_process_that_has_not_collected_them(
    tmp_path: Path, engine: Scripted
) -> None:
    found = account(tmp_path, WRONG, GOOD)
    listing = SimpleNamespace(cases=found.entries)
    engine.catalogue = SimpleNamespace(list=lambda _: listing)
    engine.fresh = [(WRONG, GOOD), (WRONG, GOOD)]
    found.entries = ()
    tried = section(engine, found)
    assert tried is not None
    assert tried["code"] == "accuracy_defect"
    listing.cases = listing.cases[:1]  # the task has changed meanwhile
    assert section(engine, found) is None

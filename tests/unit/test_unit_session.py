"""The session brings together what was collected, what was found out, and the ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_tritonverify import discovery
from pytest_tritonverify.activation import Activation
from pytest_tritonverify.catalogue import CaseEntry, Listing
from pytest_tritonverify.results.ledger import Ledger
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord
from pytest_tritonverify.session import VerifySession
from pytest_tritonverify.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.engine import Engine

NAMES = [f"case{k}-float32-{k}" for k in (1, 2, 3)]


class FakeEngine:
    """Knows listings, and counts."""

    def __init__(self) -> None:
        self.listings: dict[str, Listing] = {}
        self.catalogue = SimpleNamespace(cached=lambda pair: self.listings.get(pair.op))
        self.device = SimpleNamespace(name="cpu")
        self.kept_cache = None
        self.fingerprints = 0
        self.closed_when: list[bool] = []
        self.result: Path | None = None

    def fingerprint(self) -> dict[str, Any]:
        self.fingerprints += 1
        return {"torch": {"version": "2.1.0"}}

    def close(self) -> None:
        self.closed_when.append(self.result is not None and self.result.exists())


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def session(tmp_path: Path, engine: FakeEngine) -> VerifySession:
    for name in ("a/a_torch.py", "a/a_triton_x.py", "b/b_torch.py", "b/b_triton_x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    named = discovery.pair_of(tmp_path / "b" / "b_triton_x.py")
    assert named is not None
    active = Activation((tmp_path / "a",), (named,), (named.implementation,), tmp_path)
    found = discovery.walk(active.dirs, lambda _: False)
    return VerifySession(
        Settings(degeneration="off", hidden_state="off"),
        active,
        found,
        cast("Engine", engine),
        Ledger(None, {"non_compute": False}),
    )


def pair(session: VerifySession, op: str) -> Pair:
    known = (*session.findings.pairs, *session.activation.named)
    return next(one for one in known if one.op == op)


def selected(session: VerifySession) -> dict[str, tuple[int, ...]]:
    assert session.ledger is not None
    return {account.pair.op: account.selected for account in session.ledger.accounts.values()}


def listing() -> Listing:
    return Listing(tuple(CaseEntry(name, "float32") for name in NAMES))


# Node ids


def test_node_ids_announce_cases(session: VerifySession, engine: FakeEngine) -> None:
    engine.listings = {"a": listing(), "b": listing()}
    ids = [
        f"a/a_triton_x.py::{NAMES[2]}",
        "tests/test_own.py::test_x",
        f"a/a_triton_x.py::{NAMES[0]}",
        *(f"b/b_triton_x.py::{name}" for name in NAMES),
    ]

    session.expect_ids(ids, session.activation.cwd)

    assert selected(session) == {"a": (1, 3), "b": (1, 2, 3)}
    assert session.ledger is not None
    assert session.ledger.account(pair(session, "b")).full
    assert not session.ledger.account(pair(session, "a")).full


def test_node_ids_start_from_the_root(session: VerifySession, engine: FakeEngine) -> None:
    engine.listings = {"a": listing()}
    root = session.activation.cwd / "b"
    session.expect_ids([f"../a/a_triton_x.py::{name}" for name in NAMES], root)
    assert selected(session) == {"a": (1, 2, 3)}


@pytest.mark.parametrize(
    "ids",
    [
        [],
        ["a/a_torch.py::case1-float32-1"],
        ["a/a_triton_gone.py::case1-float32-1"],
        ["b/b_triton_x.py::case1-float32-1"],
    ],
)
def test_what_is_not_known_here_is_not_announced(
    session: VerifySession, engine: FakeEngine, ids: list[str]
) -> None:
    engine.listings = {"a": listing(), "b": Listing(error={"type": "SyntaxError"})}
    session.expect_ids(ids, session.activation.cwd)
    assert selected(session) == {}


def test_a_process_without_a_ledger_announces_nothing(
    session: VerifySession, engine: FakeEngine
) -> None:
    engine.listings = {"a": listing()}
    session.ledger = None
    session.expect_ids([f"a/a_triton_x.py::{NAMES[0]}"], session.activation.cwd)
    session.receive(session.payload(pair(session, "a"), error_type=None, error_msg=None))
    session.close(interrupted=False)
    assert not session.red
    assert session.overview() == {"device": "cpu", "pairs": []}


# Reports


def report(session: VerifySession, op: str, case_idx: int, status: str = PASSED) -> None:
    data = {"case_idx": case_idx, "name": NAMES[case_idx - 1], "status": status}
    record = CaseRecord.from_json(data)
    payload = session.payload(
        pair(session, op), record=record.to_json(), total=3, selected=[1, 2, 3], checks=[]
    )
    session.receive(payload)


def test_the_environment_travels_once_for_each_pair(
    session: VerifySession, engine: FakeEngine
) -> None:
    payloads = [session.payload(pair(session, op)) for op in ("a", "a", "b", "a")]
    assert [payload["environment"] is not None for payload in payloads] == [
        True,
        False,
        True,
        False,
    ]
    assert engine.fingerprints == 2


def test_records_make_a_run_green(session: VerifySession) -> None:
    assert session.red
    for case_idx in (1, 2, 3):
        report(session, "a", case_idx)
    assert not session.red
    report(session, "b", 1)
    assert session.red
    report(session, "b", 2)
    report(session, "b", 3, FAILED)
    assert session.red
    assert [p["passed_cases"] for p in session.overview()["pairs"]] == [3, 2]


def test_pairs_that_cannot_be_listed_or_have_no_case_are_not_green(session: VerifySession) -> None:
    for case_idx in (1, 2, 3):
        report(session, "a", case_idx)
    session.receive(
        session.payload(pair(session, "b"), error_type="SyntaxError", error_msg="invalid syntax")
    )
    assert session.red
    assert session.overview()["pairs"][1]["load_failure"]["error_type"] == "SyntaxError"


def test_a_task_without_cases_is_not_green(session: VerifySession) -> None:
    session.receive(session.payload(pair(session, "b"), error_type=None, error_msg="NoCases: ..."))
    assert session.overview()["pairs"][0]["total_cases"] == 0
    assert session.red


def test_reports_of_other_pairs_are_ignored(session: VerifySession) -> None:
    session.receive({"implementation": "/gone/x_triton_y.py", "environment": None})
    assert session.overview()["pairs"] == []


@pytest.mark.parametrize(
    ("interrupted", "reason"), [(True, "the run was interrupted"), (False, "the run ended before")]
)
def test_processes_end_before_results_are_final(
    session: VerifySession, engine: FakeEngine, interrupted: bool, reason: str
) -> None:
    report(session, "a", 1)
    assert session.ledger is not None
    account = session.ledger.account(pair(session, "a"))
    engine.result = account.path

    session.close(interrupted=interrupted)

    assert engine.closed_when == [False]
    assert account.path.exists()
    assert reason in (account.records[2].error_msg or "")

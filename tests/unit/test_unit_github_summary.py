"""The page of a GitHub step: every pair, why it failed, and nothing that spoils the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import github_summary, terminal
from pytest_tritonverify.results.records import CheckRecord
from pytest_tritonverify.settings import Settings
from tests.unit.test_unit_terminal import Screen, Stage, failed

if TYPE_CHECKING:
    from pathlib import Path


def session_of(stage: Stage, benchmarks: list[dict[str, Any]] | None = None) -> Any:
    session: Any = stage.session
    overview: dict[str, Any] = {"pairs": []}
    if benchmarks is not None:
        overview["benchmarks"] = benchmarks
    session.overview = lambda: overview
    return session


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_every_pair_has_a_row_and_failures_are_explained(stage: Stage) -> None:
    stage.judged("good", {})
    message = "AccuracyError: 3 of 8 differ <b>&\n\nHint: a | b"
    stage.judged("bad|ly", {}, failed(error_msg=message), {}, cases=4)
    text = github_summary.text(session_of(stage))
    assert "1 of 2 pairs passed, on cpu." in text
    assert "| bad\\|ly | triton_x | 2/4 | ❌ failed |" in text
    assert "<details><summary>bad|ly (triton_x)</summary>" in text
    assert "1 of 4 cases failed" in text
    assert "1 cases did not run" in text
    assert "3 of 8 differ &lt;b&gt;&amp;" in text
    assert "<b>" not in text


def test_checks_and_what_cannot_be_listed_are_told(stage: Stage) -> None:
    pair = stage.judged("fake", {})
    check = CheckRecord(
        name="degeneration",
        status="failed",
        error_type="PyTorchFallback",
        message="A-PyTorchFallback-Type1: no kernel",
    )
    stage.ledger.add_check(pair, check, {})
    stage.ledger.add_load_failure(stage.pair("lost"), "SyntaxError", "SyntaxError: line 3", {})
    text = github_summary.text(session_of(stage))
    assert "| fake | triton_x | 0/1 | ❌ failed |" in text
    assert "degeneration: A-PyTorchFallback-Type1: no kernel" in text
    assert "SyntaxError: line 3" in text


def test_speedups_are_shown_where_some_were_measured(stage: Stage) -> None:
    stage.judged("a", {})
    stage.judged("b", {})
    entry = {"op_name": "a", "triton_impl_name": "triton_x", "speedup_vs_torch": 2.17461}
    lines = github_summary.text(session_of(stage, [entry])).splitlines()
    assert any(line.startswith("| a |") and line.endswith("| 2.1746 |") for line in lines)
    assert any(line.startswith("| b |") and line.endswith("| - |") for line in lines)


@given(st.text(max_size=2000), st.integers(0, 4000))
def test_a_page_is_cut_between_characters(text: str, room: int) -> None:
    kept = github_summary._cut(text, room)
    assert len(kept) <= room or len(text.encode("utf-8", "backslashreplace")) <= room
    kept.decode("utf-8")


def test_a_page_is_appended_to_and_never_outgrows_its_limit(stage: Stage, tmp_path: Path) -> None:
    stage.judged("a", {})
    page = tmp_path / "page.md"
    page.write_text("# before\n", encoding="utf-8")
    assert github_summary.append(session_of(stage), page) is None
    text = page.read_text("utf-8")
    assert text.startswith("# before\n")
    assert "| a | triton_x | 1/1 |" in text
    page.write_bytes(b"x" * (github_summary.SIZE_LIMIT - 100))
    assert github_summary.append(session_of(stage), page) is None
    assert page.stat().st_size <= github_summary.SIZE_LIMIT


def test_a_page_that_cannot_be_written_is_a_warning(stage: Stage, tmp_path: Path) -> None:
    session = session_of(stage)
    session.settings = Settings(github_summary=tmp_path)
    screen = Screen()
    terminal.github_summary(session, screen)
    assert len(screen.lines) == 1
    assert "can't be written: Is a directory" in screen.lines[0]
    session.settings = Settings()
    terminal.github_summary(session, screen)
    assert len(screen.lines) == 1
    assert list(tmp_path.iterdir()) == []

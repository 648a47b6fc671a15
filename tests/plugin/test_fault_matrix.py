"""The fault matrix in one session: every verdict, and what the session leaves behind."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.fault_rows import ROWS
from tests.support.fault_runs import LIMITS, Session, applicable, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Hangs wait for the time limit, and have tests of their own; these are the ones that have none.
_HANGS = ("hang_at_import", "hang_in_del")
_HANG_SECONDS = 12
_FAULTS = [row for row in applicable(ROWS) if not row.hangs]
_ENDLESS = [row for row in ROWS if row.name in _HANGS]
_RIGHT = next(row for row in ROWS if row.name == "right")

# Folders that nobody can write to, not even root, and what is said of them.
_DISKS = {"full": "No space left on device", "frozen": "Read-only file system"}


@dataclass(frozen=True)
class Matrix:
    """A session that has ended.

    Attributes:
        root: its folder.
        session: the session.
        second: another one, which came along meanwhile.
        disks: those of `_DISKS` that could be made.
    """

    root: Path
    session: Session
    second: Session
    disks: tuple[str, ...]


def _mount(*arguments: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return (
            subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
        )
    return False


@contextlib.contextmanager
def _disks(root: Path) -> Iterator[tuple[str, ...]]:
    """Put pairs on small disks of their own, where mounting is allowed."""
    made = []
    try:
        for name in _DISKS:
            place = root / name
            place.mkdir()
            if _mount("-t", "tmpfs", "-o", "size=64k", "none", str(place)):
                made.append(name)
                _RIGHT.write(place)
        if "full" in made:
            with contextlib.suppress(OSError), (root / "full" / "filler").open("wb") as filler:
                filler.write(bytes(1 << 17))
        if "frozen" in made:
            assert _mount("-o", "remount,ro", str(root / "frozen"))
        yield tuple(made)
    finally:
        for name in made:
            subprocess.run(["umount", "-l", str(root / name)], check=True)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """The session with all faults, and a second one on the same folder."""
    root = tmp_path_factory.mktemp("faults")
    for row in _FAULTS:
        row.write(root / "ops")
    with _disks(root / "ops") as disks:
        session = Session(root).start(*LIMITS)
        while not list((root / "ops").glob("abort/verify_result*")):
            assert session.running, session.wait().out
            time.sleep(0.05)
        second = Session(root).start().wait()
        yield Matrix(root, session.wait(), second, disks)


def test_every_fault_gets_its_verdict_and_leaves_nothing(matrix: Matrix) -> None:
    outcomes = [outcome(row, matrix.root / "ops" / row.name) for row in _FAULTS]
    assert {o.row.name: o.complaint for o in outcomes if o.complaint} == {}
    assert matrix.session.code == 1
    assert "INTERNALERROR" not in matrix.session.out
    assert matrix.session.leftovers() == []


def test_results_that_were_touched_are_written_again(matrix: Matrix) -> None:
    said = "verify_result.json was changed by another process while the run lasted"
    touched = [row.name for row in _FAULTS if row.name.endswith(("right", "raises", "abort"))]
    assert matrix.session.out.count(said) == len(touched)


def test_a_second_run_is_refused(matrix: Matrix) -> None:
    assert matrix.second.code == 4, matrix.second.out
    said = f"is judged by another run at this moment (process {matrix.session.pid})"
    assert said in matrix.second.out
    assert matrix.second.leftovers() == []


@pytest.mark.parametrize("disk", _DISKS)
def test_a_disk_that_takes_no_result(matrix: Matrix, disk: str) -> None:
    if disk not in matrix.disks:
        pytest.skip("only root can mount a small disk")
    assert f"verify_result.json can't be written: {_DISKS[disk]}" in matrix.session.out
    assert f"{disk}/right/op_triton_ascend_impl.py" not in matrix.session.out.partition("FAILED")[2]


def test_hangs_that_nothing_else_shows(tmp_path: Path) -> None:
    for row in _ENDLESS:
        row.write(tmp_path / "ops")
    session = Session(tmp_path).start(f"--verify-timeout={_HANG_SECONDS}").wait()
    outcomes = [outcome(row, tmp_path / "ops" / row.name) for row in _ENDLESS]
    assert {o.row.name: o.complaint for o in outcomes if o.complaint} == {}
    assert (session.code, session.leftovers()) == (1, [])

"""Folders of runs: held while anybody uses them, removed by the next run where nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_tritonverify.execution import scratch


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_folder_that_is_held_stays(tmp_path: Path) -> None:
    first, handle = scratch.make()
    second, other = scratch.make()
    scratch.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {Path(first).name, Path(second).name}
    os.close(other)
    scratch.sweep()
    assert [str(path) for path in tmp_path.iterdir()] == [first]
    # Whoever inherits the descriptor holds it too.
    inherited = os.dup(handle)
    os.close(handle)
    scratch.sweep()
    assert Path(first).is_dir()
    os.close(inherited)


def test_a_killed_run_is_swept_up_after(tmp_path: Path) -> None:
    script = (
        "import os, tempfile; from pytest_tritonverify.execution import scratch; "
        "folder, _ = scratch.make(); open(os.path.join(folder, 'file'), 'w').close(); "
        "os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    folder, handle = scratch.make()
    assert [str(path) for path in tmp_path.iterdir()] == [folder]
    os.close(handle)


def test_what_belongs_to_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tritonverify-run-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tritonverify-run-file").touch()
    (tmp_path / "tritonverify-0-cpu.lock").touch()
    scratch.sweep()
    assert len(list(tmp_path.iterdir())) == 4

"""Folders of runs: held while anybody uses them, removed by the next run where nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_tritonverify import own_cache
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


def test_a_folder_is_removed_whatever_was_done_to_keep_it(tmp_path: Path) -> None:
    folder, handle = scratch.make()
    # Deeper than stack, descriptors and paths allow, and nothing of it may be looked into.
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 200, dir_fd=inside)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=inside)
        os.close(os.open("file", os.O_CREAT, 0o000, dir_fd=deeper))
        os.fchmod(inside, 0o500)
        os.close(inside)
        inside = deeper
    os.close(inside)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (Path(folder).parent / "beside").touch()
    Path(folder).chmod(0o700)
    (Path(folder) / "link").symlink_to(elsewhere)
    os.mkfifo(Path(folder) / "fifo")
    stubborn = Path(folder) / "stubborn"
    stubborn.touch()
    # It takes root, and a file system that knows it.
    subprocess.run(["chattr", "+i", str(stubborn), folder], capture_output=True, check=False)
    os.close(handle)
    scratch.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside", "elsewhere"]
    assert (elsewhere / "kept").is_dir()


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    scratch.remove(str(tmp_path / "gone"))
    (tmp_path / "file").touch()
    scratch.remove(str(tmp_path / "file" / "below"))
    assert (tmp_path / "file").is_file()


def test_a_cache_goes_with_its_run_unless_it_is_to_stay(tmp_path: Path) -> None:
    script = (
        "import os; from pytest_tritonverify import own_cache; own_cache.own_cache(); "
        "own_cache.keep(own_cache.own_cache()); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=Path(__file__).parents[2], check=False
    )
    assert len(list(tmp_path.iterdir())) == 2
    made, other = own_cache.own_cache(), own_cache.own_cache()
    # The one that was to stay, and those of this process.
    left = {str(path) for path in tmp_path.iterdir()}
    assert {made, other} < left
    assert len(left) == 3
    for folder in (made, other):
        own_cache.discard(folder)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("triton_verify_cache_")

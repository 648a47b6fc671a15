"""What the user may ask for of isolation, and what an implementation's process is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tritonverify import isolation
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.execution import landlock
from pytest_tritonverify.isolation import Limits
from pytest_tritonverify.settings import Settings, SettingsError

PAIR = Pair("op", "x", Path("/ops/a/op_torch.py"), Path("/ops/a/op_triton_x.py"))


def load(**given: Any) -> Settings:
    options = {f"verify_{name}": value for name, value in given.items()}
    return Settings.load(options.get, lambda _: None, Path.cwd(), Path.cwd())


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *((None, None), ("auto", None), ("off", 0), ("0", 0), ("4096", 4096)),
        *(("2K", 2048), ("1.5m", 3 << 19), ("8G", 8 << 30), ("1 TiB", 1 << 40), ("3GB", 3 << 30)),
    ],
)
def test_sizes(text: str | None, size: int | None) -> None:
    assert load(memory_limit=text).limits.memory == size
    assert load(file_limit=text).limits.file_size == size


def test_processes() -> None:
    assert load().limits.processes == Limits().processes > 256
    assert load(process_limit="off").limits.processes == 0
    assert load(process_limit="12").limits.processes == 12


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("memory_limit", "much", "--verify-memory-limit: 'much' is no size; write bytes"),
        ("file_limit", "-5", "--verify-file-limit: '-5' is no size"),
        ("process_limit", "few", "--verify-process-limit: 'few' is neither a number nor 'off'"),
        ("process_limit", "-1", "'-1' is neither"),
        ("isolation", "maybe", "verify_isolation: 'maybe' is none of auto, require, off"),
    ],
)
def test_nonsense_is_a_usage_error(option: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace("(", r"\(")):
        load(**{option: value})


def test_require_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 6)
    assert isolation.of_files(load(isolation="require")) == "landlock"
    with pytest.raises(SettingsError, match="--verify-in-process isolates nothing"):
        load(isolation="require", in_process=True)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert isolation.of_files(load()) == "none"
    with pytest.raises(SettingsError, match="this kernel has no Landlock"):
        load(isolation="require")


def test_what_a_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 6)
    monkeypatch.setattr(isolation, "machine_memory", lambda: 77)
    settings = Settings(dirs=(Path("/ops"),), output=Path("/out/r.json"), protected=(Path("/c"),))
    told = isolation.confinement(PAIR, settings, "cpu")
    assert told == {
        "files": True,
        "task": "/ops/a/op_torch.py",
        "unreadable": ["/out/r.json"],
        "unwritable": ["/c", "/ops", "/ops/a"],
        "memory": 77,
        "processes": Limits().processes,
        "file_size": 77,
    }
    # A device's driver maps memory that is none of the machine's.
    on_device = isolation.confinement(PAIR, settings, "cuda")
    assert on_device is not None
    assert on_device["memory"] == 0
    chosen = Settings(limits=Limits("off", 5, 6, 7))
    off = isolation.confinement(PAIR, chosen, "npu")
    assert off is not None
    assert [off[name] for name in ("files", "memory", "processes", "file_size")] == [False, 5, 6, 7]
    assert isolation.confinement(PAIR, Settings(in_process=True), "cpu") is None


def test_memory_is_the_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, container = tmp_path / "meminfo", tmp_path / "memory.max"
    machine.write_text("MemTotal:       2048 kB\nMemFree: 1 kB\n")
    monkeypatch.setattr(isolation, "_MEMINFO", machine)
    monkeypatch.setattr(isolation, "_CGROUP_LIMITS", (container,))
    assert isolation.machine_memory() == 2 << 20
    for text, size in (("max\n", 2 << 20), ("4096\n", 4096), (f"{1 << 60}\n", 2 << 20)):
        container.write_text(text)
        assert isolation.machine_memory() == size
    machine.write_text("")
    container.write_text("max")
    assert isolation.machine_memory() == 0

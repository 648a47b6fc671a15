"""A task is asked for its cases once, and again when something that decides about them changes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import catalogue
from pytest_tritonverify.catalogue import CaseEntry, Catalogue, Listing
from pytest_tritonverify.discovery import Pair

if TYPE_CHECKING:
    from pathlib import Path


class Asked:
    """Answers like a worker, and counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.times = 0
        self.answer: dict[str, Any] | None = None
        for name in ("a_torch.py", "a_triton_x.py", "a_triton_y.py", "a.json"):
            (folder / name).write_text(name, encoding="utf-8")

    def __call__(self, pair: Pair) -> dict[str, Any]:
        self.times += 1
        if self.answer is not None:
            return self.answer
        data = self.folder / "a.json"
        return {
            "cases": [{"name": "case1-float32-2", "dtype": "float32", "input_desc": [{"n": 1}]}],
            "files": {
                str(data): hashlib.sha256(data.read_bytes()).hexdigest(),
                str(self.folder / "optional.json"): None,
            },
            "looked_for": [],
        }

    def pair(self, variant: str = "x") -> Pair:
        task, implementation = self.folder / "a_torch.py", self.folder / f"a_triton_{variant}.py"
        return Pair("a", variant, task, implementation)

    def run(self, device: str = "cpu", *, kept: bool = True) -> Listing:
        """List the cases as a new process would."""
        one = Catalogue(self, self.folder / "cache" if kept else None, device)
        listing = one.list(self.pair())
        # Its implementations share a task, and a process asks once.
        assert one.list(self.pair("y")) == one.cached(self.pair()) == listing
        return listing


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


LISTED = Listing((CaseEntry("case1-float32-2", "float32", [{"n": 1}]),))


def test_listings_are_kept_between_runs(asked: Asked) -> None:
    assert Catalogue(asked, asked.folder / "cache", "cpu").cached(asked.pair()) is None
    assert [asked.run(), asked.run()] == [LISTED, LISTED]
    assert asked.times == 1
    assert Catalogue(asked, asked.folder / "cache", "cpu").cached(asked.pair()) == LISTED


def test_without_a_folder_every_run_asks(asked: Asked) -> None:
    assert [asked.run(kept=False), asked.run(kept=False)] == [LISTED, LISTED]
    assert asked.times == 2


@pytest.mark.parametrize("name", ["a_torch.py", "a.json", "optional.json"])
def test_a_changed_file_makes_it_ask_again(asked: Asked, name: str) -> None:
    asked.run()
    (asked.folder / name).write_text("changed", encoding="utf-8")
    asked.run()
    assert asked.times == 2


def test_an_implementation_decides_nothing(asked: Asked) -> None:
    asked.run()
    (asked.folder / "a_triton_x.py").write_text("changed", encoding="utf-8")
    asked.run()
    assert asked.times == 1


def test_devices_and_versions_have_listings_of_their_own(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.run("cpu")
    asked.run("cuda")
    monkeypatch.setattr(catalogue, "_version", lambda _package: "0")
    asked.run("cpu")
    assert asked.times == 3


@pytest.mark.parametrize(
    "content", ["", "nonsense", "[]", "{}", '{"files": {}, "cases": [{"x": 1}]}', '{"files": 3}']
)
def test_a_spoilt_entry_is_asked_for_again(asked: Asked, content: str) -> None:
    asked.run()
    (entry,) = (asked.folder / "cache").iterdir()
    entry.write_text(content, encoding="utf-8")
    assert asked.run() == LISTED
    assert asked.times == 2
    assert asked.run() == LISTED
    assert asked.times == 2


def test_failures_are_not_kept(asked: Asked) -> None:
    asked.answer = {"error": {"type": "SyntaxError"}}
    assert [asked.run().error, asked.run().error] == [{"type": "SyntaxError"}] * 2
    assert asked.times == 2


def test_a_cache_that_cannot_be_written_is_only_slow(asked: Asked) -> None:
    (asked.folder / "cache").touch()
    assert [asked.run(), asked.run()] == [LISTED, LISTED]
    assert asked.times == 2

"""A pair is judged by one run at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.results.claim import Claim, ClaimedError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def implementation(tmp_path: Path) -> Path:
    path = tmp_path / "op_triton_x.py"
    path.write_text("")
    return path


def test_the_second_is_refused_until_the_first_gives_back(implementation: Path) -> None:
    first = Claim(implementation)
    with pytest.raises(ClaimedError) as caught:
        Claim(implementation)
    assert str(implementation) in str(caught.value)
    assert f"(process {os.getpid()})" in str(caught.value)
    first.give_back()
    first.give_back()
    second = Claim(implementation)
    second.give_back()
    assert [path.name for path in implementation.parent.iterdir()] == [implementation.name]


def test_another_name_of_the_file_is_the_same_file(implementation: Path) -> None:
    link = implementation.with_name("link.py")
    link.symlink_to(implementation)
    held = Claim(implementation)
    with pytest.raises(ClaimedError):
        Claim(link)
    held.give_back()


def test_no_file_and_no_locks_keep_nobody_from_judging(
    implementation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Claim(implementation.with_name("gone.py"))

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    Claim(implementation)
    Claim(implementation)

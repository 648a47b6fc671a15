"""A pair is judged by one run at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.results.claim import ClaimedError, Claims

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOLDER = """
import sys
from pathlib import Path
from pytest_tritonverify.results.claim import Claims
claims = Claims()
claims.hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def implementation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and a folder of temporary files of this test's own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    path = tmp_path / "op_triton_x.py"
    path.write_text("")
    return path


@pytest.fixture
def claims() -> Iterator[Claims]:
    claims = Claims()
    yield claims
    claims.give_back()


def test_the_second_is_refused_until_the_first_ends(implementation: Path, claims: Claims) -> None:
    link = implementation.with_name("link.py")
    link.symlink_to(implementation)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(link)],
        cwd=Path(__file__).parents[2],
        # Whatever folder for temporary files it has.
        env={**os.environ, "TMPDIR": str(implementation.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(ClaimedError) as caught:
            claims.hold(implementation)
        assert str(implementation) in str(caught.value)
        assert f"(process {first.pid})" in str(caught.value)
        other = implementation.with_name("other.py")
        other.write_text("")
        claims.hold(other)
        first.kill()
    claims.hold(implementation)
    claims.hold(implementation)
    claims.give_back()
    claims.give_back()


def test_no_file_and_no_locks_keep_nobody_from_judging(
    implementation: Path, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.hold(implementation.with_name("gone.py"))

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    claims.hold(implementation)

"""Run pytest with the plugin in a process of its own, and look at what it reported and left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.device import OPTIONS
from tests.support.warm_start import RUN_MARK

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

    import pytest

    from tests.support.warm_start import WarmStart

# Set, all runs are fresh ones.
_FRESH = "TRITONVERIFY_TEST_FRESH"
_LOG = "reports.jsonl"
# A loaded machine needs a multiple of the five seconds that a run takes.
PATIENCE = 240.0


@dataclass
class Run:
    """A pytest run that has ended.

    Attributes:
        code: exit code.
        out: standard output.
        err: standard error.
        reports: the test reports, as pytest-reportlog wrote them.
    """

    code: int
    out: str
    err: str
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def outcomes(self) -> dict[str, str]:
        """The last outcome of every item that was called, by node id."""
        return {r["nodeid"]: r["outcome"] for r in self.reports if r["when"] == "call"}

    @property
    def by_name(self) -> dict[str, str]:
        """As `outcomes`, by the item's name alone."""
        return {nodeid.partition("::")[2]: outcome for nodeid, outcome in self.outcomes.items()}

    @property
    def listed(self) -> list[str]:
        """The node ids that `--collect-only -q` printed."""
        return [line for line in self.out.splitlines() if "::" in line and " " not in line]

    def report(self, name: str) -> dict[str, Any]:
        """The call report of an item."""
        return next(
            r for r in self.reports if r["when"] == "call" and r["nodeid"].endswith(f"::{name}")
        )


# Most tests are about cases.
_CHECKS = ("degeneration", "hidden_state", "execution")
_NO_CHECKS = tuple(part for check in _CHECKS for part in ("-o", f"verify_{check}=off"))


class Runner:
    """Starts pytest in a folder of a test's own.

    Only the plugins that a test names are loaded beside ours: loading all takes longer than
    most tests do.

    Args:
        pytester: makes the folder.
        monkeypatch: sets the variables of runs.
        warm: starts runs that are not fresh; None: all are.

    Attributes:
        path: the folder.
        checks: whether pairs have the items beside their cases that they have by default.
    """

    def __init__(
        self,
        pytester: pytest.Pytester,
        monkeypatch: pytest.MonkeyPatch,
        warm: WarmStart | None = None,
    ) -> None:
        self.path = pytester.path
        self.checks = False
        self._warm = None if os.environ.get(_FRESH) else warm
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        # What an outer pytest-xdist tells its workers does not concern the inner pytest.
        # A step's page on GitHub is the outer pytest's as well.
        for name in [
            n for n in os.environ if n.startswith("PYTEST_") or n == "GITHUB_STEP_SUMMARY"
        ]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.setenv(RUN_MARK, uuid.uuid4().hex)

    def move_to(self, folder: Path) -> None:
        """Run in another folder from now on, one that outlives the test."""
        self.path = folder
        self._monkeypatch.chdir(folder)

    def arguments(self, args: Sequence[str | Path], plugins: Sequence[str] | None) -> list[str]:
        """Return pytest's arguments; `plugins` None loads every installed plugin."""
        loaded: list[str] = []
        if plugins is None:
            self._monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
        else:
            self._monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            names = dict.fromkeys(("tritonverify", "pytest_reportlog", *plugins))
            loaded = [part for name in names for part in ("-p", name)]
        chosen = () if self.checks else _NO_CHECKS
        device = [part for option in OPTIONS for part in ("-o", option)]
        return [*loaded, *chosen, *device, f"--report-log={self.path / _LOG}", *map(str, args)]

    def run(
        self,
        *args: str | Path,
        plugins: Sequence[str] | None = (),
        stdin: bytes = b"",
        fresh: bool = False,
    ) -> Run:
        """Run pytest to its end, and see that it leaves no process behind.

        Args:
            args: pytest's arguments.
            plugins: plugins beside ours; None for all that are installed.
            stdin: what pytest can read.
            fresh: start a new interpreter. It is needed where that is what is tested, or what has
                been imported; runs with all plugins, or in pytest's own process, always do.
        """
        (self.path / _LOG).unlink(missing_ok=True)
        arguments = self.arguments(args, plugins)
        fresh = fresh or plugins is None or "--verify-in-process" in args
        if self._warm is None or fresh:
            command = [sys.executable, "-m", "pytest", *arguments]
            result = self._pytester.run(*command, stdin=stdin, timeout=PATIENCE)
            code, out, err = int(result.ret), result.stdout.str(), result.stderr.str()
        else:
            code, out, err = self._warm.run(arguments, PATIENCE, stdin)
            # Shown where a test fails, as pytester shows it.
            sys.stdout.write(out)
            sys.stderr.write(err)
        self.expect_no_survivors()
        return Run(code, out, err, self._reports())

    def start(self, *args: str | Path, plugins: Sequence[str] | None = ()) -> subprocess.Popen[str]:
        """Start pytest and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *self.arguments(args, plugins)],
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str], sent: signal.Signals) -> Run:
        """Signal a started pytest and wait for its end."""
        process.send_signal(sent)
        out, _ = process.communicate(timeout=PATIENCE)
        self.expect_no_survivors()
        return Run(process.returncode, out, "", self._reports())

    def _reports(self) -> list[dict[str, Any]]:
        log = self.path / _LOG
        lines = log.read_text().splitlines() if log.is_file() else []
        entries = [json.loads(line) for line in lines]
        return [entry for entry in entries if entry.get("$report_type") == "TestReport"]

    def expect_no_survivors(self) -> None:
        """Fail if a process of this test is still there after a moment."""
        wait_until(lambda: not self.survivors(), "processes are left", self.survivors)

    def survivors(self) -> list[str]:
        """Return the command lines of living processes that runs of this test have started."""
        mark = f"{RUN_MARK}={os.environ[RUN_MARK]}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    found.append(b" ".join(words).decode(errors="replace")[:200])
            except OSError:
                continue
        if self._warm is not None:
            found += [f"process {pid}" for pid in self._warm.survivors()]
        return found


def wait_until(
    condition: Callable[[], bool], complaint: str, details: Callable[[], object] = str
) -> None:
    """Wait for a condition; a fault is told by it never coming true."""
    deadline = time.monotonic() + PATIENCE / 4
    while not condition():
        assert time.monotonic() < deadline, f"{complaint}: {details()}"
        time.sleep(0.02)

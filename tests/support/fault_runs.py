"""Run pairs of the fault matrix in one session of pytest, and look at all that it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema

from pytest_tritonverify.execution import landlock
from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.workers import marked_processes

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence

    from tests.support.fault_rows import Row

_MARK = "TRITONVERIFY_FAULT_RUN"
_ROOT = Path(__file__).parents[2]
_SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
_CHECKED = jsonschema.validators.validator_for(_SCHEMA)(_SCHEMA)
_NO_CHECKS = [f"--verify-{name}=off" for name in ("degeneration", "hidden-state", "execution")]
# What is generous for honest rows, and soon over for those that go on for ever.
LIMITS = ("--verify-memory-limit=2G", "--verify-file-limit=64M", "--verify-process-limit=64")


@dataclass
class Session:
    """A run of pytest that is under way, or has ended.

    Attributes:
        root: where it runs.
        code: its exit code.
        out: what it printed.
    """

    root: Path
    code: int | None = None
    out: str = ""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: subprocess.Popen[str] | None = None

    @property
    def temporary(self) -> Path:
        """The folder that this run takes for the system's folder of temporary files."""
        return self.root / "tmp"

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The number of pytest's process."""
        assert self.process is not None
        return self.process.pid

    def start(self, *options: str) -> Session:
        """Start pytest on the folder `ops`."""
        self.temporary.mkdir(exist_ok=True)
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
            "TMPDIR": str(self.temporary),
            _MARK: self.mark,
        }
        command = [sys.executable, "-m", "pytest", "-p", "tritonverify", "-q", "--tb=line"]
        command += ["-p", "no:cacheprovider", "--verify-device=cpu", "--verify-dir=ops"]
        self.process = subprocess.Popen(
            [*command, *_NO_CHECKS, *options],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return self

    def send(self, number: signal.Signals) -> None:
        """Signal the process of pytest."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> Session:
        """Wait until it has ended."""
        assert self.process is not None
        self.out, _ = self.process.communicate()
        self.code = self.process.returncode
        return self

    def leftovers(self) -> list[str]:
        """Return what the run has left behind, processes and temporary files."""
        deadline = time.monotonic() + 20
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = [f"process {pid}" for pid in left]
        files = [path.name for path in self.temporary.iterdir()]
        # PyTorch's own cache is meant to stay, and a lock that is removed is no lock.
        return found + [
            f"file {name}"
            for name in files
            if not name.startswith("torchinductor") and not name.endswith(".lock")
        ]


@dataclass(frozen=True)
class Outcome:
    """What became of a row.

    Attributes:
        row: the row.
        verdicts: the error type of each case, None where it passed.
        seconds: what the pair took.
        complaint: what is not as it must be; empty where all is.
    """

    row: Row
    verdicts: tuple[str | None, ...]
    seconds: float
    complaint: str


def applicable(rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose verdict is known on this system."""
    version = landlock.version()
    there = {
        "": True,
        "landlock": version > 0,
        "signals": version >= landlock.HAS_SCOPES,
    }
    return [row for row in rows if there[row.needs]]


def judge(rows: Sequence[Row], root: Path, *options: str) -> tuple[Session, list[Outcome]]:
    """Judge pairs in one session.

    Args:
        rows: the faults.
        root: an empty folder.
        options: further options of pytest.

    Returns:
        The session, and the outcome of each row.
    """
    for row in rows:
        row.write(root / "ops")
    session = Session(root).start(*LIMITS, *options).wait()
    return session, [outcome(row, root / "ops" / row.name) for row in rows]


def outcome(row: Row, folder: Path) -> Outcome:
    """Read a row's result, and say what is wrong with it."""
    try:
        result = json.loads((folder / "verify_result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return Outcome(row, (), 0.0, f"no result: {error}")
    _CHECKED.validate(result)
    listed = {entry["case_idx"]: entry for entry in result["failures"]}
    verdicts = tuple(listed.get(k, {}).get("error_type") for k in (1, 2))
    complaints = [
        f"case {k}: {got} instead of {wanted}"
        for k, got, wanted in zip((1, 2), verdicts, row.expected(), strict=True)
        if (got or "-") not in (wanted or "-").split()
    ]
    said = listed.get(row.case, {}).get("error_msg", "")
    if row.words not in said:
        complaints.append(f"it does not say {row.words!r}: {said!r}")
    complaints += _oddities(result, row)
    leftover = [path.name for path in folder.iterdir() if ".journal" in path.name]
    complaints += [f"left: {name}" for name in leftover]
    seconds = sum(case["seconds"] for case in result["cases"])
    return Outcome(row, verdicts, seconds, "; ".join(complaints))


def _oddities(result: Mapping[str, Any], row: Row) -> list[str]:
    """Return what in a result does not fit together."""
    found = []
    failed = len(result["failures"])
    if (result["total_cases"], result["passed_cases"]) != (2, 2 - failed):
        found.append(f"{result['passed_cases']} of {result['total_cases']} with {failed} failures")
    for case in result["cases"]:
        side = row.side or ("reference" if row.of_reference else "implementation")
        ours = case["error_type"] in ("NotRun", None)
        if case["status"] == "failed" and not ours and case["side"] != side:
            found.append(f"case {case['case_idx']} is the failure of the {case['side']}")
    return found


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for a session."""
    return tempfile.TemporaryDirectory(prefix="faults-")

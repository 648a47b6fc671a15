"""The run-time half of the check of a task file: every case, in workers, as a verification does."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.discovery import DEFAULT_VARIANT, TASK_SUFFIX, Pair
from pytest_tritonverify.engine import DeviceMissingError, Engine
from pytest_tritonverify.execution.host import HostError
from pytest_tritonverify.settings import Settings
from pytest_tritonverify.supervision import REFERENCE, Failure
from pytest_tritonverify.workflow.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_tritonverify.catalogue import Listing
    from pytest_tritonverify.supervision import Process


@dataclass(frozen=True)
class Ran:
    """What came of running a task.

    Attributes:
        findings: what went wrong.
        tested, passed: numbers of cases.
        error: the first thing that went wrong, for people.
    """

    findings: tuple[Finding, ...]
    tested: int = 0
    passed: int = 0

    @property
    def error(self) -> str | None:
        """The first error."""
        found = (finding.message for finding in self.findings if finding.severity == "error")
        return next(found, None)


def run(path: Path, timeout: float, device: str = "auto") -> Ran:
    """Make the inputs of every case, and run the reference on each.

    Args:
        path: the task file.
        timeout: seconds that all of it may take.
        device: where a reference runs that can't run on the CPU.
    """
    path = path.resolve()
    op_name = path.stem.removesuffix(TASK_SUFFIX)
    # There is no implementation yet; nothing here reads one.
    pair = Pair(op_name, DEFAULT_VARIANT, path, path)
    settings = Settings(device=device, timeout=timeout)
    try:
        engine = Engine(settings, None, frozenset({path.parent}))
    except (DeviceMissingError, HostError) as error:
        return Ran((Finding("no_device", str(error), path.name),))
    try:
        problem = engine.problems()
        if problem:
            return Ran((Finding("environment", f"workers can't start: {problem}", path.name),))
        listing = engine.catalogue.list(pair)
        if listing.error is not None or not listing.cases:
            return Ran((_unlisted(listing, path),))
        deadline = time.monotonic() + timeout
        findings = list(_run_cases(engine, pair, settings, len(listing.cases), deadline))
    finally:
        engine.close()
    total = len(listing.cases)
    return Ran(tuple(findings), total, total - len(findings))


def _unlisted(listing: Listing, path: Path) -> Finding:
    error = listing.error
    if error is None:
        looked = ", ".join(PurePosixPath(name).name for name in listing.looked_for)
        text = f"it yields no case{f' (it looked for {looked})' if looked else ''}"
        return Finding("no_case", text, path.name)
    return _finding("not_listed", "", error["message"], error["file"], error["line"], path)


def _run_cases(
    engine: Engine, pair: Pair, settings: Settings, total: int, deadline: float
) -> Iterator[Finding]:
    process = engine.processes(pair).shared
    try:
        for case_idx in range(1, total + 1):
            try:
                _run_case(process, case_idx, total, deadline, f"{settings.timeout:g}秒")
            except Failure as failure:
                yield _finding(
                    "case",
                    f"case {case_idx} of {total}: ",
                    failure.message,
                    failure.file,
                    failure.line,
                    pair.task,
                )
    finally:
        process.close()


def _run_case(process: Process, case_idx: int, total: int, deadline: float, budget: str) -> None:
    """Run the reference on one case.

    Raises:
        Failure: it can't be run, or it makes another number of cases than were listed.
    """
    fds: list[int] = []
    try:
        process.post({"op": "inputs", "case_idx": case_idx})
        inputs = process.result(deadline, budget)
        fds += _open(inputs.fd)
        made = inputs.message["total"]
        if made != total:
            text = f"ListingError: it makes {made} cases now, and made {total} when it was listed"
            raise Failure(REFERENCE, "ListingError", text, "inputs")
        process.post({"op": "golden", "case": inputs.message["case"]}, inputs.fd)
        fds += _open(process.result(deadline, budget).fd)
    finally:
        for fd in fds:
            os.close(fd)


def _open(fd: int | None) -> list[int]:
    return [] if fd is None else [fd]


def _finding(code: str, prefix: str, message: str, file: Any, line: Any, path: Path) -> Finding:
    name = PurePosixPath(file).name if isinstance(file, str) else path.name
    first = message.partition("\n")[0]
    return Finding(code, f"{prefix}{first}", name, line if isinstance(line, int) else None)

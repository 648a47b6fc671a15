"""Saved reports: runs with numbers, by machine.

`<folder>/<machine>/<number>_<name>/<where the pair is>/<op>_triton_<variant>.json`: a run is a
folder that holds one report for each pair, each with the content of its `perf_result.json`.
Numbers begin at 0001 and go up, machine by machine, so a run is found by its number or name
where it was measured, and by its path anywhere.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import perf_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.discovery import Pair

FOLDER = ".verify_benchmarks"
"""In pytest's root folder, or in the one that the command is started in."""

OUTSIDE = "_outside"
"""Part of a run that holds the pairs outside of the root folder."""

UNKNOWN_MACHINE = "unknown"

_RUN = re.compile(r"(\d{4,})_(.+)")
_REPORT = re.compile(r"(.+_)?perf_result(_.+)?\.json|.+_triton_.+\.json")
_UNSAFE = re.compile(r"[^A-Za-z0-9.+-]+")
_LONGEST_NAME = 80
_LISTED = 20


class HistoryError(ValueError):
    """A run that is not there, or a name that can't be one; the text is for the user."""


@dataclass(frozen=True, order=True)
class Run:
    """A saved run.

    Attributes:
        number: its number on its machine.
        name: what it was called.
        machine: where it was measured.
        path: its folder.
    """

    number: int
    name: str
    machine: str
    path: Path

    def save(self, key: str, content: Mapping[str, Any]) -> Path:
        """Add a pair's report.

        Args:
            key: the pair, as `key_of` says it.
            content: the report.

        Raises:
            OSError: it can't be written.
        """
        path = self.path / f"{key}.json"
        perf_file.write(path, content)
        return path


class History:
    """The saved runs below a folder.

    Args:
        folder: usually `FOLDER` in the root folder; it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, machine: str, name: str | None, now: dt.datetime) -> Run:
        """Make the folder of a new run.

        Two processes that begin at the same time get runs of their own.

        Args:
            machine: where it is measured, as `machine_of` says it.
            name: what it is called; None: by the time.
            now: the time, with its zone.

        Raises:
            HistoryError: the name can't be one.
            OSError: the folder can't be made.
        """
        chosen = f"{now.astimezone(dt.timezone.utc):%Y%m%dT%H%M%SZ}" if name is None else name
        check_name(chosen)
        place = self.folder / machine
        place.mkdir(parents=True, exist_ok=True)
        with (place / ".lock").open("w") as lock:
            # Held until it is closed, by the end of the process at the latest.
            fcntl.flock(lock, fcntl.LOCK_EX)
            number = 1 + max((run.number for run in self.runs(machine)), default=0)
            path = place / f"{number:04d}_{chosen}"
            path.mkdir()
        return Run(number, chosen, machine, path)

    def runs(self, machine: str | None = None) -> list[Run]:
        """Return the saved runs of a machine, or of all, the oldest first."""
        found = []
        for path in self.folder.glob("*/*" if machine is None else f"{machine}/*"):
            match = _RUN.fullmatch(path.name)
            if match and path.is_dir():
                found.append(Run(int(match[1]), match[2], path.parent.name, path))
        return sorted(found)

    def find(self, wanted: str | None, machine: str | None = None) -> Run:
        """Return a saved run.

        Args:
            wanted: a number (`3`, `0003`), a name (the newest run of that name), or both
                (`0003_name`), each with `<machine>/` before it or without; None: the newest.
            machine: look among this machine's only.

        Raises:
            HistoryError: there is none, or several machines have one.
        """
        text = wanted
        if text is not None and "/" in text:
            machine, _, text = text.rpartition("/")
        runs = self.runs(machine)
        found = [run for run in runs if text is None or _is(run, text)]
        machines = {run.machine for run in found}
        if len(machines) > 1:
            listed = ", ".join(f"{name}/{text or '<number>'}" for name in sorted(machines))
            raise HistoryError(f"several machines have such a run: name one of {listed}")
        if not found:
            which = "saved run" if wanted is None else f"saved run {wanted!r}"
            there = ", ".join(f"{run.number:04d}_{run.name}" for run in runs[-_LISTED:])
            where = f"{self.folder / machine if machine else self.folder}"
            raise HistoryError(
                f"there is no {which} in {where} (there are: {there or 'none'}); "
                "--verify-save saves one"
            )
        return found[-1]


def check_name(name: str) -> None:
    """Refuse what can't be a run's name.

    Raises:
        HistoryError: it can't be one.
    """
    if not name or _UNSAFE.search(name.replace("_", "-")) or len(name) > _LONGEST_NAME:
        raise HistoryError(
            f"{name!r} can't be a run's name: use letters, digits and . _ + - only, at most "
            f"{_LONGEST_NAME} of them"
        )
    if name.isdecimal():
        raise HistoryError(f"{name!r} can't be a run's name: it would be taken for a number")


def _is(run: Run, text: str) -> bool:
    if text.isdecimal():
        return run.number == int(text)
    return text in (run.name, run.path.name)


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return what a machine is called in a history: its device, since times are the device's.

    Args:
        environment: sections as in a result.
    """
    device = environment.get("device")
    if not isinstance(device, dict):
        return UNKNOWN_MACHINE
    backend = device.get("backend") or ("npu" if device.get("npu_name") else None)
    parts = [str(part) for part in (backend, device.get("npu_name") or device.get("name")) if part]
    return _UNSAFE.sub("-", "-".join(parts)).strip("-.")[:_LONGEST_NAME] or UNKNOWN_MACHINE


def key_of(pair: Pair, root: Path) -> str:
    """Return what a pair is called within a run: its place below the root folder, and its name."""
    folder = Path(os.path.relpath(pair.implementation.parent, root))
    if folder.parts[:1] == ("..",):
        # Nothing is written outside of the run's own folder.
        digest = hashlib.sha256(os.fsencode(pair.implementation.parent)).hexdigest()
        folder = Path(OUTSIDE, digest[:12])
    return (folder / f"{pair.op}_{pair.impl_name}").as_posix()


def reports_in(folder: Path) -> dict[str, Path]:
    """Return the reports below a folder, a run's or one with pairs, by their places in it."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.json"))
        if _REPORT.fullmatch(path.name) and path.is_file() and not path.name.startswith(".")
    }

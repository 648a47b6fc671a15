"""What a run does with its reports at the end: compare them with kept ones, and keep them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import history, perf_file
from pytest_tritonverify.benchmark.compare import Comparison, ComparisonError, compare
from pytest_tritonverify.benchmark.history import History, HistoryError, Run
from pytest_tritonverify.benchmark.perf_file import PerfFileError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What came of it.

    Attributes:
        run: the saved run; None where nothing was to be saved, or nothing could be.
        comparisons: with what was kept before.
        problems: what could not be compared or saved, in sentences.
    """

    run: Run | None = None
    comparisons: tuple[Comparison, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """Keeps the reports of runs, and compares with those that are kept.

    Attributes:
        root: pytest's root folder, in which `history.FOLDER` is.
        save: keep the reports under this name, or by the time where it is empty; None: don't.
        compare: compare with this: a report, a folder with reports, or a saved run; where it is
            empty the newest one of the same machine; None: don't.
        cwd: the folder that a relative path starts from.
    """

    root: Path
    save: str | None = None
    compare: str | None = None
    cwd: Path = Path()

    @property
    def history(self) -> History:
        """The saved runs."""
        return History(self.root / history.FOLDER)

    def check(self) -> None:
        """Refuse what can't be followed, before anything is measured.

        Raises:
            HistoryError: a name that can't be one, or nothing to compare with.
        """
        if self.save:
            history.check_name(self.save)
        if self.compare is None or self._path is not None:
            return
        runs = self.history.runs()
        if self.compare == "":
            # On which machine is known when something has been measured. A first run that is to
            # be saved has nothing to be compared with yet.
            if not runs and self.save is None:
                self.history.find(None)
            return
        machines = sorted({run.machine for run in runs})
        for machine in machines:
            try:
                self.history.find(self.compare, machine)
            except HistoryError:
                continue
            return
        self.history.find(self.compare)

    @property
    def _path(self) -> Path | None:
        """The report or folder that `compare` names, where it names one."""
        path = self.cwd / self.compare if self.compare else None
        return path if path is not None and path.exists() else None

    def finish(self, reports: Mapping[str, Mapping[str, Any]], now: dt.datetime) -> Kept:
        """Compare reports with those that were kept, then keep them.

        Args:
            reports: of this run, by what their pairs are called (`history.key_of`).
            now: the time, with its zone.
        """
        if not reports or (self.save is None and self.compare is None):
            return Kept()
        environments = (report.get("environment") or {} for report in reports.values())
        machine = history.machine_of(next(environments))
        comparisons: list[Comparison] = []
        problems: list[str] = []
        if self.compare is not None:
            try:
                kept, name = self._kept(machine)
            except HistoryError as error:
                problems.append(str(error))
            else:
                for key, report in reports.items():
                    try:
                        comparisons.append(_compared(key, report, kept, name))
                    except (ComparisonError, PerfFileError) as error:
                        problems.append(f"{key}: {error}")
        run = None
        if self.save is not None:
            try:
                run = self._saved(reports, machine, now)
            except (HistoryError, OSError) as error:
                problems.append(f"the reports can't be saved: {error}")
        return Kept(run=run, comparisons=tuple(comparisons), problems=tuple(problems))

    def _kept(self, machine: str) -> tuple[dict[str, Path], str]:
        """Return the reports to compare with, by their places, and what they are called."""
        path = self._path
        if path is None:
            found = self.history.find(self.compare or None, machine)
            return history.reports_in(found.path), found.path.name
        if path.is_dir():
            return history.reports_in(path), self.compare or path.name
        return {path.stem: path}, path.name

    def _saved(
        self, reports: Mapping[str, Mapping[str, Any]], machine: str, now: dt.datetime
    ) -> Run:
        run = self.history.begin(machine, self.save or None, now)
        for key, report in reports.items():
            run.save(key, report)
        return run


def _compared(
    key: str, report: Mapping[str, Any], kept: Mapping[str, Path], name: str
) -> Comparison:
    """Compare a report with the kept one of its pair.

    That is the one in the same place, else the only one of its operator.

    Raises:
        ComparisonError: there is none, or they are of different cases.
        PerfFileError: it can't be read.
    """
    if key in kept:
        before = perf_file.read(kept[key])
    else:
        same = [found for found in _read(kept) if found["op_name"] == report["op_name"]]
        if len(same) != 1:
            count = len(same) or "no"
            raise ComparisonError(f"{name} has {count} reports of `{report['op_name']}`")
        before = same[0]
    return compare(before, report, names=(name, "this run"))


def _read(kept: Mapping[str, Path]) -> list[dict[str, Any]]:
    if len(kept) == 1:
        return [perf_file.read(path) for path in kept.values()]
    found = []
    for path in kept.values():
        try:
            found.append(perf_file.read(path))
        except PerfFileError:
            # One that no other key asks for either.
            continue
    return found

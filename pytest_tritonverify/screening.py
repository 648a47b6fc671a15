"""Screen an implementation's source before any of it runs, by the policy that the user chose."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_tritonverify import plain_files
from pytest_tritonverify.results.records import (
    FAILED,
    FALLBACK,
    PASSED,
    WARNED,
    CheckRecord,
    fallback_message,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.degeneration import Report
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.settings import Settings

CHECK = "degeneration"


class Screening:
    """The static degeneration check of a run's pairs; every file is read once.

    Args:
        settings: the session's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._records: dict[Path, CheckRecord] = {}

    @property
    def wanted(self) -> bool:
        """Whether implementations are screened at all."""
        return self._settings.degeneration != "off"

    def record(self, pair: Pair) -> CheckRecord | None:
        """Return what the check says of a pair's implementation; None where it is off."""
        if not self.wanted:
            return None
        if pair.implementation not in self._records:
            self._records[pair.implementation] = self._screen(pair)
        return self._records[pair.implementation]

    def refusal(self, pair: Pair) -> CheckRecord | None:
        """Return the record that keeps a pair's cases from being run, if there is one."""
        record = self.record(pair)
        return record if record is not None and record.status == FAILED else None

    def _screen(self, pair: Pair) -> CheckRecord:
        # Not before it is needed: a run that only lists its items does without.
        from pytest_tritonverify.degeneration.check import absent, check_source

        started = time.monotonic()
        settings = self._settings
        try:
            report = check_source(
                plain_files.read(pair.implementation),
                filename=pair.implementation.name,
                non_compute=settings.non_compute,
                reference=_bytes_of(pair.task),
                policy="partial" if settings.degeneration == "partial" else "strict",
            )
        except OSError as error:
            report = absent(pair.implementation.name, error)
        record = CheckRecord(
            name=CHECK,
            status=PASSED,
            seconds=time.monotonic() - started,
            report=report.to_json(),
        )
        return record if report.passed else self._failed(record, report, pair)

    def _failed(self, record: CheckRecord, report: Report, pair: Pair) -> CheckRecord:
        regression_type = report.regression_type
        line = report.error_line
        if report.error is not None or report.mistaken:
            # No fault of that kind: the author will want to hear the words of Python.
            regression_type = None
            text = report.refusal_text()
            error_type = text.partition(": ")[0]
            line = line or next((m.line for m in report.mistakes if m.line), None)
        else:
            error_type = FALLBACK
            text = fallback_message(regression_type, report.to_text(notes=False))
        return dataclasses.replace(
            record,
            status=WARNED if self._settings.degeneration == "warn" else FAILED,
            regression_type=regression_type,
            error_type=error_type,
            message=text,
            file=str(pair.implementation),
            line=line or next((v.line for v in report.violations if v.line), None),
        )


def _bytes_of(path: Path) -> bytes | None:
    try:
        return plain_files.read(path)
    except OSError:
        return None

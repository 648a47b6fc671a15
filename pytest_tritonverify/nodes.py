"""pytest's view of a pair: a file node for the implementation, and an item for every case."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import discovery, display, execution_check, screening, terminal
from pytest_tritonverify.execution import task_faults
from pytest_tritonverify.results.ledger import LOAD_ITEM
from pytest_tritonverify.results.records import SKIPPED, CaseRecord
from pytest_tritonverify.results.result_file import CHECKS, COMPILE, HIDDEN_STATE
from pytest_tritonverify.stash import session_key
from pytest_tritonverify.supervision import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.catalogue import CaseEntry, Listing
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.results.records import CheckRecord
    from pytest_tritonverify.session import VerifySession


class CaseFailure(AssertionError):  # noqa: N818 - what pytest shows is the name alone
    """A case or a pair failed; the item holds what there is to tell."""


class VerifyFile(pytest.File):
    """An implementation file: collects its task's cases and owns their processes."""

    def __init__(self, *, pair: Pair, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pair = pair
        self.class_line = discovery.class_line(pair.implementation, "ModelNew") or 1
        self.entries: tuple[CaseEntry, ...] = ()
        self.selected: list[int] = []
        self.checks: list[str] = []
        self.measured: dict[int, str] = {}

    @property
    def verify_session(self) -> VerifySession:
        """The run that this file belongs to."""
        return self.config.stash[session_key]

    @property
    def owns_result(self) -> bool:
        """Whether this run writes a file of the pair: not where only some cases are selected."""
        counts = len(self.selected), len(self.measured)
        return len(self.entries) in counts

    def collect(self) -> Iterator[pytest.Item]:
        """Yield checks and one item a case, or one that fails where no cases can be listed."""
        session = self.verify_session
        listing = session.engine.catalogue.list(self.pair)
        self.entries = listing.cases
        if not self.entries:
            yield self._item(LoadItem, LOAD_ITEM, listing=listing)
            return
        if session.screening.wanted:
            yield self._item(ScreeningItem, screening.CHECK)
        if session.probing:
            yield self._item(ProbeItem, HIDDEN_STATE)
        for case_idx, entry in enumerate(self.entries, 1):
            yield self._item(CaseItem, entry.name, case_idx=case_idx, entry=entry)
        if session.observing:
            yield self._item(ExecutionItem, execution_check.CHECK)
        if session.compilations is not None:
            yield self._item(CompileItem, COMPILE)
        if session.benchmarks is not None:
            # Not at the top: most runs measure nothing.
            from pytest_tritonverify.benchmark.nodes import BenchmarkItem, name_of

            for case_idx, entry in enumerate(self.entries, 1):
                yield self._item(BenchmarkItem, name_of(entry), case_idx=case_idx, entry=entry)

    def _item(self, kind: type[VerifyItem], name: str, **facts: Any) -> VerifyItem:
        # A node id that pytest makes itself loses --lf for some names on pytest 9.2.
        nodeid = f"{self.nodeid}::{name}"
        item: VerifyItem = kind.from_parent(self, name=name, nodeid=nodeid, **facts)
        return item

    def teardown(self) -> None:
        """End the implementation's process once none of its items follows."""
        self.verify_session.engine.release(self.pair)


class VerifyItem(pytest.Item):
    """What all items of a pair share."""

    parent: VerifyFile
    # Plugins made for test functions look for these.
    obj = None
    fixturenames: tuple[str, ...] = ()
    marker = pytest.mark.verify
    # Number of the case that the item measures; 0: it measures none.
    measures = 0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout: float | None = None
        self.payload: dict[str, Any] | None = None
        self.add_marker(self.marker)
        self.extra_keyword_matches |= {self.pair.op, self.pair.impl_name}

    @property
    def pair(self) -> Pair:
        """The pair that the item judges."""
        return self.parent.pair

    def reportinfo(self) -> tuple[Path, int, str]:
        """Locate the item at `class ModelNew`."""
        return self.path, self.parent.class_line - 1, self.name

    def _account(self, **outcome: Any) -> dict[str, Any]:
        """Return an outcome together with what else is to be judged of the pair."""
        file = self.parent
        return file.verify_session.payload(
            self.pair,
            total=len(file.entries),
            selected=file.selected,
            checks=file.checks,
            **outcome,
        )

    def location_of(self, file: str | None, line: int | None) -> tuple[Path, int]:
        """Return where a failure is shown: in the user's file, else at `class ModelNew`."""
        if file is None or line is None:
            return self._shown(self.path), self.parent.class_line
        return self._shown(Path(file)), line

    def _shown(self, path: Path) -> Path:
        try:
            return path.relative_to(self.config.invocation_params.dir)
        except ValueError:
            return path


class CheckItem(VerifyItem):
    """An item that judges a pair as a whole."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.record: CheckRecord | None = None

    def conclude(self, record: CheckRecord) -> None:
        """Publish an outcome.

        Raises:
            CaseFailure: it is a failure.
        """
        self.record = record
        self.payload = self._account(check=record.to_json())
        if not record.passed:
            raise CaseFailure(record.message)
        if record.status == SKIPPED:
            raise pytest.skip.Exception(record.message or "", _use_item_location=True)
        if record.message is not None:
            self.add_report_section("call", f"{record.name} (only reported)", record.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the record; anything else is a fault of the plugin and keeps its traceback."""
        record = self.record
        if record is None or record.passed or self.config.getoption("fulltrace", default=False):
            return super().repr_failure(excinfo, style)
        path, line = self.location_of(record.file, record.line)
        return display.failure(path, line, record.error_type or "", record.message or "")


class ScreeningItem(CheckItem):
    """The static degeneration check."""

    def runtest(self) -> None:
        """Read the implementation's source.

        Raises:
            CaseFailure: it computes elsewhere than in its kernels.
        """
        record = self.parent.verify_session.screening.record(self.pair)
        if record is not None:
            self.conclude(record)


class ProbeItem(CheckItem):
    """The hidden-state probe."""

    def runtest(self) -> None:
        """Compare what the models of both sides hold.

        Raises:
            CaseFailure: a parameter or buffer differs.
        """
        self.conclude(self.parent.verify_session.probe(self.pair, self.timeout))


class ExecutionItem(CheckItem):
    """The check at run time."""

    def runtest(self) -> None:
        """Run all cases again under observation.

        Raises:
            CaseFailure: the kernels are not what computes.
        """
        file = self.parent
        self.conclude(file.verify_session.examine(self.pair, file.entries, self.timeout))


class CompileItem(CheckItem):
    """The kernels that the cases launch, compiled for other devices."""

    def runtest(self) -> None:
        """Compile them.

        Raises:
            CaseFailure: one does not compile.
        """
        file = self.parent
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        with terminal.compiling(self.pair, reporter) as say:
            record = file.verify_session.compile(self.pair, file.entries, self.timeout, say)
        self.conclude(record)


class CaseItem(VerifyItem):
    """One case of a pair."""

    def __init__(self, *, case_idx: int, entry: CaseEntry, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case_idx = case_idx
        self.entry = entry
        self.record: CaseRecord | None = None
        self.extra_keyword_matches |= {entry.dtype}

    def runtest(self) -> None:
        """Judge the case.

        Raises:
            CaseFailure: it failed. In-process runs raise the user's own exception instead.
        """
        session, entries = self.parent.verify_session, self.parent.entries
        try:
            self.record = session.run_case(self.pair, self.case_idx, entries, self.timeout)
        except Exception as error:
            if not isinstance(error, pytest.exit.Exception):
                self._lose(error)
            raise
        self.payload = self._account(record=self.record.to_json())
        self._publish(self.record)
        if not self.record.passed:
            cause = session.engine.last_cause(self.pair)
            # Nothing that user code raises may end or skip the item in its own way.
            raise cause if isinstance(cause, Exception) else CaseFailure(self.record.error_msg)

    def _lose(self, error: Exception) -> None:
        """Put on record that the verifier itself has failed; pytest shows its traceback."""
        told = f"the verifier itself failed: {type(error).__name__}: {error}"
        entry = self.entry
        lost = CaseRecord.not_run(self.case_idx, entry.name, entry.input_desc, told)
        self.payload = self._account(record=lost.to_json())

    def _publish(self, record: CaseRecord) -> None:
        """Give other reports what people and dashboards look for."""
        facts = {
            "op": self.pair.op,
            "triton_impl_name": self.pair.impl_name,
            "case_idx": self.case_idx,
            "golden_device": record.golden_device,
            "error_type": record.error_type,
            "phase": record.phase,
            "category": next((o["category"] for o in record.outputs if o["category"]), None),
        }
        for name in ("matched_ratio", "max_abs_diff", "violation_count", "over_count"):
            facts[name] = (record.metrics or {}).get(name)
        # Replaced, not appended: the same item runs again under pytest-rerunfailures.
        self.user_properties[:] = [(k, v) for k, v in facts.items() if v is not None]
        self._report_sections[:] = []
        # The failure text of a process that died holds its output already.
        if record.output.strip() and "Last output" not in (record.error_msg or ""):
            # Not as it stands: what reads a log, as CI does, may take a line for a command.
            quoted = textwrap.indent(record.output, "| ", lambda _: True)
            self.add_report_section("call", "implementation output", quoted)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the record; anything else is a fault of the plugin and keeps its traceback."""
        record = self.record
        if record is None or record.passed or self.config.getoption("fulltrace", default=False):
            return super().repr_failure(excinfo, style)
        path, line = self.location_of(record.file, record.line)
        if record.file is None and record.side == REFERENCE:
            line = discovery.class_line(self.pair.task, "Model") or 1
            path, line = self.location_of(str(self.pair.task), line)
        text = record.error_msg or ""
        if record.phase in CHECKS:
            text = f"{text.partition(chr(10))[0]}\nNot run; the item `{record.phase}` says more."
        return display.failure(path, line, record.error_type or "", text)


class LoadItem(VerifyItem):
    """The item of a pair whose cases can't be listed; it always fails."""

    def __init__(self, *, listing: Listing, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._error = listing.error or {}
        self._message = self._error.get("message") or _no_case(self.pair, listing)

    def runtest(self) -> None:
        """Fail.

        Raises:
            CaseFailure: always.
        """
        session = self.parent.verify_session
        self.payload = session.payload(
            self.pair, error_type=self._error.get("type"), error_msg=self._message
        )
        raise CaseFailure(self._message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show why the cases can't be listed."""
        if not isinstance(excinfo.value, CaseFailure):
            return super().repr_failure(excinfo, style)
        file, line = self._error.get("file"), self._error.get("line")
        if file is None:
            file = str(self.pair.task)
            line = task_faults.line_of(self.pair.task, task_faults.GROUPS) or 1
        path, line = self.location_of(file, line)
        return display.failure(path, line, self._error.get("type") or "NoCases", self._message)


def _no_case(pair: Pair, listing: Listing) -> str:
    text = f"NoCases: {pair.task.name} yields no case, so there is nothing to judge"
    line = task_faults.line_of(pair.task, task_faults.GROUPS)
    looked_for = f"looked for {', '.join(listing.looked_for)}" if listing.looked_for else ""
    if line is not None:
        text += (
            f"\n{task_faults.GROUPS} ({pair.task.name}, line {line}) returned no group instead of "
            f"{task_faults.GROUPS_FORM}"
        )
        return text + (f"\nWhere it reads them from a file: {looked_for}" if looked_for else "")
    return text + (f"\nIt seems to lack its data: {looked_for}" if looked_for else "")

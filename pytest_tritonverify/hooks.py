"""The hooks of runs that concern the plugin. Each is a few lines that call pytest-free code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import discovery, terminal
from pytest_tritonverify.html_report import run_page
from pytest_tritonverify.nodes import CaseItem, CheckItem, VerifyFile, VerifyItem
from pytest_tritonverify.results.claim import ClaimedError
from pytest_tritonverify.signals import Ending, Termination
from pytest_tritonverify.stash import WORKER_KEY

if TYPE_CHECKING:
    import signal
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.session import VerifySession

_REPORT_ATTRIBUTE = "tritonverify"


class ActiveHooks:
    """Registered by `startup.configure`; an unrelated run pays for none of this."""

    def __init__(self, config: pytest.Config, session: VerifySession) -> None:
        self._config = config
        self._session = session
        self._judging = False
        self._termination: Termination | None = None
        self._ending = Ending()
        self._page_problem: str | None = None

    # The run

    def pytest_sessionstart(self) -> None:
        """End in good order on SIGTERM and SIGHUP; workers of xdist end by their controller."""
        if not hasattr(self._config, "workerinput"):
            self._termination = Termination(self._end_by_signal)

    @staticmethod
    def _end_by_signal(number: signal.Signals) -> None:
        text = f"the run was ended by {number.name}"
        pytest.exit(text, returncode=pytest.ExitCode.INTERRUPTED)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Let nothing keep the results from being written: the run is ending already."""
        self._ending.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """Begin nothing once the run was to end, though an exception went astray."""
        self._end_if_asked()

    def _end_if_asked(self) -> None:
        if self._termination is not None and self._termination.asked is not None:
            self._end_by_signal(self._termination.asked)

    # Collection

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        """End where the exception of the signal has become an error of the collector."""
        report = yield
        self._end_if_asked()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect folders of pairs without importing an `__init__.py` of theirs."""
        activation = self._session.activation
        if activation.concerns(path) or path in activation.folders():
            directory: pytest.Dir = pytest.Dir.from_parent(parent, path=path)
            return directory
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[Any], list[Any]]:
        """Collect implementations; among them pytest imports nothing by itself."""
        collectors = yield
        session = self._session
        pair = discovery.pair_of(file_path) if "_triton_" in file_path.stem else None
        if pair is not None and session.activation.is_ours(pair):
            admitted = session.settings.selection.admits(pair)
            return [VerifyFile.from_parent(parent, path=file_path, pair=pair)] if admitted else []
        is_task = any(p.task == file_path for p in session.activation.named)
        return [] if is_task or session.activation.concerns(file_path) else collectors

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put what is measured behind what is judged, file by file, whoever shuffled them."""
        if self._session.benchmarks is None:
            return
        for file in _ours(items):
            places = [i for i, item in enumerate(items) if item.parent is file]
            theirs = [items[place] for place in places]
            theirs.sort(key=lambda item: bool(getattr(item, "measures", 0)))
            for place, item in zip(places, theirs, strict=True):
                items[place] = item

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note on every file which of its items will be judged."""
        for file, items in _ours(session.items).items():
            file.selected = [item.case_idx for item in items if isinstance(item, CaseItem)]
            file.checks = [item.name for item in items if isinstance(item, CheckItem)]
            measuring = [(item.measures, item.name) for item in items]
            file.measured = {case_idx: name for case_idx, name in measuring if case_idx}

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Enter into the ledger what is to be judged, which removes old results.

        Not before: what only lists items or shows fixtures leaves results alone.
        """
        dry = ("collectonly", "setuponly", "setupplan")
        self._judging = not any(getattr(self._config.option, name, False) for name in dry)
        if not self._judging or self._session.ledger is None:
            return
        files = _ours(session.items)
        self._claim([file.pair for file in files if file.owns_result])
        run_page.clear(self._session)
        for file in files:
            entries, selected, checks = file.entries, file.selected, file.checks
            if selected or checks:
                self._session.expect(file.pair, entries, len(entries), selected, checks)
            if file.measured and self._session.benchmarks is not None:
                self._session.benchmarks.expect(file.pair, len(entries), file.measured)

    def _claim(self, pairs: Iterable[Pair]) -> None:
        """Hold pairs, before anything of theirs is touched.

        Raises:
            pytest.UsageError: another run has one of them.
        """
        try:
            self._session.claim(pairs)
        except ClaimedError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Let pytest-timeout's limit bound the worker instead of interrupting the judge."""
        if not isinstance(item, VerifyItem):
            return None
        item.timeout = settings.timeout
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool | None:
        """Nothing was armed for our items."""
        return True if isinstance(item, VerifyItem) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the record to the report: it travels wherever the report does."""
        report = yield
        if call.when == "call" and isinstance(item, VerifyItem) and item.payload is not None:
            setattr(report, _REPORT_ATTRIBUTE, item.payload)
            item.payload = None
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Enter the record into the ledger; tell of a measurement when the report is shown."""
        payload = getattr(report, _REPORT_ATTRIBUTE, None)
        if payload is not None:
            self._session.receive(payload)
        yield
        if payload is not None:
            terminal.progress(self._session, payload, self._reporter)
            # pytest keeps reports to the end; the ledger has what this one brought.
            delattr(report, _REPORT_ATTRIBUTE)

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    # pytest-xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what the controller has found out."""
        node.workerinput[WORKER_KEY] = {
            "device": self._session.engine.device.name,
            "explicit": [str(path) for path in self._session.activation.explicit],
            "own_cache": self._session.engine.own_cache,
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Announce cases on the controller, which collects nothing itself."""
        if self._judging:
            self._claim(self._session.pairs_among(ids, self._config.rootpath))
            self._session.expect_ids(ids, self._config.rootpath)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker tells when it ends: one that was killed tells nothing."""
        told = getattr(node, "workeroutput", None) or {}
        if self._session.benchmarks is not None:
            self._session.benchmarks.take_clocks(told.get(WORKER_KEY))

    # Reporting

    def pytest_report_header(self) -> list[str]:
        """Say what judges where."""
        return terminal.header(self._session)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Add the results to pytest-json-report's file."""
        json_report["tritonverify"] = self._session.overview()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> Generator[None, None, None]:
        """End all processes and write the results, before other reports ask for them."""
        interrupted = int(exitstatus) == pytest.ExitCode.INTERRUPTED
        try:
            self._session.close(interrupted=interrupted)
            if self._judging:
                self._page_problem = run_page.write(self._session)
        finally:
            self._ending.end()
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[WORKER_KEY] = self._session.clocks
        if self._termination is not None:
            self._termination.forget()
        yield
        settled = (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        if self._judging and session.exitstatus in settled:
            if self._session.refused():
                # Not at the top: most runs measure nothing.
                from pytest_tritonverify.benchmark.items import REFUSED

                session.exitstatus = REFUSED
            elif self._session.red:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table of pairs."""
        if self._judging:
            # The `verify` command runs in the pair's folder, wherever its caller is.
            by_command = str(self._config.inipath) == os.devnull
            terminal.summary(self._session, terminalreporter, full_paths=by_command)
            terminal.github_summary(self._session, terminalreporter)
            terminal.html_page(self._session, self._page_problem, terminalreporter)


class WithoutConfigFile:
    """Registered where the configuration file is none: the header is not to name it."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_header(self, config: pytest.Config) -> Generator[None, list[Any], list[Any]]:
        """Leave the file out of pytest's own lines."""
        found = yield
        shown = str(config.inipath)
        return [
            [text for line in lines if (text := terminal.without_config_file(line, shown))]
            for lines in ([entry] if isinstance(entry, str) else entry for entry in found)
        ]


def _ours(items: Iterable[pytest.Item]) -> dict[VerifyFile, list[VerifyItem]]:
    """Return our items by file."""
    found: dict[VerifyFile, list[VerifyItem]] = {}
    for item in items:
        if isinstance(item, VerifyItem):
            found.setdefault(item.parent, []).append(item)
    return found

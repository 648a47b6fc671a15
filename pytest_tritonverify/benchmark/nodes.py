"""pytest's view of a benchmark: an item for every case that is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import display
from pytest_tritonverify.benchmark import items
from pytest_tritonverify.benchmark.items import name_of
from pytest_tritonverify.nodes import CaseFailure, VerifyItem

if TYPE_CHECKING:
    from pytest_tritonverify.catalogue import CaseEntry

__all__ = ["BenchmarkItem", "name_of"]


class BenchmarkItem(VerifyItem):
    """The measurement of one case of a pair."""

    marker = pytest.mark.verify_benchmark

    def __init__(self, *, case_idx: int, entry: CaseEntry, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case_idx = self.measures = case_idx
        self.entry = entry
        self.outcome: items.Outcome | None = None
        self.extra_keyword_matches |= {entry.dtype}

    def runtest(self) -> None:
        """Measure the case.

        Raises:
            CaseFailure: the gate refuses the pair, or the case failed.
        """
        file = self.parent
        wanted = items.Wanted(
            self.pair, self.case_idx, file.entries, self.name, file.selected, file.checks
        )
        session = file.verify_session
        assert session.benchmarks is not None  # noqa: S101 - it is why there is this item
        self.outcome = session.benchmarks.measure(wanted, self.timeout)
        self.payload = session.payload(
            self.pair,
            benchmark=self.outcome.to_json(),
            total=len(file.entries),
            items={str(case_idx): name for case_idx, name in file.measured.items()},
            # Each report has its own: the verification's may be of another run.
            environment=session.engine.fingerprint(),
        )
        self.user_properties[:] = self.outcome.properties(self.pair)
        if self.outcome.failure is not None:
            raise CaseFailure(self.outcome.failure[1])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what failed; anything else is a fault of the plugin and keeps its traceback."""
        failure = self.outcome.failure if self.outcome is not None else None
        if failure is None or self.config.getoption("fulltrace", default=False):
            return super().repr_failure(excinfo, style)
        path, line = self.location_of(None, None)
        return display.failure(path, line, *failure)

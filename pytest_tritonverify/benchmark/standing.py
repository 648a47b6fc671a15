"""How the verification of a pair stands in a process that also measures it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.results.records import CaseRecord, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass
class Standing:
    """What the items of one pair came to. What failed once stays failed.

    Attributes:
        cases: outcomes by case number.
        checks: outcomes of checks by their name.
    """

    cases: dict[int, CaseRecord] = field(default_factory=dict)
    checks: dict[str, CheckRecord] = field(default_factory=dict)

    def note(self, content: Mapping[str, Any]) -> None:
        """Take in what an item publishes: `record` of a case or `check`, both as plain data."""
        if content.get("record") is not None:
            record = CaseRecord.from_json(content["record"])
            earlier = self.cases.get(record.case_idx)
            if earlier is not None and not earlier.passed:
                record = dataclasses.replace(earlier, flaky=earlier.flaky or record.passed)
            self.cases[record.case_idx] = record
        elif content.get("check") is not None:
            check = CheckRecord.from_json(content["check"])
            known = self.checks.get(check.name)
            if known is None or known.passed:
                self.checks[check.name] = check

    def missing(self, selected: Sequence[int], checks: Sequence[str]) -> list[str]:
        """Return the names of what has no outcome in this process."""
        cases = [f"case {k}" for k in selected if k not in self.cases]
        return [*cases, *(name for name in checks if name not in self.checks)]

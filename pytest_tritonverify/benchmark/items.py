"""What a benchmark item is asked, and what it comes to, as data that any process can carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.benchmark import aggregate
from pytest_tritonverify.benchmark.measurement import CaseMeasurement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.catalogue import CaseEntry
    from pytest_tritonverify.discovery import Pair

REFUSED = 2
"""The documented exit status where the gate has refused a pair."""

GATE = "VerifyGate"
_PREFIX = "benchmark"
_LONGEST_NAME = 80


def name_of(entry: CaseEntry) -> str:
    """Return the name of the item that measures a case: `benchmark<k>-<dtype>-<shape>`."""
    return (_PREFIX + entry.name.removeprefix("case"))[:_LONGEST_NAME]


@dataclass(frozen=True)
class Wanted:
    """One case to be measured.

    Attributes:
        pair: its pair.
        case_idx: its number, from 1.
        entries: all cases of the pair as listed.
        name: the item's name.
        selected: numbers of the cases that the same run verifies.
        checks: names of the checks that the same run makes.
    """

    pair: Pair
    case_idx: int
    entries: Sequence[CaseEntry]
    name: str
    selected: Sequence[int]
    checks: Sequence[str]

    @property
    def verified_here(self) -> bool:
        """Whether the run that measures also verifies the whole pair."""
        return len(self.selected) == len(self.entries)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of an item.

    Attributes:
        case: the measurement; None where the gate refused.
        refusal: what the gate said then, for people.
        gate: how the verification stood, as plain data.
        warnings: `{"code", "message"}` entries that concern the whole pair.
    """

    case: CaseMeasurement | None = None
    refusal: str | None = None
    gate: Mapping[str, Any] | None = None
    warnings: Sequence[Mapping[str, str]] = ()

    @property
    def failure(self) -> tuple[str, str] | None:
        """Name and text of the item's failure; None where it passed."""
        if self.refusal is not None:
            return GATE, self.refusal
        if self.case is not None and not self.case.passed:
            return self.case.error_type or "Error", self.case.error_msg or ""
        return None

    def properties(self, pair: Pair) -> list[tuple[str, object]]:
        """Return what people and dashboards look for in other reports."""
        facts: dict[str, object] = {"op": pair.op, "triton_impl_name": pair.impl_name}
        if self.case is not None:
            facts["case_idx"] = self.case.case_idx
            for name in ("framework", "implementation"):
                side = getattr(self.case, name)
                if side is not None and aggregate.is_time(side.latency_ms):
                    facts[f"{name}_latency_ms"] = side.latency_ms
            if self.case.passed:
                facts["speedup_vs_torch"] = aggregate.case_speedup(self.case).valid
        return [(name, value) for name, value in facts.items() if value is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as builtins."""
        return {
            "case": self.case.to_json() if self.case else None,
            "refusal": self.refusal,
            "gate": dict(self.gate) if self.gate is not None else None,
            "warnings": [dict(warning) for warning in self.warnings],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """Rebuild an outcome that travelled as builtins, from a process of ours."""
        case = data["case"]
        return cls(
            case=None if case is None else CaseMeasurement.from_json(case),
            refusal=data["refusal"],
            gate=data["gate"],
            warnings=data["warnings"],
        )

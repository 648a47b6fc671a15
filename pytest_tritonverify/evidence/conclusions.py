"""From the evidence of a case to findings: pure functions of plain data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tritonverify.evidence import entering, operating, operators, writing
from pytest_tritonverify.evidence.report import CaseSummary

if TYPE_CHECKING:
    from pytest_tritonverify.evidence.case import Evidence
    from pytest_tritonverify.evidence.report import Finding

# What a conclusion may still need, because it costs a run that most cases can do without.
GOLDEN = "golden"
REFERENCE = "reference"
REPEATS = "repeats"
CONFIRMATION = "confirmation"


def needs(evidence: Evidence) -> set[str]:
    """Return what must be found out before a case can be concluded."""
    conclude(evidence)
    wanted = set(evidence.asked)
    if evidence.moved():
        wanted.add(REFERENCE)
    if operating.later_names(evidence):
        wanted.add(CONFIRMATION)
    return wanted


def conclude(evidence: Evidence) -> list[Finding]:
    """Return what the runs of a case show."""
    return [
        *writing.conclude(evidence),
        *operating.conclude(evidence),
        *entering.conclude(evidence),
    ]


def summary(evidence: Evidence) -> CaseSummary:
    """Return what the forward of a case did."""
    launches: dict[tuple[str, str], tuple[int, int]] = {}
    for launch in evidence.own_launches:
        key = launch.kernel, Path(launch.defined.file or "").name
        count, programs = launches.get(key, (0, 0))
        launches[key] = (count + 1, programs + launch.programs)
    told: dict[str, int] = {}
    for operator in evidence.observation.operators:
        name = operators.plain_name(operator.name)
        reported = operators.kind(operator.name) in (
            operators.MOVING,
            operators.COMPUTING,
            operators.RANDOM,
        )
        if reported and not (name in evidence.marks and operator.place.file is None):
            told[name] = told.get(name, 0) + operator.count
    not_asked = [
        f"{path}: {fact.trivial}" for path, fact in (evidence.golden or {}).items() if fact.trivial
    ]
    if evidence.knocked_out is None:
        not_asked.append("the forward does not end without its launches")
    if evidence.replayed is None:
        not_asked.append("no other inputs could be put in")
    return CaseSummary(evidence.case_idx, launches, told, not_asked=tuple(not_asked))

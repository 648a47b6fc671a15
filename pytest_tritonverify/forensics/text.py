"""A diagnosis as lines of a failure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import Diagnosis


def render(diagnosis: Diagnosis) -> list[str]:
    """Return the lines that tell people where and why an output fails.

    Args:
        diagnosis: What was found.

    Returns:
        `where: ...`, `likely cause: ...` (`cause: ...` where it is clear) and one
        `evidence: ...` for each fact. Where no cause is known, `cause: unclear; ...` says so.
    """
    lines = []
    where = diagnosis.region.get("text")
    if where:
        lines.append(f"where: {where}")
    if diagnosis.cause is None:
        lines.append("cause: unclear; no known pattern explains these values")
    else:
        word = "cause" if diagnosis.confidence == "clear" else "likely cause"
        lines.append(f"{word}: {diagnosis.cause}")
    lines.extend(f"evidence: {fact}" for fact in diagnosis.evidence)
    return lines

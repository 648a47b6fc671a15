"""What a record says where a kernel has left the tensors that it was given."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pytest_tritonverify.results.records import FAILED
from pytest_tritonverify.supervision import IMPLEMENTATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.reported import RunFacts, Stray
    from pytest_tritonverify.results.records import CaseRecord

ERROR_TYPE = "OutOfBoundsWrite"
WARNING = "out_of_bounds_read"
UNGUARDED = "unguarded_memory"

_WRITTEN = """\
{name}: a kernel writes outside of the tensors that it was given
{places}
On a device that changes other data, or ends the program. Give the access a mask that is off there,
or make the grid and the offsets end where the tensor does."""
_BREACHED = """\
{name}: memory beside a tensor was written to
{places}
Kernels launched: {kernels}. The outputs may be right all the same: what lay there belonged to
nobody this time. Give the store a mask that is off there, or make the grid and the offsets end
where the tensor does."""
_READ = (
    "a kernel reads outside of the tensors that it was given, where a device may find anything or "
    "end the program; here it found NaN, or the largest integer; give the load a mask that is off "
    "there: {places}"
)
_MOST_READS = 4


def noted(record: CaseRecord, strays: Sequence[Stray]) -> CaseRecord:
    """Return the record of a case with what is to be said of its stray accesses.

    Writing outside of tensors fails a case, whatever its outputs are. Reading there is a warning
    where the outputs are right, and part of the explanation where they are not.

    Args:
        record: the outcome of the comparison, or the failure of the run.
        strays: what the run's kernels accessed outside of tensors.
    """
    writes = [stray for stray in strays if stray.writes]
    if writes:
        text = _WRITTEN.format(name=ERROR_TYPE, places=_listed(writes))
        if not record.passed:
            text += f"\nBesides: {record.error_msg}"
        return dataclasses.replace(
            record,
            status=FAILED,
            side=IMPLEMENTATION,
            phase=record.phase or "forward",
            error_type=ERROR_TYPE,
            error_msg=text,
            file=writes[0].file,
            line=writes[0].line,
        )
    reads = [stray for stray in strays if not stray.writes]
    if not reads:
        return record
    text = _READ.format(places="; ".join(str(stray) for stray in reads[:_MOST_READS]))
    if not record.passed:
        return dataclasses.replace(record, error_msg=f"{record.error_msg}\nBesides, {text}")
    caution = {"code": WARNING, "message": text}
    return dataclasses.replace(record, warnings=[*record.warnings, caution])


def breached(record: CaseRecord, facts: RunFacts) -> CaseRecord:
    """Return the record of a case with what guard bands have shown.

    Args:
        record: the outcome of the comparison, or the failure of the run.
        facts: what is known of the run.
    """
    if facts.unguarded:
        text = f"not all memory lay between guard bands: {facts.unguarded}"
        caution = {"code": UNGUARDED, "message": text}
        record = dataclasses.replace(record, warnings=[*record.warnings, caution])
    if not facts.breaches:
        return record
    kernels = dict.fromkeys(launch.kernel for launch in facts.launches)
    text = _BREACHED.format(
        name=ERROR_TYPE,
        places="\n".join(f"  {breach}" for breach in facts.breaches),
        kernels=", ".join(kernels) or "none",
    )
    if not record.passed:
        text += f"\nBesides: {record.error_msg}"
    # Where the only kernel stands, that is the one to be mended.
    first = facts.launches[0] if len(kernels) == 1 else None
    return dataclasses.replace(
        record,
        status=FAILED,
        side=IMPLEMENTATION,
        phase=record.phase or "forward",
        error_type=ERROR_TYPE,
        error_msg=text,
        file=first.file if first else record.file,
        line=first.line if first else record.line,
    )


def _listed(strays: Sequence[Stray]) -> str:
    return "\n".join(f"  {stray}" for stray in strays)

"""What a record says where a kernel uses lanes that a masked load leaves undefined."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pytest_tritonverify import out_of_bounds
from pytest_tritonverify.results.records import FAILED
from pytest_tritonverify.supervision import IMPLEMENTATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.reported import UndefinedLoad
    from pytest_tritonverify.results.records import CaseRecord

ERROR_TYPE = "MaskedLaneRead"

_TEXT = """\
{name}: the result depends on lanes that a masked tl.load without `other` leaves undefined
{places}
Triton's interpreter and most GPUs put zeros there, and with zeros this case passes. An Ascend
core leaves there whatever its buffer held.
With other numbers in these lanes: {original}
Give the load a value that the computation can't feel: other=0.0 before a sum or a dot product,
other=-float('inf') before a maximum. --verify-masked-lanes=zero judges with zeros."""


def blamed(record: CaseRecord, loads: Sequence[UndefinedLoad]) -> CaseRecord:
    """Return the record of a case that fails with poison in these lanes and passes with zeros.

    Args:
        record: the outcome with poison: a failure, or values that are right although the kernel
            has left its tensors.
        loads: the loads that left lanes undefined, at least one.
    """
    places = "\n".join(f"  {load}: the load left {_lanes(load.lanes)} undefined" for load in loads)
    strayed = "a kernel accesses memory outside of the tensors that it was given"
    original = (record.error_msg or strayed).partition("\n")[0]
    text = _TEXT.format(name=ERROR_TYPE, places=places, original=original)
    return dataclasses.replace(
        record,
        status=FAILED,
        side=IMPLEMENTATION,
        warnings=[entry for entry in record.warnings if entry["code"] != out_of_bounds.WARNING],
        error_type=ERROR_TYPE,
        error_msg=text,
        phase="compare",
        file=loads[0].file,
        line=loads[0].line,
    )


def cleared(record: CaseRecord, loads: Sequence[UndefinedLoad]) -> CaseRecord:
    """Return the record of a case that fails with poison in these lanes and with zeros."""
    places = ", ".join(str(load) for load in loads)
    note = f"It fails too with zeros in the lanes that the load at {places} leaves undefined."
    return dataclasses.replace(record, error_msg=f"{record.error_msg}\n{note}")


def _lanes(count: int) -> str:
    return "1 lane" if count == 1 else f"{count} lanes"

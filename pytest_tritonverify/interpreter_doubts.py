"""Warn where Triton's interpreter, as it is here, may be wrong about a case."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.reported import RunFacts
    from pytest_tritonverify.results.records import CaseRecord

CODE = "interpreter_low_precision"
BLOCK_POINTERS = "removed_block_pointers"
_LOW_PRECISION = re.compile(r"\b(bfloat16|float8_\w+)")


def doubted(record: CaseRecord, environment: Mapping[str, Any]) -> CaseRecord:
    """Return a record with the doubts that its dtypes raise.

    Args:
        record: the outcome of a case that ran on the interpreter.
        environment: sections of the result file; `interpreter` says what was corrected.
    """
    left_wrong = environment.get("interpreter", {}).get("not_applied", {})
    reason = left_wrong.get("low_precision")
    dtypes = _LOW_PRECISION.findall(str([record.input_desc, [o["dtype"] for o in record.outputs]]))
    if reason is None or not dtypes:
        return record
    # What `interpreter` reports where the package of the array types is missing.
    remedy = "pip install ml_dtypes" if reason.startswith("ml_dtypes") else "judge on a device"
    warning = {
        "code": CODE,
        "message": f"{', '.join(sorted(set(dtypes)))} may be judged wrongly: this interpreter "
        f"computes it wrongly and could not be corrected ({reason}); {remedy}",
    }
    return dataclasses.replace(record, warnings=[*record.warnings, warning])


def restored(record: CaseRecord, facts: RunFacts) -> CaseRecord:
    """Return a record with a word on block pointers, where this Triton has removed them."""
    if not facts.block_pointers:
        return record
    warning = {
        "code": BLOCK_POINTERS,
        "message": "the kernel uses tl.make_block_ptr, which this Triton has removed: it was "
        "judged by what Triton 3.8 and triton-ascend 3.2 make of it, and a device with this "
        "version refuses it",
    }
    return dataclasses.replace(record, warnings=[*record.warnings, warning])

"""Turn what the examination at run time found into the outcome of a check, by the user's policy."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pytest_tritonverify.results.records import (
    FAILED,
    FALLBACK,
    NOT_OBSERVED,
    PASSED,
    WARNED,
    CheckRecord,
    fallback_message,
)

if TYPE_CHECKING:
    from pytest_tritonverify.evidence.report import ExecutionReport

CHECK = "execution"

# The documented types of findings; all others show that something besides kernels works: type 3.
_TYPES = {"no_launch": 2, "launch_not_needed": 4}
_PARTIAL = 3
# What the policy "partial" of the static check allows, seen at run time.
_OPEN_WORK = ("torch_compute", "moving_in_torch", "device_kernel")


def concluded(report: ExecutionReport, policy: str, *, partial: bool = False) -> CheckRecord:
    """Return the outcome of an examination.

    Args:
        report: what was found.
        policy: "fail" or "warn".
        partial: PyTorch may compute openly beside kernels that do real work.
    """
    content = report.to_json()
    if partial:
        kept = tuple(f for f in report.findings if f.code not in _OPEN_WORK)
        report = dataclasses.replace(report, findings=kept)
    if report.passed:
        return CheckRecord(name=CHECK, status=PASSED, seconds=report.seconds, report=content)
    gravest = (*report.violations, *report.errors)[0]
    regression_type = None
    error_type, text = NOT_OBSERVED, f"{NOT_OBSERVED}: {report.message()}"
    if report.violations:
        regression_type = min(_TYPES.get(f.code, _PARTIAL) for f in report.violations)
        error_type, text = FALLBACK, fallback_message(regression_type, report.message())
    return CheckRecord(
        name=CHECK,
        status=FAILED if policy == "fail" else WARNED,
        seconds=report.seconds,
        regression_type=regression_type,
        error_type=error_type,
        message=text,
        file=gravest.file,
        line=gravest.line,
        report=content,
    )

"""The static degeneration check: does PyTorch do a kernel's work? Nothing is imported or run."""

from pytest_tritonverify.degeneration.check import check_source
from pytest_tritonverify.degeneration.report import Movement, Note, Report, Violation

__all__ = ["Movement", "Note", "Report", "Violation", "check_source"]

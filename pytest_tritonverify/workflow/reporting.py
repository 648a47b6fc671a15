"""Phase 5: what the outcome of a work directory leaves on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify.workflow import files, layout, report, summary

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.workflow.outcome import Outcome


def write(
    outcome: Outcome, *, arch: str | None = None, skill_path: str = summary.SKILL_PATH
) -> tuple[dict[str, Any], list[Path]]:
    """Write `report.md`, `summary.json` and, where there is a kernel, `<op>_generated.py`.

    Args:
        outcome: what the work directory has come to.
        arch: as for `report.text`.
        skill_path: as for `summary.document`.

    Returns:
        The summary, and the files that were written.

    Raises:
        files.FileError: a file can't be written, or the final code is gone.
    """
    folder = outcome.work.folder
    content = summary.document(outcome, skill_path)
    written = []
    code = outcome.final_code
    if code is not None:
        data = files.read_bytes(code, "it is the code that the workflow has ended with")
        files.write_bytes(outcome.work.final_code, data)
        written.append(outcome.work.final_code)
    files.write_text(folder / layout.REPORT, report.text(outcome, arch))
    files.write_object(folder / layout.SUMMARY, content)
    return content, [*written, folder / layout.REPORT, folder / layout.SUMMARY]

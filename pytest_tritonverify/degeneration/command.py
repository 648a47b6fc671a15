"""The command `validate`: check one file, print the report, answer by the exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pytest_tritonverify import discovery
from pytest_tritonverify.degeneration.check import absent, check_source


def validate(path: str, *, as_json: bool = False, non_compute: bool = False) -> int:
    """Check a file and print what was found.

    The task file, where one lies beside the implementation under its name, only says whether moving
    data is the task.

    Args:
        path: the implementation.
        as_json: print the documented JSON instead of text.
        non_compute: the task moves data only.

    Returns:
        0 for a file that passes, 1 for one that does not or can't be read.
    """
    file = Path(path)
    try:
        source = file.read_bytes()
    except OSError as error:
        report = absent(path, error)
    else:
        report = check_source(
            source, filename=path, non_compute=non_compute, reference=_reference(file)
        )
    if as_json:
        text = json.dumps(report.to_json(), ensure_ascii=False, indent=2)
    else:
        text = report.to_text()
    sys.stdout.write(text + "\n")
    return 0 if report.passed else 1


def _reference(file: Path) -> bytes | None:
    pair = discovery.pair_of(file)
    if pair is None:
        return None
    try:
        return pair.task.read_bytes()
    except OSError:
        return None

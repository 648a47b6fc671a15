"""`vllm_gpu_perf.csv`: how long GPU kernels take, by name."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify import figures
from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "vllm_gpu_perf.csv"
LEVELS_UP = 3
"""Folders above that of the description file in which it is looked for."""

NOT_FOUND = "未找到 GPU 性能基线"

_NAME = "Name"
_DURATION = "Duration(us)"
_US_PER_MS = 1000


@dataclass(frozen=True)
class Reference:
    """The GPU's time for an operator.

    Attributes:
        milliseconds: of one run.
        path: the file that says so.
    """

    milliseconds: float
    path: Path


def find(folder: Path) -> Path | None:
    """Return the nearest file in a folder or up to three folders above it."""
    for place in (folder, *list(folder.parents)[:LEVELS_UP]):
        if (place / FILE_NAME).is_file():
            return place / FILE_NAME
    return None


def read(path: Path, op_name: str) -> Reference:
    """Read the GPU's time for an operator.

    The row whose `Name` is the operator's counts; a file with one row needs no names.

    Raises:
        files.FileError: it can't be read, or holds no time for the operator, or several.
    """
    advice = f"give a file with the columns {_NAME} and {_DURATION}"
    data = files.read_bytes(path, advice)
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig")), skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise files.FileError(f"{path} is no CSV file in UTF-8 ({error}): {advice}") from None
    table = [
        {(name or "").strip(): (value or "").strip() for name, value in row.items() if name}
        for row in rows
    ]
    if not table or _DURATION not in table[0]:
        raise files.FileError(f"{path} has no column {_DURATION}: {advice}")
    found = [row for row in table if row.get(_NAME, op_name) == op_name]
    if len(found) != 1:
        count = f"{len(found)} rows" if found else "no row"
        raise files.FileError(
            f"{path} has {count} for `{op_name}`: leave exactly one whose {_NAME} is {op_name}"
        )
    try:
        microseconds = figures.positive(float(found[0][_DURATION]))
    except ValueError:
        microseconds = None
    if microseconds is None:
        raise files.FileError(
            f"{path}: {_DURATION} of `{op_name}` is {found[0][_DURATION]!r:.60}, no time above 0"
        )
    return Reference(microseconds / _US_PER_MS, path)

"""The documented work directory: which file is where, and which phase it speaks of.

```text
<work directory>/
  <op>.py  <op>.json           the task, and its cases where it has several
  output/generated_code.py     what Phase 3 has ended with
  output/iter_<N>/             generated_code.py, verify/, perf_result.json
  output/opt_iter_<N>/         optimized_code.py, verify/, optimized_perf_result.json, ...
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.discovery import DEFAULT_VARIANT, TASK_SUFFIX
from pytest_tritonverify.workflow import files, verification

if TYPE_CHECKING:
    from pathlib import Path

MAX_ITERATIONS = 5
"""Rounds that Phase 3 has."""

GENERATED = "generated_code.py"
OPTIMIZED = "optimized_code.py"
PERF_RESULT = "perf_result.json"
SUMMARY = "summary.json"
REPORT = "report.md"

_FINAL_SUFFIX = "_generated"
_ITERATION = re.compile(r"iter_(\d{1,6})")
_OPT_ITERATION = re.compile(r"opt_iter_(\d{1,6})")


@dataclass(frozen=True)
class Round:
    """One round of Phase 3 (`iter_<N>`) or of Phase 4 (`opt_iter_<N>`).

    Attributes:
        number: N.
        folder: its folder.
        op_name: the operator.
        optimizing: it belongs to Phase 4.
    """

    number: int
    folder: Path
    op_name: str
    optimizing: bool = False

    @property
    def code(self) -> Path:
        """The code that the round has made."""
        return self.folder / (OPTIMIZED if self.optimizing else GENERATED)

    @property
    def task(self) -> Path:
        """The task, as the round was verified with it."""
        return self.folder / "verify" / f"{self.op_name}{TASK_SUFFIX}.py"

    @property
    def implementation(self) -> Path:
        """The code, as it was verified."""
        variant = "optimized" if self.optimizing else DEFAULT_VARIANT
        return self.folder / "verify" / f"{self.op_name}_triton_{variant}.py"

    @property
    def verify_result(self) -> Path:
        """The verdict on the code."""
        suffix = "_optimized" if self.optimizing else ""
        return self.folder / "verify" / f"verify_result{suffix}.json"

    @property
    def perf_result(self) -> Path:
        """The measurement of the code."""
        return self.folder / (f"optimized_{PERF_RESULT}" if self.optimizing else PERF_RESULT)

    @property
    def baseline_perf_result(self) -> Path:
        """The copy of Phase 3's measurement with which a round of Phase 4 is compared."""
        return self.folder / f"baseline_{PERF_RESULT}"


@dataclass(frozen=True)
class WorkDir:
    """A work directory.

    Attributes:
        folder: its absolute path.
        op_name: the operator.
        iterations: the rounds of Phase 3, by number.
        opt_iterations: the rounds of Phase 4, by number.
    """

    folder: Path
    op_name: str
    iterations: tuple[Round, ...]
    opt_iterations: tuple[Round, ...]

    @property
    def task(self) -> Path:
        """The task file."""
        return self.folder / f"{self.op_name}.py"

    @property
    def stored_data(self) -> Path:
        """The file with the inputs and outputs of a GPU kernel, in GPU-kernel mode."""
        return self.folder / f"{self.op_name}.pt"

    @property
    def generated(self) -> Path:
        """The code that Phase 3 has ended with."""
        return self.folder / "output" / GENERATED

    @property
    def final_code(self) -> Path:
        """Where the code goes that everything has ended with."""
        return self.folder / f"{self.op_name}{_FINAL_SUFFIX}.py"

    @property
    def entered_phase_4(self) -> bool:
        """Whether the workflow has gone on to optimise."""
        return bool(self.opt_iterations) or (self.folder / "output" / OPTIMIZED).exists()

    @property
    def claims_phase_3(self) -> bool:
        """Whether the workflow took its Phase 3 for passed: it copies the code only then."""
        return self.generated.exists() or self.entered_phase_4

    def phase3_last_iter(self, wanted: int | None = None) -> Round | None:
        """Return the round that Phase 3 has ended with.

        It is the last one whose code is the copied one; else the last one that has passed; else
        the last one.

        Args:
            wanted: its number, where the workflow has recorded it.

        Raises:
            files.FileError: there is no such round.
        """
        if wanted is not None:
            for found in self.iterations:
                if found.number == wanted:
                    return found
            raise files.FileError(
                f"there is no {self.folder / 'output' / f'iter_{wanted}'}: give the number of a "
                f"round that is there ({_numbers(self.iterations)})"
            )
        copied = _content(self.generated)
        rounds = tuple(reversed(self.iterations))
        same = (r for r in rounds if copied is not None and _content(r.code) == copied)
        passed = (r for r in rounds if _has_passed(r))
        return next(same, None) or next(passed, None) or next(iter(rounds), None)


def open_workdir(folder: Path, op_name: str | None = None) -> WorkDir:
    """Find out what a work directory holds.

    Args:
        folder: the work directory.
        op_name: the operator, where its name can't be told from the files.

    Raises:
        files.FileError: it is no work directory, or the operator's name is not clear.
    """
    if not folder.is_dir():
        raise files.FileError(f"there is no folder {folder}: give a work directory", missing=True)
    folder = folder.resolve()
    output = folder / "output"
    if not output.is_dir() and folder.name == "output":
        raise files.FileError(f"{folder} is within a work directory: give {folder.parent}")
    named = op_name or _operator(folder)
    return WorkDir(
        folder,
        named,
        _rounds(output, _ITERATION, named, optimizing=False),
        _rounds(output, _OPT_ITERATION, named, optimizing=True),
    )


def is_workdir(folder: Path) -> bool:
    """Say whether a folder looks like a work directory."""
    if (folder / SUMMARY).is_file():
        return True
    output = folder / "output"
    return output.is_dir() and any(_ITERATION.fullmatch(path.name) for path in output.iterdir())


def _rounds(
    output: Path, pattern: re.Pattern[str], op_name: str, *, optimizing: bool
) -> tuple[Round, ...]:
    found = []
    for path in output.iterdir() if output.is_dir() else ():
        match = pattern.fullmatch(path.name)
        if match and path.is_dir():
            found.append(Round(int(match[1]), path, op_name, optimizing))
    return tuple(sorted(found, key=lambda one: one.number))


def _operator(folder: Path) -> str:
    """Return the operator's name: that of the task, or of what was verified."""
    tasks = {
        path.stem
        for path in folder.glob("*.py")
        if not path.stem.endswith(_FINAL_SUFFIX) and path.is_file()
    }
    verified = {
        path.stem.removesuffix(TASK_SUFFIX)
        for path in folder.glob(f"output/*iter_*/verify/*{TASK_SUFFIX}.py")
    }
    both = tasks & verified
    found = sorted(both or tasks or verified)
    if len(found) == 1:
        return found[0]
    if found:
        raise files.FileError(
            f"{folder} may be the work directory of {' or '.join(found)}: say which with --op-name"
        )
    raise files.FileError(
        f"{folder} is no work directory: there is no task <op>.py in it, nor anything verified "
        f"below output/iter_<N>/verify"
    )


def _numbers(rounds: tuple[Round, ...]) -> str:
    return ", ".join(str(one.number) for one in rounds) or "none"


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _has_passed(one: Round) -> bool:
    try:
        return verification.read(one.verify_result).all_passed
    except files.FileError:
        return False

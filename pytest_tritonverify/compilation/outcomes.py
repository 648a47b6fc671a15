"""What came of compiling: read from an untrusted process, judged, and told."""

from __future__ import annotations

import dataclasses
import linecache
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import refusals, words
from pytest_tritonverify.execution import errors
from pytest_tritonverify.results.records import FAILED, PASSED, SKIPPED, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_tritonverify.compilation.launches import Launch
    from pytest_tritonverify.compilation.targets import Target
    from pytest_tritonverify.compilation.toolchains import Toolchain

CHECK = "compile"
COMPILATION_ERROR = "CompilationError"
NOT_COMPILED_ERROR = "NotCompiled"

STAGES = ("ttir", "ttgir", "linalg", "hivm", "llir", "ptx", "amdgcn", "binary")
# Where nothing was refused; before code generation, and with it.
_FINISHED = ("hivm", "binary")
MIX_MODES = ("aiv", "aic", "mix")
_FIGURES = (
    "memory_bits",
    "memory_bits_available",
    "shared_bytes",
    "shared_bytes_available",
    "registers",
    "scalar_registers",
    "spilled_registers",
    "spilled_bytes",
)
_KINDS = (*words.SUBKINDS, refusals.NOT_COMPILED)
_LARGEST = 1 << 53
_MOST_TOLD = 8
_MOST_WORDS = 12
_MOST_NUMBERS = 12
_LONGEST_WORDS = 2000


@dataclass(frozen=True)
class Refusal:
    """Why a kernel could not be compiled.

    Attributes:
        subkind: one of `words.SUBKINDS`, or "not_compiled" where no compiler was asked.
        message: what is wrong, in a line.
        words: what the compiler said.
        file: the source file that it is about.
        line: the line there.
    """

    subkind: str
    message: str
    words: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of compiling one launch for one target.

    Attributes:
        launch: the launch.
        target: the target.
        cases: numbers of the cases that made the launch.
        stage: the last stage that was finished, one of `STAGES`.
        mix_mode: which cores of an NPU it is for.
        memory_space: which on-chip memory the figures are about, such as "ub".
        figures: registers, memory and spills, as far as the compiler tells them.
        seconds: wall time.
        refusal: why it failed; None where it compiles.
    """

    launch: Launch
    target: Target
    cases: tuple[int, ...]
    stage: str | None = None
    mix_mode: str | None = None
    memory_space: str | None = None
    figures: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    refusal: Refusal | None = None

    @classmethod
    def read(
        cls, told: Mapping[str, Any], launch: Launch, target: Target, cases: Sequence[int]
    ) -> Outcome:
        """Read what a compiling process tells; what is not in its proper form is left out."""
        stage, mode, seconds = told.get("stage"), told.get("mix_mode"), told.get("seconds")
        given = told.get("figures")
        figures = given if isinstance(given, dict) else {}
        space = figures.get("memory_space")
        refusal = _refusal(told.get("error"))
        if refusal is None and stage not in _FINISHED:
            refusal = Refusal(words.CRASH, "the compiling process sent no proper outcome")
        return cls(
            launch,
            target,
            tuple(cases),
            stage if stage in STAGES else None,
            mode if mode in MIX_MODES else None,
            errors.printable(space)[:20] if isinstance(space, str) else None,
            {
                name: figures[name]
                for name in _FIGURES
                if type(figures.get(name)) is int and 0 <= figures[name] < _LARGEST
            },
            float(seconds) if isinstance(seconds, float) and 0 <= seconds < _LARGEST else 0.0,
            refusal,
        )

    @property
    def place(self) -> tuple[str, int]:
        """File and line of the kernel that a failure is about."""
        refusal = self.refusal
        if refusal is None or refusal.file is None or refusal.line is None:
            return self.launch.file, self.launch.line
        return refusal.file, refusal.line

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a result file."""
        refusal = None
        if self.refusal is not None:
            file, line = self.place
            refusal = {
                **dataclasses.asdict(self.refusal),
                "words": errors.clip(self.refusal.words, _LONGEST_WORDS),
                "file": _base(file),
                "line": line,
            }
        return {
            "target": self.target.name,
            "kernel": self.launch.kernel,
            "file": _base(self.launch.file),
            "line": self.launch.line,
            "specialization": self.launch.description,
            "cases": list(self.cases),
            "compiles": self.refusal is None,
            "stage": self.stage,
            "mix_mode": self.mix_mode,
            "memory_space": self.memory_space,
            **{name: self.figures.get(name) for name in _FIGURES},
            "seconds": self.seconds,
            "error": refusal,
        }


def _base(file: str) -> str:
    # Contents only: results are copied to places where a path means nothing.
    return os.path.basename(file)  # noqa: PTH119 - a foreign string


def _refusal(told: object) -> Refusal | None:
    if told is None:
        return None
    given = told if isinstance(told, dict) else {}

    def text(name: str, limit: int) -> str:
        value = given.get(name)
        return errors.clip(errors.printable(value), limit) if isinstance(value, str) else ""

    kind, line = given.get("subkind"), given.get("line")
    return Refusal(
        kind if kind in _KINDS else words.CRASH,
        text("message", 1000) or "the compiling process did not say why",
        text("words", 8000),
        text("file", 4096) or None,
        line if type(line) is int and 0 < line < 1 << 31 else None,
    )


@dataclass(frozen=True)
class CompileReport:
    """What came of compiling a pair's kernels.

    Attributes:
        toolchains: what compiled, by target.
        outcomes: one for each launch and target.
        unknown: why the launches of a case are not known, by its number.
        left_out: launches that were too many to be recorded.
        seconds: wall time.
    """

    toolchains: Mapping[Target, Toolchain]
    outcomes: tuple[Outcome, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)
    left_out: int = 0
    seconds: float = 0.0

    @property
    def refused(self) -> tuple[Outcome, ...]:
        """The launches that don't compile."""
        return tuple(one for one in self.outcomes if one.refusal is not None)

    def to_json(self) -> dict[str, Any]:
        """Return the section of a result file, less its verdict."""
        return {
            "targets": {
                target.name: dict(toolchain.versions)
                for target, toolchain in self.toolchains.items()
            },
            "kernels": [one.to_json() for one in self.outcomes],
            "unknown_cases": {str(case): why for case, why in self.unknown.items()},
            "left_out": self.left_out,
        }


def concluded(report: CompileReport, folder: Path) -> CheckRecord:
    """Return the outcome of the check.

    Args:
        report: what came of compiling.
        folder: the implementation's: places in it are shown.
    """
    record = CheckRecord(name=CHECK, status=PASSED, seconds=report.seconds, report=report.to_json())
    if not report.outcomes:
        return dataclasses.replace(record, status=SKIPPED, message=_nothing(report))
    if not report.refused:
        return dataclasses.replace(record, message=_incomplete(report))
    asked = [one for one in report.refused if _kind(one) != refusals.NOT_COMPILED]
    gravest = (asked or report.refused)[0]
    file, line = gravest.place
    shown = _is_within(file, folder)
    return dataclasses.replace(
        record,
        status=FAILED,
        error_type=COMPILATION_ERROR if asked else NOT_COMPILED_ERROR,
        message=_failure(report, gravest, folder, asked=bool(asked)),
        file=file if shown else None,
        line=line if shown else None,
    )


def _is_within(file: str, folder: Path) -> bool:
    path = Path(file)
    return folder in path.resolve().parents and path.suffix == ".py" and path.is_file()


def _kind(outcome: Outcome) -> str:
    return outcome.refusal.subkind if outcome.refusal is not None else ""


def _nothing(report: CompileReport) -> str:
    if not report.unknown:
        return "no kernel was compiled: the cases launch none"
    case, why = next(iter(report.unknown.items()))
    return f"no kernel was compiled, since no launch is known: case {case}: {why}"


def _incomplete(report: CompileReport) -> str | None:
    """Say what was not compiled although everything that was is right."""
    notes = [
        f"launches of case {case} are not known, so that none or not all of its kernels were "
        f"compiled: {why}"
        for case, why in report.unknown.items()
    ]
    if report.left_out:
        notes.append(f"{report.left_out} launches were too many or too large to be recorded")
    return "\n".join(notes) or None


def _failure(report: CompileReport, gravest: Outcome, folder: Path, *, asked: bool) -> str:
    refusal = gravest.refusal
    assert refusal is not None  # noqa: S101 - it is one of those that were refused
    count, total = len(report.refused), len(report.outcomes)
    name = COMPILATION_ERROR if asked else NOT_COMPILED_ERROR
    others = f" ({count} of {total} specialisations fail)" if total > 1 else ""
    where = f"{gravest.launch.kernel} for {gravest.target.name}"
    lines = [f"{name}: {where}: {refusal.subkind}: {refusal.message}{others}"]
    groups = list(_alike([gravest, *(one for one in report.refused if one is not gravest)]))
    for group in groups[:_MOST_TOLD]:
        lines += _told(group, folder)
    if len(groups) > _MOST_TOLD:
        lines.append(f"... and {len(groups) - _MOST_TOLD} more, which the result file tells")
    incomplete = _incomplete(report)
    return "\n".join([*lines, *([incomplete] if incomplete else [])])


def _alike(outcomes: Sequence[Outcome]) -> Iterable[list[Outcome]]:
    """Put together what fails in the same way, for other targets or other launches."""
    groups: dict[Refusal | None, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(one.refusal, []).append(one)
    return groups.values()


def _told(group: Sequence[Outcome], folder: Path) -> list[str]:
    refusal = group[0].refusal
    assert refusal is not None  # noqa: S101 - it is one of those that were refused
    lines = []
    for launch in list(dict.fromkeys(one.launch for one in group))[:_MOST_TOLD]:
        of = [one for one in group if one.launch == launch]
        names = ", ".join(one.target.name for one in of)
        lines.append(f"  {launch.kernel} for {names}, {_cases(of[0].cases)}")
        lines.append(f"    launched with {launch.description}")
    file, line = group[0].place
    # The place is what an untrusted process says: nothing else of this machine is shown for it.
    code = linecache.getline(file, line).strip() if _is_within(file, folder) else ""
    if code:
        lines.append(f"    {_base(file)}:{line}: {errors.clip(code, 200)}")
    lines.append(f"    {refusal.subkind}: {refusal.message}")
    said = [text for text in refusal.words.splitlines() if text.strip()]
    # The message may begin with the name of an exception, and not be in what was said.
    said = [text for text in said if not refusal.message.endswith(text.strip())]
    lines += [f"      {text}" for text in said[:_MOST_WORDS]]
    advice = _DECORATE if _CALLED.search(refusal.message) else _ADVICE.get(refusal.subkind)
    return [*lines, f"    {advice}"] if advice else lines


def _cases(numbers: Sequence[int]) -> str:
    word = "case" if len(numbers) == 1 else "cases"
    rest = ", ..." if len(numbers) > _MOST_NUMBERS else ""
    return f"{word} {', '.join(map(str, numbers[:_MOST_NUMBERS]))}{rest}"


_CALLED = re.compile(r"Unsupported function referenced|Cannot access global variable \w+ from")
_DECORATE = (
    "Hint: a function that a kernel calls needs @triton.jit, a variable that it reads has to be a "
    "tl.constexpr."
)
_ADVICE = {
    words.UB_OVERFLOW: (
        "Hint: what a program holds at once does not fit into the unified buffer; make the block "
        "smaller, or let the program loop over parts of it."
    ),
    words.MEMORY_OVERFLOW: (
        "Hint: what a program holds at once does not fit into the memory of the cube core; make "
        "the tiles of tl.dot smaller."
    ),
}

"""The result of a check, as the documented JSON and as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Policy = Literal["strict", "partial"]

TITLES = {
    1: "no Triton kernel",
    2: "no kernel is launched from ModelNew.forward",
    3: "part of the work is done outside of kernels",
    4: "the launched kernels compute nothing",
}


@dataclass(frozen=True, order=True)
class Violation:
    """Work that is not done by a kernel, or a way around the check.

    Attributes:
        line: from 1; 0 where the file as a whole is meant.
        column: from 1, in characters.
        call: what is called, or the operator.
        reason: why that is not allowed.
        kind: `torch`, `host`, `evasion`, `reference`, `unresolved` or `movement`.
        advice: what to do instead.
    """

    line: int
    column: int
    call: str
    reason: str
    kind: str = "torch"
    advice: str = ""


@dataclass(frozen=True, order=True)
class Note:
    """Something worth knowing that fails nothing.

    Attributes:
        line: from 1.
        column: from 1.
        code: the kind of note.
        message: what there is to know.
    """

    line: int
    column: int
    code: str
    message: str


@dataclass(frozen=True, order=True)
class Movement:
    """An operator of PyTorch that moves data without computing.

    Attributes:
        line: from 1.
        column: from 1.
        call: the operator.
    """

    line: int
    column: int
    call: str


@dataclass(frozen=True, order=True)
class Mistake:
    """Something that can't work as written, and is no way around the check either.

    Attributes:
        line: from 1; 0 where the file as a whole is meant.
        column: from 1, in characters.
        error_type: the exception that Python or Triton would raise.
        message: what is wrong, and what was probably meant.
    """

    line: int
    column: int
    error_type: str
    message: str


@dataclass(frozen=True)
class Report:
    """What the static check says about a file.

    Attributes:
        filename: the file, as it was named.
        regression_types: all documented types that apply, ascending.
        checks: the documented object: check name -> `passed` and details.
        violations: by line.
        mistakes: by line.
        notes: by line; they fail nothing.
        movements: by line.
        suggestion: what to do, empty for a file that passes.
        error: why the file could not be read, else None.
        error_type: the name of that failure.
        error_line: where in the file, if there.
        error_column: where in that line.
        mistaken: nothing but mistakes keeps the file from passing.
        lines: the source, for the text.
    """

    filename: str
    regression_types: tuple[int, ...]
    checks: dict[str, dict[str, Any]]
    violations: tuple[Violation, ...] = ()
    notes: tuple[Note, ...] = ()
    movements: tuple[Movement, ...] = ()
    suggestion: str = ""
    error: str | None = None
    error_type: str = "SyntaxError"
    error_line: int | None = None
    error_column: int = 0
    mistakes: tuple[Mistake, ...] = ()
    mistaken: bool = False
    lines: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether no documented type applies, and the file can work as far as can be seen."""
        return not self.regression_types and not self.mistakes

    @property
    def regression_type(self) -> int | None:
        """The lowest type that applies."""
        return self.regression_types[0] if self.regression_types else None

    def to_json(self) -> dict[str, Any]:
        """Return the documented JSON, further keys at its end."""
        document: dict[str, Any] = {
            "valid": self.passed,
            "regression_type": self.regression_type,
            "checks": self.checks,
            "suggestion": self.suggestion,
            "filepath": self.filename,
            "regression_types": list(self.regression_types),
            "movements": [vars(m) for m in self.movements],
            "notes": [vars(n) for n in self.notes],
            "mistakes": [vars(m) for m in self.mistakes],
        }
        if self.error is not None:
            document["error"] = self.error
        elif self.mistaken:
            document["error"] = self.refusal_text().partition("\n")[0]
        return document

    def to_text(self, *, notes: bool = True) -> str:
        """Return the report for people, each place with its source line and a caret.

        Args:
            notes: whether to show what fails nothing, too.
        """
        if self.error is not None or self.mistaken:
            error_type = self.refusal_text().partition(": ")[0]
            end = [f"{self.filename}: failed: {error_type}", f"suggestion: {self.suggestion}"]
            return "\n".join([*self._refused(), *end])
        # Type 3 is its violations.
        out = [
            f"{self.filename}: error: Type {number}: {self._detail(number)}"
            for number in self.regression_types
            if number != 3 or not self.violations  # noqa: PLR2004
        ]
        for violation in self.violations:
            out += self._place(violation.line, violation.column, f"error: {violation.reason}")
            if violation.advice:
                out.append(f"  help: {violation.advice}")
        for mistake in self.mistakes:
            message = f"error: {mistake.error_type}: {mistake.message}"
            out += self._place(mistake.line, mistake.column, message)
        if notes:
            for movement in self.movements:
                message = f"note: `{movement.call}` moves data in PyTorch; no computation"
                out += self._place(movement.line, movement.column, message)
            for note in self.notes:
                out += self._place(note.line, note.column, f"note[{note.code}]: {note.message}")
        if self.passed:
            kernels = self.checks["kernel_called_from_forward"].get("called", [])
            out.append(f"{self.filename}: passed; kernels launched: {', '.join(kernels)}")
        else:
            types = ", ".join(f"Type {n} ({TITLES[n]})" for n in self.regression_types)
            out += [f"{self.filename}: failed: {types}", f"suggestion: {self.suggestion}"]
        return "\n".join(out)

    def refusal_text(self) -> str:
        """Return why a file that can't be read, or is only mistaken, fails.

        The first line says it all; the places follow as Python shows them.
        """
        mistakes = self.mistakes
        if self.error is not None:
            line, column = self.error_line or 0, self.error_column
            text = self.error.removeprefix(f"{self.error_type}: ")
            mistakes = (Mistake(line, column, self.error_type, text),)
        out = []
        for mistake in mistakes:
            out.append(f"{mistake.error_type}: {mistake.message}")
            if mistake.line:
                out.append(f'  File "{self.filename}", line {mistake.line}')
                out += self._shown(mistake.line, mistake.column)
        return "\n".join(out)

    def _refused(self) -> list[str]:
        if self.error is not None:
            where = (self.error_line or 0, self.error_column)
            return self._place(*where, f"error: {self.error}")
        out = []
        for mistake in self.mistakes:
            message = f"error: {mistake.error_type}: {mistake.message}"
            out += self._place(mistake.line, mistake.column, message)
        return out

    def _detail(self, number: int) -> str:
        name = list(self.checks)[{1: 0, 2: 1, 3: 2, 4: 3}[number]]
        return str(self.checks[name].get("error") or TITLES[number])

    def _place(self, line: int, column: int, message: str) -> list[str]:
        if not line:
            return [f"{self.filename}: {message}"]
        return [f"{self.filename}:{line}:{column}: {message}", *self._shown(line, column)]

    def _shown(self, line: int, column: int) -> list[str]:
        """Return a line of the source, and the caret under a column."""
        out = []
        if 0 < line <= len(self.lines):
            text = self.lines[line - 1]
            shown = text.strip()[:_WIDTH]
            start = column - 1 - (len(text) - len(text.lstrip()))
            out.append(f"    {shown}")
            if 0 <= start < _WIDTH:
                # Tabs and wide characters keep the caret under its column.
                lead = "".join("\t" if c == "\t" else _blank(c) for c in shown[:start])
                out.append(f"    {lead}^")
        return out


_WIDTH = 160


def _blank(char: str) -> str:
    import unicodedata

    return "  " if unicodedata.east_asian_width(char) in "WF" else " "

"""The static degeneration check: what a file's source says about who does the work."""

from __future__ import annotations

import ast
import contextlib
import gc
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration import findings, lints, slips
from pytest_tritonverify.degeneration.analysis import (
    Analysis,
    analyse,
    computes,
    decorated_kernels,
    dotted,
    flat_names,
)
from pytest_tritonverify.degeneration.code import Code
from pytest_tritonverify.degeneration.reading import Source, Unreadable, read
from pytest_tritonverify.degeneration.report import (
    Mistake,
    Movement,
    Note,
    Policy,
    Report,
    Violation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "ModelNew"
_ADVICE = {
    findings.TORCH: "compute this in a Triton kernel; PyTorch may allocate, view and convert",
    findings.HOST: "compute this in a Triton kernel; Python may compute sizes and constants",
    findings.EVASION: "call kernels and functions by their names, and leave the rest alone",
    findings.REFERENCE: "write the operator in this file, without the task's own code",
    findings.UNRESOLVED: "define what you call in this file, where the check can follow it",
    findings.MOVEMENT: "moving data is the task here: do it in a Triton kernel",
}
_SUGGESTIONS = {
    1: "Write the computation as a function decorated with @triton.jit and launch it from "
    "ModelNew.forward.",
    2: "Launch a kernel from ModelNew.forward: kernel[grid](...). Code that can't be reached from "
    "there does not count.",
    3: "Move the operations listed under violations into Triton kernels; PyTorch may only "
    "allocate, view and convert tensors.",
    4: "Let the kernel do the computation itself: one that only loads and stores hides work that "
    "is done elsewhere. Where the task only moves data, say so with --non-compute (under pytest "
    "--verify-non-compute).",
}


def check_source(
    source: bytes | str,
    *,
    filename: str,
    non_compute: bool = False,
    reference: bytes | str | None = None,
    policy: Policy = "strict",
) -> Report:
    """Check an implementation's source. Nothing is imported or run.

    Args:
        source: the implementation, as a file's bytes or as text.
        filename: its name, for the report.
        non_compute: the task moves data only, so a kernel may do so as well.
        reference: the task's source. One that moves data only has the same effect.
        policy: `strict`: only kernels compute. `partial`: PyTorch may compute beside kernels that
            do real work.

    Raises:
        TypeError: a source is neither bytes nor text.
    """
    with _collector_paused():
        try:
            parsed = read(source)
        except Unreadable as error:
            return unreadable(filename, str(error), error.line, error.column, source)
        result = analyse(parsed, MODEL, partial=policy == "partial")
        moving = _Moving(reference, given=non_compute)
        return _Judgement(parsed, result, moving, policy).report(filename)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    # A tree is many objects and no garbage: looking through them again and again takes a third of
    # the time that a long file needs.
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def unreadable(
    filename: str,
    reason: str,
    line: int = 0,
    column: int = 0,
    source: bytes | str = b"",
    *,
    error_type: str = "SyntaxError",
    suggestion: str = "",
) -> Report:
    """Return the report on a file that could not be read: it holds no kernel.

    Args:
        filename: its name.
        reason: why it could not be read.
        line: where, from 1; 0 where the file as a whole is meant.
        column: where, from 1.
        source: what could be read.
        error_type: the name of the failure.
        suggestion: what to do; by default to make valid Python of it.
    """
    checks: dict[str, dict[str, Any]] = {
        "triton_kernel_exists": {"passed": False, "kernels": [], "error": reason},
        "kernel_called_from_forward": {"passed": False, "called": []},
        "no_forbidden_torch_ops": {"passed": False, "violations": []},
        "kernel_does_compute": {"passed": False, "placeholders": []},
    }
    where = f" (line {line}, column {column})" if line else ""
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    return Report(
        filename,
        (1,),
        checks,
        suggestion=suggestion or f"Make the file valid Python first: {reason}{where}.",
        error=f"{reason}{where}",
        error_type=error_type,
        error_line=line or None,
        error_column=column,
        lines=tuple(text.split("\n")),
    )


def absent(filename: str, error: OSError) -> Report:
    """Return the report on a file that is not there, or may not be read.

    Args:
        filename: its name.
        error: what the operating system says.
    """
    cases: list[tuple[type[OSError], str, str]] = [
        (FileNotFoundError, "there is no such file", _PATH),
        (NotADirectoryError, "there is no such file: a part of its path is no folder", _PATH),
        (IsADirectoryError, "this is a folder", "Name the implementation's file, not its folder."),
        (PermissionError, "the file may not be read", "Change its permissions: chmod u+r."),
    ]
    other = (f"the file can't be read: {error.strerror or error}", _PATH)
    told = [(reason, what) for kind, reason, what in cases if isinstance(error, kind)]
    reason, suggestion = (told or [other])[0]
    error_type = type(error).__name__
    return unreadable(filename, reason, error_type=error_type, suggestion=suggestion)


_PATH = "Check the path; a relative one starts from the current folder."


class _Moving:
    """Whether moving data is the task, and which movement."""

    def __init__(self, reference: bytes | str | None, *, given: bool) -> None:
        self.only = self.copies = given
        self.names: set[str] = set()
        self.casts = False
        if reference is None:
            return
        try:
            parsed = read(reference)
        except Unreadable:
            return
        result = analyse(parsed, "Model")
        if result.missing or result.exhausted:
            return
        work = result.found.work
        # Indexing alone leaves no trace where an index may as well be a number.
        self.copies = given or not computes(result)
        moves = bool(work) and not computes(result)
        self.only = given or moves
        if moves:
            self.names = {f.reason.rpartition(".")[2] for f in result.found.moved.values()}
            self.casts = "cast" in work and not work & {"move", "gather", "reported"}

    def forbids(self, finding: findings.Finding) -> bool:
        """Say whether an implementation may not leave this movement to PyTorch."""
        if not self.only:
            return False
        if finding.kind == "reported":
            return finding.reason.rpartition(".")[2] in self.names
        if finding.kind == "cast":
            return self.casts
        return finding.kind in ("move", "copy")


class _Judgement:
    """From findings to the documented types."""

    def __init__(self, source: Source, result: Analysis, moving: _Moving, policy: Policy) -> None:
        self.source = source
        self.result = result
        self.moving = moving
        self.policy = policy
        self.names = flat_names(source)
        self.decorated = decorated_kernels(source, self.names)

    def report(self, filename: str) -> Report:
        result = self.result
        found = result.found
        kernels = self._kernel_names()
        launches = [x for x in found.launches.values() if not x.guarded]
        called = list(dict.fromkeys(x.kernel.name for x in launches))
        works = [(k, w) for k, w in result.works.items() if k in {x.kernel for x in launches}]
        idle = [k.name for k, w in works if not w.computes]
        real = any(w.computes for _, w in works) or (self.moving.copies and bool(works))
        violations = self._violations(real=real)
        exists = bool(kernels)
        launched = bool(called)
        does_compute = not launched or real
        types = []
        if not exists:
            types = [1]
        else:
            types += [] if launched else [2]
            types += [3] if violations else []
            types += [] if does_compute else [4]
        slip = slips.slips(result, self.source, self.names, filename, types)
        mistakes = sorted({self._mistake(node, text) for node, text in slip.texts})
        mistaken = slip.alone(types, violations)
        violations = slip.left(violations) if mistaken else violations
        checks = {
            "triton_kernel_exists": {"passed": exists, "kernels": kernels},
            "kernel_called_from_forward": {"passed": launched, "called": called},
            "no_forbidden_torch_ops": {
                "passed": not violations,
                "violations": [_as_json(v) for v in violations],
            },
            "kernel_does_compute": {"passed": launched and real, "placeholders": idle},
        }
        self._explain(checks, exists=exists, launched=launched, does_compute=does_compute)
        return Report(
            filename,
            tuple(types),
            checks,
            tuple(violations),
            tuple(sorted(self._notes())),
            tuple(sorted(self._movements())),
            slips.SUGGESTION if mistaken else " ".join(_SUGGESTIONS[n] for n in types),
            mistakes=tuple(mistakes),
            mistaken=mistaken,
            lines=self.source.lines,
        )

    def _explain(
        self, checks: dict[str, dict[str, Any]], *, exists: bool, launched: bool, does_compute: bool
    ) -> None:
        if not exists:
            checks["triton_kernel_exists"]["error"] = (
                "no function of the file is decorated with @triton.jit"
            )
        if not launched:
            reason = "no kernel is launched by code that ModelNew.forward reaches"
            if self.result.missing:
                reason = "the file has no class ModelNew"
            elif self.result.idle is not None:
                reason = "ModelNew has no forward"
            elif self.result.found.empty_launches:
                reason = "the only launches have an empty grid and run nothing"
            checks["kernel_called_from_forward"]["error"] = reason
        if not does_compute:
            checks["kernel_does_compute"]["error"] = (
                "the launched kernels only move data: nothing that they store has been computed"
            )

    def _kernel_names(self) -> list[str]:
        nodes = {k.function.node: k.name for k in self.result.kernels}
        nodes.update({n: n.name for n in self.decorated})
        ordered = sorted(nodes, key=lambda n: getattr(n, "lineno", 0))
        return list(dict.fromkeys(nodes[n] for n in ordered))

    def _violations(self, *, real: bool) -> list[Violation]:
        found = self.result.found
        violations = []
        for finding in found.found.values():
            if finding.kind == findings.MISTAKE:
                continue
            if finding.guarded and finding.kind not in (findings.EVASION, findings.REFERENCE):
                continue
            if self.policy == "partial" and real and finding.kind == findings.TORCH:
                continue
            violations.append(self._violation(finding, finding.kind))
        violations += [
            self._violation(finding, findings.MOVEMENT)
            for finding in found.moved.values()
            if not finding.guarded and self.moving.forbids(finding)
        ]
        for work in self.result.works.values():
            violations += [self._foreign(node, name) for node, name in work.foreign.items()]
        if self.result.exhausted:
            violations.append(
                Violation(0, 0, "", "the file is too entangled to be followed", findings.UNRESOLVED)
            )
        return sorted(set(violations))

    def _foreign(self, node: ast.AST, name: str) -> Violation:
        reason = f"a kernel calls `{name}`, which only Triton's interpreter lets it do"
        advice = "compute with triton.language alone; a device has nothing else"
        return Violation(*self._place(node), name, reason, findings.EVASION, advice)

    def _violation(self, finding: findings.Finding, kind: str) -> Violation:
        line, column = self._place(finding.node)
        reason = finding.reason
        if kind == findings.MOVEMENT:
            reason = f"PyTorch moves the data: `{reason}`"
        call = finding.call or self._text(finding.node)
        return Violation(line, column, call, reason, kind, _ADVICE[kind])

    def _mistake(self, node: ast.AST, text: str) -> Mistake:
        error_type, _, message = text.partition(": ")
        return Mistake(*self._place(node), error_type, message)

    def _movements(self) -> set[Movement]:
        moved = set()
        for finding in self.result.found.moved.values():
            if finding.kind in ("move", "reported") and not self.moving.forbids(finding):
                moved.add(Movement(*self._place(finding.node), finding.reason))
        return moved

    def _notes(self) -> set[Note]:
        notes = set()
        for finding in self.result.found.found.values():
            if finding.guarded and finding.kind not in (findings.EVASION, findings.REFERENCE):
                text = finding.call or self._text(finding.node)
                message = (
                    f"`{text}` computes where there is no accelerator; that is left to the run"
                )
                notes.add(Note(*self._place(finding.node), "device-fallback", message))
        for node in self.result.found.empty_launches.values():
            notes.add(Note(*self._place(node), "empty-grid", "this launch runs no program"))
        codes = {k.function.node: k.function.code for k in self.result.kernels}
        for kernel in self.decorated:
            codes.setdefault(kernel, Code(kernel))
        for body in codes.values():
            for node, code, message in lints.lint(body, self._name_of, self.source.text):
                notes.add(Note(*self._place(node), code, message))
        return notes

    def _name_of(self, node: ast.AST) -> str | None:
        return dotted(node, self.names)

    def _place(self, node: ast.AST) -> tuple[int, int]:
        line = getattr(node, "lineno", 0)
        return line, self.source.column(line, getattr(node, "col_offset", 0))

    def _text(self, node: ast.AST) -> str:
        """Return the text of what is called."""
        text = self.source.text(node.func if isinstance(node, ast.Call) else node)
        return text if len(text) <= _WIDTH else f"...{text[-_WIDTH:]}"


_WIDTH = 60


def _as_json(violation: Violation) -> dict[str, Any]:
    return {
        "line": violation.line,
        "call": violation.call,
        "reason": violation.reason,
        "column": violation.column,
        "kind": violation.kind,
        "advice": violation.advice,
    }

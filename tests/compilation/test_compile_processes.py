"""Compiling processes of a second interpreter: protocol, isolation, time limits, and absence.

The second interpreter is the same one, which finds this package in the way of a foreign one.
"""

from __future__ import annotations

import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import hints
from pytest_tritonverify.compilation import compiling, targets, values
from pytest_tritonverify.compilation.compiling import Compilations
from pytest_tritonverify.compilation.launches import Recording
from pytest_tritonverify.compilation.toolchains import Toolchain
from pytest_tritonverify.compilation.wishes import CompileWishes
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.settings import Settings
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_tritonverify.compilation.outcomes import CompileReport, Refusal

(TARGET,) = targets.parse(["cuda:90"])

_KERNELS = """
    import os
    import sys
    import time
    import triton
    import triton.language as tl

    FOREIGN = tl.constexpr("pytest" not in sys.modules and "" not in sys.path)

    def hang(_):
        time.sleep(600)

    def leave(_):
        os._exit(0)

    @triton.jit(repr=hang)
    def hanging(x):
        tl.store(x, 0.0)

    @triton.jit(repr=leave)
    def leaving(x):
        tl.store(x, 0.0)

    try:
        open(__file__.replace("_triton_x", "_torch")).close()
        PEEKED = tl.constexpr(True)
    except PermissionError:
        PEEKED = tl.constexpr(False)

    @triton.jit
    def peeking(x):
        tl.static_assert(FOREIGN, "it has the judge's modules")
        tl.static_assert(PEEKED, "it may not look")

    @triton.jit
    def naming(x):
        tl.store(x, PLAIN)

    PLAIN = 3
"""


def write(folder: Path, implementation: str) -> Pair:
    pair = Pair("op", "x", folder / "op_torch.py", folder / "op_triton_x.py")
    pair.task.write_text("secret = 1\n")
    pair.implementation.write_text(textwrap.dedent(implementation))
    return pair


def recorded(pair: Pair, *names: str) -> Recording:
    """What recording the launch of kernels with one tensor would have noted."""
    lines = pair.implementation.read_text().splitlines()
    tensor = {"k": "tensor", "dtype": "float32", "aligned": True, "small": True}
    launches = [
        {
            "name": name,
            "qualname": name,
            "file": str(pair.implementation),
            "line": 1 + next((k for k, x in enumerate(lines) if x.startswith(f"def {name}(")), 0),
            "args": {"x": tensor},
            "constants": [],
            "options": {},
            "closure": {},
            "annotations": {},
            "jit": {},
            "changed": {},
        }
        for name in names
    ]
    found = Recording.of({"launches": launches, "left_out": 0})
    assert found is not None
    return found


def make(python: str | None, limit: float) -> Compilations:
    wishes = CompileWishes(targets=(TARGET,), limit=limit)
    settings = Settings(compile=wishes, interpreter_jobs=2)
    return Compilations(settings, {TARGET: Toolchain(python, ())}, frozenset())


@pytest.fixture(scope="module")
def foreign() -> Iterator[Compilations]:
    found = make(sys.executable, 120.0)
    yield found
    found.close()


def compiled(
    compilations: Compilations, pair: Pair, *names: str, patience: float = 120.0
) -> CompileReport:
    told: list[tuple[int, int]] = []
    known = {1: recorded(pair, *names)}
    deadline = time.monotonic() + patience
    report = compilations.report(pair, known, {}, deadline, lambda *at: told.append(at))
    assert told == [(k, len(names)) for k in range(1, len(names) + 1)]
    return report


def refusals(report: CompileReport) -> dict[str, tuple[str, str]]:
    return {
        one.launch.kernel: (one.refusal.subkind, one.refusal.message)
        for one in report.outcomes
        if one.refusal is not None
    }


def test_a_compiler_that_hangs_is_ended(foreign: Compilations, tmp_path: Path) -> None:
    hasty = make(sys.executable, 0.5)
    hasty._hosts = foreign._hosts
    report = compiled(hasty, write(tmp_path, _KERNELS), "hanging")
    (outcome,) = report.outcomes
    assert refusals(report)["hanging"] == (
        "timeout",
        "the compiler did not finish within 0.5 s, and was ended",
    )
    assert outcome.seconds >= 0.5


def test_what_leaves_concerns_nobody_else(foreign: Compilations, tmp_path: Path) -> None:
    report = compiled(foreign, write(tmp_path, _KERNELS), "leaving", "peeking", "naming", "absent")
    found = refusals(report)
    assert found["leaving"][0] == "crash"
    assert "ended without a result: it left by itself with exit status 0" in found["leaving"][1]
    assert found["peeking"] == ("triton_error", "it may not look")
    assert found["naming"][0] == "triton_error"
    assert "PLAIN" in found["naming"][1]
    assert found["absent"][0] == "not_compiled"
    assert "has no absent in line 1" in found["absent"][1]
    assert [one.launch.kernel for one in report.outcomes] == [
        "leaving",
        "peeking",
        "naming",
        "absent",
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("open(__file__.replace('_triton_x', '_torch'))", "may not read op_torch.py"),
        ("import os; os._exit(3)", "exit status 3"),
    ],
)
def test_a_module_that_can_not_be_imported_says_why(
    source: str, said: str, foreign: Compilations, tmp_path: Path
) -> None:
    found = refusals(compiled(foreign, write(tmp_path, source), "kernel"))
    assert found["kernel"][0] == "not_compiled"
    assert "can't be imported where kernels are compiled" in found["kernel"][1]
    assert said in found["kernel"][1]


def test_a_module_that_hangs_is_ended_with_the_pairs_time(
    foreign: Compilations, tmp_path: Path
) -> None:
    pair = write(tmp_path, "import time; time.sleep(600)")
    kind, message = refusals(compiled(foreign, pair, "kernel", patience=1.0))["kernel"]
    assert kind == "not_compiled"
    assert message.startswith("the time that the pair may take is used up (--verify-timeout)")


def test_what_keeps_a_module_from_being_imported_is_told_of_the_right_interpreter() -> None:
    def refusal(phase: str, *, late: bool, python: str | None = "/a/python") -> Refusal:
        text = f"ModuleNotFoundError: No module named 'x'\nHint: {hints.MISSING_MODULE}"
        failure = Failure(IMPLEMENTATION, "ModuleNotFoundError", text, phase, "impl.py", 3)
        return compiling._refusal(failure, Toolchain(python, ()), late=late)

    missing = refusal("import", late=False)
    assert missing.words == "Hint: Install the package for /a/python, or drop the import."
    assert (missing.file, missing.line) == ("impl.py", 3)
    own = refusal("import", late=False, python=None)
    assert own.words == f"Hint: {hints.MISSING_MODULE}"
    hung = refusal("import", late=True)
    assert hung.message.endswith(
        "(--verify-timeout), and was so while the implementation was imported"
    )
    assert hung.line == 3
    # Nothing is known of what had not begun.
    assert refusal("start", late=True).words == ""


def test_an_interpreter_without_triton_says_so(tmp_path: Path) -> None:
    # As one that has nothing installed: no site-packages.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o700)
    compilations = make(str(bare), 1.0)
    try:
        found = refusals(compiled(compilations, write(tmp_path, "x = 1"), "kernel"))
    finally:
        compilations.close()
    assert found["kernel"][0] == "not_compiled"
    assert "No module named 'torch'" in found["kernel"][1]


def test_launches_of_a_function_are_described_by_its_place() -> None:
    def inner(x: Any) -> Any:
        return x

    place = values.place_of(inner)  # type: ignore[arg-type]  # a function is one
    assert place["name"] == "inner"
    assert place["file"] == __file__

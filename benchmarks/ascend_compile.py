"""Compile known kinds of kernels for devices that aren't here, and print what comes of them.

    python benchmarks/ascend_compile.py [--target NAME ...] [--ascend-python PATH] [--boundary]

Two tables in Markdown: an outcome for each kernel and target, and with --boundary the largest block
of a power of two that compiles and what is said of the next one.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import targets, toolchains, values
from pytest_tritonverify.compilation.compiling import Compilations
from pytest_tritonverify.compilation.launches import Recording
from pytest_tritonverify.compilation.wishes import CompileWishes
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from pytest_tritonverify.compilation.launches import Launch
    from pytest_tritonverify.compilation.outcomes import Outcome
    from pytest_tritonverify.compilation.targets import Target

HERE = Path(__file__).parent
TARGETS = ("Ascend910B4", "cuda:90", "hip:gfx942")
BOUNDARY_TARGETS = ("Ascend910B4", "Ascend950PR_9579")
BOUNDED = ("vector add", "fused softmax", "layer norm forward")
_LONGEST = 1 << 18
_WIDEST = 90


def module(name: str) -> ModuleType:
    """Import a module of kernels; Triton must not interpret them."""
    path = HERE / "compile_kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101 - it is a file of Python
    assert spec.loader is not None  # noqa: S101 - as above
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def recorded(launched: Sequence[tuple[str, Any, dict[str, Any]]]) -> list[Launch]:
    """Describe launches as recording them would."""
    found: list[Launch] = []
    for _, kernel, arguments in launched:
        function = kernel.fn
        parameters = inspect.signature(function).parameters.values()
        constants = [p.name for p in parameters if "constexpr" in str(p.annotation)]
        entry = {
            **values.place_of(function),
            "qualname": function.__qualname__,
            "args": {
                name: values.describe(value, constant=name in constants)
                for name, value in arguments.items()
            },
            "constants": constants,
            "options": {},
            "closure": {},
            "annotations": {},
            "jit": {},
            "changed": {},
        }
        recording = Recording.of({"launches": [entry]})
        assert recording is not None  # noqa: S101 - it is a proper one
        found += recording.launches
    return found


class Compiler:
    """Compiles launches of one module for some targets."""

    def __init__(self, wanted: tuple[Target, ...], python: Path | None) -> None:
        cores = len(os.sched_getaffinity(0))
        wishes = CompileWishes(targets=wanted, ascend_python=python)
        settings = Settings(compile=wishes, interpreter_jobs=cores, standin="off")
        found = toolchains.resolve(wanted, python, [HERE.parent, Path.cwd()])
        self.targets = list(found)
        self._compilations = Compilations(settings, found, frozenset())
        for line in self._compilations.described():
            print(f"<!-- {line} -->")

    def outcomes(self, name: str, launched: Sequence[Launch]) -> dict[tuple[str, str], Outcome]:
        """Return what comes of launches, by their key and the target's name."""
        path = HERE / "compile_kernels" / f"{name}.py"
        pair = Pair(name, "x", HERE / "no_task.py", path)
        known = {k: Recording((one,)) for k, one in enumerate(launched, 1)}
        report = self._compilations.report(pair, known, {}, time.monotonic() + 3600.0, self._say)
        return {(one.launch.key, one.target.name): one for one in report.outcomes}

    @staticmethod
    def _say(done: int, total: int) -> None:
        sys.stderr.write(f"\r{done} of {total}")
        sys.stderr.flush()

    def close(self) -> None:
        """End all processes."""
        self._compilations.close()


def shown(outcome: Outcome) -> str:
    """Return a cell of the table."""
    refusal = outcome.refusal
    if refusal is not None:
        text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(refusal.message.split()))
        text = text.replace("|", "\\|")
        return f"{refusal.subkind}: {text[:_WIDEST] + '...' if len(text) > _WIDEST else text}"
    facts = [outcome.mix_mode] if outcome.mix_mode else []
    if "registers" in outcome.figures:
        facts.append(f"{outcome.figures['registers']} registers")
    return "compiles" + (f" ({', '.join(facts)})" if facts else "")


def outcome_table(compiler: Compiler, name: str) -> None:
    """Print the outcome of every kernel of a module."""
    launched = module(name).launches()
    entries = recorded(launched)
    found = compiler.outcomes(name, entries)
    names = [target.name for target in compiler.targets]
    for (label, _, _), launch in zip(launched, entries, strict=True):
        cells = [shown(found[launch.key, target]) for target in names]
        print(f"| {label} | {' | '.join(cells)} |")


def boundary_table(compiler: Compiler) -> None:
    """Print the largest block that compiles, and what is said of the next one."""
    wanted = [one for one in module("tutorial").launches() if one[0] in BOUNDED]
    print("\n| kernel | target | largest block that compiles | the next one |")
    print("|---|---|---|---|")
    for label, kernel, arguments in wanted:
        blocks = [1 << power for power in range(10, _LONGEST.bit_length())]
        entries = recorded([(label, kernel, {**arguments, "BLOCK": block}) for block in blocks])
        found = compiler.outcomes("tutorial", entries)
        for target in compiler.targets:
            fits = [
                block
                for block, launch in zip(blocks, entries, strict=True)
                if found[launch.key, target.name].refusal is None
            ]
            at = blocks.index(max(fits)) + 1 if fits else 0
            following = "none was tried"
            if at < len(blocks):
                following = f"{blocks[at]}: {shown(found[entries[at].key, target.name])}"
            print(f"| {label} | {target.name} | {max(fits, default='none')} | {following} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Compile known kinds of kernels.")
    parser.add_argument("--target", action="append", help="default: " + ", ".join(TARGETS))
    parser.add_argument("--ascend-python", type=Path, metavar="PATH")
    parser.add_argument("--boundary", action="store_true", help="print the second table instead")
    asked = parser.parse_args()
    default = BOUNDARY_TARGETS if asked.boundary else TARGETS
    compiler = Compiler(targets.parse(asked.target or default), asked.ascend_python)
    try:
        if asked.boundary:
            boundary_table(compiler)
            return
        names = [target.name for target in compiler.targets]
        print(f"\n| kernel | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
        for name in ("tutorial", "troubles"):
            outcome_table(compiler, name)
    finally:
        compiler.close()


if __name__ == "__main__":
    main()

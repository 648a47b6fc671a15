"""The interpreters that have a compiler: this one, or a second one with triton-ascend.

triton and triton-ascend are both the package `triton`, so that they can't be installed side by
side: whoever has one of them compiles with the other one by a second interpreter.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import targets
from pytest_tritonverify.compilation.options import ASCEND_PYTHON
from pytest_tritonverify.compilation.targets import NPU, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

BESIDE = ".venv-ascend"
"""Folder of a virtual environment that is found without being named."""

_PROBE_TIMEOUT = 60
_NEEDED = ("triton-ascend", "torch")
_ADVICE = (
    f"`make ascend-env` in this plugin's repository makes {BESIDE}; or install triton-ascend, "
    "ascendnpu-ir, torch (for the CPU) and what the implementations import into a virtual "
    f"environment without triton, and name its interpreter with {ASCEND_PYTHON}=PATH"
)
_BACK_ENDS = {targets.CUDA: "nvidia", targets.HIP: "amd"}

# Run by the interpreter in question, which need not have this package.
_PROBE = """
import importlib.metadata, importlib.util, json, os, re, shutil, subprocess
versions, found, problem = {}, [], None
for name in ("triton-ascend", "ascendnpu-ir", "torch", "triton"):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
compiler = shutil.which("bishengir-compile")
spec = importlib.util.find_spec("ascendnpuir")
if compiler is None and spec is not None:
    compiler = os.path.join(list(spec.submodule_search_locations)[0], "bin", "bishengir-compile")
if compiler is None:
    problem = "there is no bishengir-compile (install ascendnpu-ir)"
else:
    try:
        told = subprocess.run([compiler, "--help"], capture_output=True, text=True, timeout=50)
        found = re.findall(r"=(Ascend[-\\w]+)", told.stdout)
        if not found:
            problem = compiler + " --help lists no target: " + (told.stderr or told.stdout)[-300:]
    except Exception as error:
        problem = compiler + " can't be run: " + str(error)
print(json.dumps({"versions": versions, "targets": found, "problem": problem}))
"""


class ToolchainError(RuntimeError):
    """A target can't be compiled for here; the text says what was looked for, and what to do."""


@dataclass(frozen=True)
class Toolchain:
    """What compiles for some targets.

    Attributes:
        python: the interpreter that has the compiler; None for the workers' own.
        versions: of the packages that compile, with their names.
    """

    python: str | None
    versions: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Return the packages with their versions."""
        return ", ".join(f"{name} {version}" for name, version in self.versions)


def resolve(
    wanted: Sequence[Target], ascend_python: Path | None, folders: Sequence[Path]
) -> dict[Target, Toolchain]:
    """Return what compiles for each target.

    Args:
        wanted: the targets.
        ascend_python: the interpreter to use for Ascend; None finds one.
        folders: where a virtual environment may lie beside what is judged.

    Raises:
        ToolchainError: there is no compiler for one of them.
        targets.TargetError: there is, but it does not know the target.
    """
    found: dict[Target, Toolchain] = {}
    gpus = [target for target in wanted if target.kind != NPU]
    if gpus:
        found.update(dict.fromkeys(gpus, _for_gpus(gpus)))
    chips = [target for target in wanted if target.kind == NPU]
    if not chips:
        return found
    toolchain, known = _for_ascend(chips[0], ascend_python, folders)
    # In the order in which they were asked for.
    return {one: found.get(one, toolchain) for one in targets.check_ascend(wanted, known)}


def _for_gpus(gpus: Sequence[Target]) -> Toolchain:
    spec = importlib.util.find_spec("triton")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for target in gpus:
        back_end = _BACK_ENDS[target.kind]
        if not any(Path(folder, "backends", back_end).is_dir() for folder in folders):
            raise ToolchainError(
                f"--verify-compile={target.name} needs the back end {back_end} of the package "
                f"triton, and the one in {', '.join(folders) or 'no folder'} has none; "
                "run pytest in an environment that has triton, not triton-ascend"
            )
    return Toolchain(None, (("triton", _version("triton") or "?"),))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _for_ascend(
    target: Target, given: Path | None, folders: Sequence[Path]
) -> tuple[Toolchain, list[str]]:
    python, said = _ascend_python(given, folders)
    option = f"--verify-compile={target.name}"
    if python is None:
        raise ToolchainError(
            f"{option} needs triton-ascend and ascendnpu-ir, and there is no interpreter that has "
            f"them: {said}. {_ADVICE}"
        )
    own = python == sys.executable and given is None
    facts = _probed(python, own=own)
    if "error" in facts:
        raise ToolchainError(f"{option}: {python} can't be used: {facts['error']}. {_ADVICE}")
    versions = facts["versions"]
    missing = [name for name in _NEEDED if name not in versions]
    if missing:
        raise ToolchainError(f"{option}: {python} has no {' and no '.join(missing)}. {_ADVICE}")
    if facts["problem"]:
        raise ToolchainError(f"{option}: {python}: {facts['problem']}. {_ADVICE}")
    kept = tuple((n, versions[n]) for n in ("triton-ascend", "ascendnpu-ir") if n in versions)
    return Toolchain(None if own else python, kept), list(dict.fromkeys(facts["targets"]))


def _ascend_python(given: Path | None, folders: Sequence[Path]) -> tuple[str | None, str]:
    """Return the interpreter to use, or None and where it was looked for."""
    if given is not None and not given.is_file():
        return None, f"{ASCEND_PYTHON}: there is no file {given}"
    if given is not None:
        return str(given), ""
    if _version("triton-ascend") is not None:
        return sys.executable, ""
    places = dict.fromkeys(folder / BESIDE / "bin" / "python" for folder in folders)
    for place in places:
        if place.is_file():
            return str(place), ""
    return None, f"looked for {', '.join(map(str, places))}"


def _probed(python: str, *, own: bool) -> dict[str, Any]:
    """Ask an interpreter what it has."""
    environment = None if own else foreign_environment()
    try:
        done = subprocess.run(
            [python, "-c", _PROBE],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT,
            check=False,
        )
        facts: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        return {"error": f"it answers nothing (exit status {done.returncode}): {last}"}
    return facts


def foreign_environment() -> dict[str, str]:
    """Return this process's variables without those that lead another interpreter astray."""
    astray = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {name: value for name, value in os.environ.items() if name not in astray}

"""The compilers for Ascend NPUs: triton-ascend, and bishengir-compile of ascendnpu-ir.

triton-ascend lowers a kernel to linalg with its own tools, and hands that to `bishengir-compile`
with options of its own choice. That plans the memory of the cores, and runs the code generator,
`hivmc`, which is a part of CANN and absent elsewhere.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pytest_tritonverify.compilation import words

LAST_STAGE = "hivm"
"""The last stage before code generation."""

_CODE_GENERATOR = "hivmc"
_COMPILER = "bishengir-compile"
_ABSENT = re.compile(r"\[ERROR\] Cannot find (hivmc[\w-]*) under \$PATH")
# What it says besides where nothing else has failed.
_HARMLESS = re.compile(
    r"\[ERROR\] Failed to run BiShengIR pipeline|\[ERROR\] Executing: .*|\[NOTE\] .* retrying .*"
)
_FAILING = re.compile(r"error\s*:|\[ERROR\]|overflow|Assertion|Stack dump", re.IGNORECASE)
# It says how much of the unified buffer a kernel takes.
_PRINT_SIZE = "--enable-print-memory-allocated-size"


def tools() -> Path | None:
    """Return the folder of the compiler that the package ascendnpu-ir brings along, if it is."""
    spec = importlib.util.find_spec("ascendnpuir")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place, "bin")
        if (folder / _COMPILER).is_file():
            return folder
    return None


def prepare(arch: str) -> None:
    """Have triton-ascend compile for a chip, with the compiler that is installed.

    Args:
        arch: the chip, as bishengir-compile calls it.

    Raises:
        KeyError: the package triton is not triton-ascend.
    """
    from triton.backends import backends

    folder = tools()
    if folder is not None and shutil.which(_COMPILER) is None:
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    if _knows(_PRINT_SIZE):
        # triton-ascend then hands that option on.
        os.environ["ENABLE_PRINT_UB_BITS"] = "true"
    # The original asks the device, by a library that it builds with CANN's headers. By the back
    # end's own variables: Triton loads the module apart from the one of that name.
    variables = backends["ascend"].compiler.add_stages.__globals__
    if "NPUUtils" in variables:
        variables["NPUUtils"] = lambda: _Utils(arch)


def _knows(option: str) -> bool:
    """Whether bishengir-compile has an option; versions differ."""
    command = shutil.which(_COMPILER)
    if command is None:
        return False
    told = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    return option in told.stdout


class _Utils:
    def __init__(self, arch: str) -> None:
        self._arch = arch

    def get_arch(self) -> str:
        return self._arch


def reached_code_generator(said: str) -> bool:
    """Whether bishengir-compile failed only because there is no code generator.

    Args:
        said: what it printed.
    """
    if words.REACHED_CODE_GENERATOR in said:
        return shutil.which(_CODE_GENERATOR) is None
    # The compiler for the 950 series has no such sentence: it looks for the code generator once
    # everything before it has passed, and gives up. What it says of its passes may stand between.
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    absent = [match[1] for match in map(_ABSENT.fullmatch, lines) if match]
    others = [line for line in lines if not (_ABSENT.fullmatch(line) or _HARMLESS.fullmatch(line))]
    after = lines[max((k for k, x in enumerate(lines) if _ABSENT.fullmatch(x)), default=0) + 1 :]
    return (
        bool(absent)
        and not any(_FAILING.search(line) for line in others)
        and all(_HARMLESS.fullmatch(line) for line in after)
        and all(shutil.which(name) is None for name in absent)
    )


def figures(said: str) -> dict[str, Any]:
    """Return how much on-chip memory a kernel takes, as far as bishengir-compile says it.

    Args:
        said: what it printed.

    Returns:
        `memory_space`, `memory_bits` and `memory_bits_available` where they are told.
    """
    lacking = words.overflow(said)
    if lacking is not None:
        return {
            "memory_space": lacking.space,
            "memory_bits": lacking.required,
            "memory_bits_available": lacking.available,
        }
    bits = words.ub_bits(said)
    return {} if bits is None else {"memory_space": "ub", "memory_bits": bits}

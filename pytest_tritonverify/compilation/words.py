"""What compilers say, read: which kind of failure it is, where, and how much memory is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass

TRITON_ERROR = "triton_error"
COMPILER_ERROR = "compiler_error"
UNSUPPORTED = "unsupported_op"
UB_OVERFLOW = "ub_overflow"
MEMORY_OVERFLOW = "memory_overflow"
OUT_OF_RESOURCES = "out_of_resources"
CRASH = "crash"
TIMEOUT = "timeout"
SUBKINDS = (
    UB_OVERFLOW,
    MEMORY_OVERFLOW,
    OUT_OF_RESOURCES,
    UNSUPPORTED,
    TRITON_ERROR,
    COMPILER_ERROR,
    CRASH,
    TIMEOUT,
)

# bishengir-compile, before it hands over to the code generator, which is part of CANN.
REACHED_CODE_GENERATOR = "External hivmc run fails"

_OVERFLOW = re.compile(r"(\w+) overflow, requires (\d+) bits while (\d+) bits av\w+", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"unsupported|not supported|not (?:yet )?implemented|failed to legalize|unimplemented"
    r"|does(?:n't| not) support|cannot select|can only support|unexpected type",
    re.IGNORECASE,
)
# A diagnostic of MLIR, with the kernel's place or that of a temporary file.
_DIAGNOSTIC = re.compile(r'^(?:loc\()?"?([^\s":(]+)"?:(\d+):(\d+)\)?: error: (.*)$', re.MULTILINE)
_PLAIN_ERROR = re.compile(r"^.*?\b(?:error|fatal)\s*: .*$", re.MULTILINE | re.IGNORECASE)
_CRASHED = re.compile(
    r"PLEASE submit a bug report|Stack dump:|Segmentation fault|Assertion .* failed"
)
# triton-ascend's ways to begin and end, and its advice about options of GPUs.
_FRAME = re.compile(
    r"///-+\[ERROR\]|\[\w+\] encounters error:$|\[INFO\]: The compiled kernel cache is in "
    r"|\[WARNING\] Please DO NOT tune args"
    r"|\[\w+\] (?:Cannot find hivmc|Failed to run `hivmc|Failed to detect hivmc)"
)
_OF_COMPILERS = ("loc(", "[", "ptxas", "`ptxas`", "Repro command")
# An error of the assembler, in a file that is gone; Triton's own words for it say nothing.
_OF_PTXAS = re.compile(r"^(ptxas)\S*(?: \S+, line \d+;)? (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_PTXAS_REGISTERS = re.compile(r"Used (\d+) registers")
_PTXAS_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_AMD_FIGURES = {
    "registers": re.compile(r"^\s*\.vgpr_count:\s*(\d+)", re.MULTILINE),
    "scalar_registers": re.compile(r"^\s*\.sgpr_count:\s*(\d+)", re.MULTILINE),
    "spilled_registers": re.compile(r"^\s*\.vgpr_spill_count:\s*(\d+)", re.MULTILINE),
}
_MIX_MODE = re.compile(r'mix_mode\s*=\s*"(\w+)"')
_UB_SIZE = re.compile(r"\bUB\s+size\s*=\s*(\d+)\s*bits")


@dataclass(frozen=True)
class Overflow:
    """On-chip memory that does not suffice.

    Attributes:
        space: the compiler's name of the memory, such as "ub".
        required: bits.
        available: bits.
    """

    space: str
    required: int
    available: int


def overflow(text: str) -> Overflow | None:
    """Return the greatest demand for on-chip memory that could not be met, if there is one."""
    found = [Overflow(m[1].lower(), int(m[2]), int(m[3])) for m in _OVERFLOW.finditer(text)]
    return max(found, key=lambda one: one.required / max(one.available, 1), default=None)


def subkind(text: str, *, front_end: bool, crashed: bool = False) -> str:
    """Classify the words with which a compiler has refused a kernel.

    Args:
        text: its words.
        front_end: it was Triton itself that refused, before any back end had a say.
        crashed: it was ended by a signal.
    """
    lacking = overflow(text)
    if lacking is not None:
        return UB_OVERFLOW if lacking.space == "ub" else MEMORY_OVERFLOW
    # LLVM ends the process for what it can't do, and says so.
    if _UNSUPPORTED.search(gist(text)):
        return UNSUPPORTED
    if crashed or _CRASHED.search(text):
        return CRASH
    if _UNSUPPORTED.search(text):
        return UNSUPPORTED
    return TRITON_ERROR if front_end else COMPILER_ERROR


def diagnostics(text: str) -> list[tuple[str, int, str]]:
    """Return file, line and message of the errors among a compiler's words, in order."""
    return [(m[1], int(m[2]), m[4].strip()) for m in _DIAGNOSTIC.finditer(text)]


def cleaned(text: str) -> str:
    """Return a compiler's words without what only frames or repeats them."""
    kept: dict[str, None] = {}
    for number, line in enumerate(text.splitlines()):
        if line.strip() and not _FRAME.match(line):
            # Lines of code may be alike, and stay.
            kept[line.rstrip() if line.startswith(_OF_COMPILERS) else f"{number}\0{line}"] = None
    return "\n".join(line.partition("\0")[2] or line for line in kept).strip()


def gist(text: str) -> str:
    """Return the line that says what is wrong, among a compiler's words."""
    lacking = _OVERFLOW.search(text)
    if lacking is not None:
        return lacking[0]
    found = diagnostics(text)
    if found:
        return found[0][2]
    assembler = _OF_PTXAS.search(text)
    if assembler is not None:
        return f"{assembler[1]}: {assembler[2].strip()}"
    plain = _PLAIN_ERROR.search(text)
    if plain is not None:
        return plain[0].strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def ptxas_figures(text: str) -> dict[str, int]:
    """Return `registers` and `spilled_bytes` from what `ptxas -v` says, as far as it says it."""
    figures = {}
    registers = [int(m[1]) for m in _PTXAS_REGISTERS.finditer(text)]
    spills = [int(m[1]) + int(m[2]) for m in _PTXAS_SPILLS.finditer(text)]
    if registers:
        figures["registers"] = max(registers)
    if spills:
        figures["spilled_bytes"] = max(spills)
    return figures


def amd_figures(assembly: str) -> dict[str, int]:
    """Return the figures that a kernel's assembly for AMD gives of itself."""
    found = {name: pattern.search(assembly) for name, pattern in _AMD_FIGURES.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def mix_mode(linalg: str) -> str | None:
    """Return which cores of an NPU a kernel is for: "aiv", "aic" or "mix"."""
    found = _MIX_MODE.search(linalg)
    return found[1] if found else None


def ub_bits(text: str) -> int | None:
    """Return how much of the unified buffer bishengir-compile says that a kernel takes."""
    found = _UB_SIZE.search(text)
    return int(found[1]) if found else None

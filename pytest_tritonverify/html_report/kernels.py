"""What a page says of kernels that were compiled for other devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.html_report import text

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KERNELS = 100
"""Kernels of one pair that are shown, those that don't compile first."""

_SPECIALIZATION = 300
_KIBIBYTE = 8 << 10  # bits
_LAST = "binary"
# Names of figures, and what follows their number.
_FIGURES = (
    ("registers", "register", "registers"),
    ("scalar_registers", "scalar register", "scalar registers"),
    ("shared_bytes", "byte of shared memory", "bytes of shared memory"),
    ("spilled_bytes", "byte spilled", "bytes spilled"),
    ("spilled_registers", "register spilled", "registers spilled"),
)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel, as it is launched, for a target.

    Attributes:
        target, name, place: for what, which one, and where it is defined.
        compiles: whether it does.
        outcome: what the compiler tells, or what is wrong.
        specialization: what it is launched with.
        cases: numbers of the cases that launch it so.
    """

    target: str
    name: str
    place: str
    compiles: bool
    outcome: str
    specialization: str
    cases: str


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What came of compiling a pair's kernels.

    Attributes:
        targets: for each how many of how many compile, and by what.
        kernels: each of them.
        more: how many are left out.
    """

    targets: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    more: int


def of(content: Mapping[str, Any]) -> Compiled | None:
    """Return what a result says of compiled kernels; None where it says nothing.

    Args:
        content: the result.
    """
    section = content.get("compile")
    section = section if isinstance(section, dict) else {}
    given, versions = section.get("kernels"), section.get("targets")
    entries = given if isinstance(given, list) else []
    entries = [entry for entry in entries if isinstance(entry, dict)]
    if not entries:
        return None
    found = [_kernel(entry) for entry in entries]
    shown = sorted(found, key=lambda kernel: kernel.compiles)
    return Compiled(
        targets=tuple(_targets(found, versions if isinstance(versions, dict) else {})),
        kernels=tuple(shown[:MOST_KERNELS]),
        more=max(0, len(found) - MOST_KERNELS),
    )


def _targets(found: list[Kernel], versions: Mapping[str, Any]) -> list[str]:
    told = {text.name(target): packages for target, packages in versions.items()}
    lines = []
    for target in dict.fromkeys(kernel.target for kernel in found):
        of_target = [kernel.compiles for kernel in found if kernel.target == target]
        packages = told.get(target)
        by = ""
        if isinstance(packages, dict) and packages:
            names = ", ".join(f"{name} {version}" for name, version in packages.items())
            by = f" ({text.name(names)})"
        lines.append(f"{target}: {sum(of_target)} of {len(of_target)} compile{by}")
    return lines


def _kernel(entry: Mapping[str, Any]) -> Kernel:
    compiles = entry.get("compiles") is True
    error = entry.get("error")
    refusal = error if isinstance(error, dict) else {}
    cases = entry.get("cases")
    numbers = [n for n in cases if type(n) is int] if isinstance(cases, list) else []
    return Kernel(
        target=text.name(entry.get("target") or "?"),
        name=text.name(entry.get("kernel") or "?"),
        place=_place(entry if compiles else {**entry, **refusal}),
        compiles=compiles,
        outcome=_told(entry) if compiles else _refused(refusal),
        specialization=text.shown(entry.get("specialization") or "", _SPECIALIZATION),
        cases=figures.numbers_text(numbers),
    )


def _place(entry: Mapping[str, Any]) -> str:
    file, line = entry.get("file"), entry.get("line")
    known = isinstance(file, str) and type(line) is int
    return text.name(f"{file}:{line}") if known else ""


def _refused(refusal: Mapping[str, Any]) -> str:
    kind, message = (refusal.get(name) for name in ("subkind", "message"))
    return ": ".join(text.shown(part, 400) for part in (kind, message) if part) or "it does not"


def _told(entry: Mapping[str, Any]) -> str:
    said: list[object] = [_figure(entry.get(name), *nouns) for name, *nouns in _FIGURES]
    space, bits = entry.get("memory_space"), figures.number(entry.get("memory_bits"))
    if isinstance(space, str) and bits is not None:
        said.append(f"{bits / _KIBIBYTE:,.4g} KiB of {text.name(space)}")
    said.append(entry.get("mix_mode"))
    if entry.get("stage") != _LAST and isinstance(entry.get("stage"), str):
        said.append(f"compiled up to {entry['stage']}")
    return ", ".join(text.name(one) for one in said if isinstance(one, str) and one)


def _figure(value: object, one: str, several: str) -> str:
    count = figures.number(value)
    return "" if count is None else f"{count:,.0f} {one if count == 1 else several}"

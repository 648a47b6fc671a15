"""Decide whether a pytest run concerns this plugin, and what it is to search."""

from __future__ import annotations

import fnmatch
import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify import discovery
from pytest_tritonverify.settings import absolute

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from pytest_tritonverify.discovery import Findings, Pair

# Ini files that pytest obeys when it finds them beside what it is to collect.
_INI_NAMES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg")


@dataclass(frozen=True)
class Activation:
    """What makes the plugin active in a run.

    Attributes:
        dirs: the verify dirs.
        named: pairs whose files stand on the command line.
        explicit: absolute paths of the positional arguments that the user gave.
        cwd: the folder that pytest was started in.
        demanded: the command line asks for pairs; without any, the run has failed.
    """

    dirs: tuple[Path, ...]
    named: tuple[Pair, ...]
    explicit: tuple[Path, ...]
    cwd: Path
    demanded: bool = True

    def concerns(self, path: Path) -> bool:
        """Say whether a file lies where pairs alone are collected, unless asked for by name."""
        return any(path == d or d in path.parents for d in self.dirs) and not any(
            path == e or e in path.parents for e in self.explicit
        )

    def is_ours(self, pair: Pair) -> bool:
        """Say whether a pair belongs to this run."""
        inside = any(d in pair.implementation.parents for d in self.dirs)
        return inside or pair in self.named

    def folders(self) -> frozenset[Path]:
        """Return the folders that hold, or may hold, candidates' files."""
        return frozenset({*self.dirs, *(pair.implementation.parent for pair in self.named)})


def positional_path(cwd: Path, argument: str) -> Path:
    """Return the file or folder of a positional argument, without `::item`."""
    return absolute(cwd / argument.partition("::")[0])


def outermost(dirs: Collection[Path]) -> tuple[Path, ...]:
    """Return the folders without those that lie in another one."""
    given = dict.fromkeys(dirs)
    return tuple(
        folder for folder in given if not any(parent in given for parent in folder.parents)
    )


def touched(dirs: Iterable[Path], explicit: Collection[Path]) -> tuple[Path, ...]:
    """Return the folders that hold, or lie in, something that the user named."""
    return tuple(
        folder
        for folder in dirs
        if any(folder == e or folder in e.parents or e in folder.parents for e in explicit)
    )


def named_pairs(paths: Iterable[Path]) -> tuple[Pair, ...]:
    """Return the pairs that positional arguments name by one of their files."""
    found: dict[Path, Pair] = {}
    for path in paths:
        pairs: list[Pair] = []
        if discovery.is_task(path):
            pairs = discovery.implementations_of(path)
        if not pairs and "_triton_" in path.stem and path.is_file():
            pair = discovery.pair_of(path)
            pairs = [pair] if pair is not None else []
        found.update({p.implementation: p for p in pairs if discovery.is_real_pair(p)})
    return tuple(found.values())


def intruders(
    activation: Activation, findings: Findings, ini_file: Path | None
) -> tuple[Path, ...]:
    """Return the files beside candidates that pytest itself would import or obey."""
    found = list(findings.intruders)
    folders = activation.folders()
    found += [
        pair.implementation.parent / "conftest.py"
        for pair in activation.named
        if (pair.implementation.parent / "conftest.py").is_file()
    ]
    if ini_file is not None and _is_obeyed(ini_file):
        inside = any(folder == ini_file.parent or folder in ini_file.parents for folder in folders)
        if inside:
            found.append(ini_file)
    return tuple(dict.fromkeys(found))


def _is_obeyed(ini_file: Path) -> bool:
    """Say whether pytest takes settings from a file; most pyproject.toml hold none for it."""
    if ini_file.name != "pyproject.toml":
        return ini_file.name in _INI_NAMES
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return "pytest" in toml.loads(ini_file.read_text("utf-8")).get("tool", {})


def to_collect(
    arguments: Sequence[str],
    activation: Activation,
    findings: Findings,
    *,
    from_user: bool,
    cwd: Path,
) -> list[str]:
    """Return the positional arguments with which pytest is to collect.

    A task file becomes its implementations. A verify dir is added, unless what the user named
    inside of it holds pairs already: that is how an IDE runs single items. Without positional
    arguments the verify dirs of the command line are all that is collected.

    Nothing is named twice, by itself or by a folder above it: some versions of pytest collect
    it twice, or nothing else.

    Args:
        arguments: pytest's arguments as they stand.
        activation: what the run is about.
        findings: the pairs below the verify dirs.
        from_user: the arguments were given, they are not testpaths or the current folder.
        cwd: what relative arguments start from.
    """
    kept: list[str] = []
    for argument in arguments if from_user else ():
        path = positional_path(cwd, argument)
        _, colons, item = argument.partition("::")
        pairs = [p for p in (*activation.named, *findings.pairs) if p.task == path]
        kept += dict.fromkeys(f"{p.implementation}{colons}{item}" for p in pairs) or [argument]
    kept = list({(positional_path(cwd, a), a.partition("::")[2]): a for a in kept}.values())
    covered = [positional_path(cwd, argument) for argument in kept]
    for folder in activation.dirs:
        whole = any(folder == c or c in folder.parents for c in covered)
        narrowed = any(
            c == pair.implementation or c in pair.implementation.parents
            for c in covered
            for pair in findings.pairs
            if folder in pair.implementation.parents and (c == folder or folder in c.parents)
        )
        if not whole and not narrowed:
            kept.append(str(folder))
    return kept


def is_ignored(
    path: Path, patterns: Collection[str], ignored: Collection[Path], globs: Collection[str]
) -> bool:
    """Say whether pytest would not collect a path.

    Args:
        path: absolute.
        patterns: of norecursedirs, for folders.
        ignored: paths of --ignore.
        globs: patterns of --ignore-glob.
    """
    if path in ignored or any(fnmatch.fnmatch(str(path), glob) for glob in globs):
        return True
    if not path.is_dir():
        return False
    virtualenv = (path / "pyvenv.cfg").is_file()
    return virtualenv or any(
        fnmatch.fnmatch(path.name, pattern) or fnmatch.fnmatch(str(path), f"*/{pattern}")
        for pattern in patterns
    )

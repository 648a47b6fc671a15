"""Which cases a task has: asked from a worker once, then remembered by content.

An entry holds for as long as the task file, every file that it opened while its cases were
listed, and the versions of what decides about them stay the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import __version__, plain_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.discovery import Pair

_LAYOUT = 1


@dataclass(frozen=True)
class CaseEntry:
    """One case as listed: its item's name, a dtype word, and its inputs' descriptions."""

    name: str
    dtype: str
    input_desc: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Listing:
    """The cases of a task, or why they can't be listed.

    Attributes:
        cases: in order.
        error: an error description as workers send it, where listing failed.
        looked_for: data files that a task without cases looked for.
    """

    cases: tuple[CaseEntry, ...] = ()
    error: dict[str, Any] | None = None
    looked_for: tuple[str, ...] = ()


class Catalogue:
    """Lists cases, from memory, from the cache folder, or by asking.

    Args:
        ask: lists a task's cases in a worker; returns the worker's answer.
        folder: where listings are kept between runs; None keeps none.
        device: where implementations run and what is stood in for, part of the key.
    """

    def __init__(
        self, ask: Callable[[Pair], dict[str, Any]], folder: Path | None, device: str
    ) -> None:
        self._ask = ask
        self._folder = folder
        self._device = device
        self._known: dict[Path, Listing] = {}

    def list(self, pair: Pair) -> Listing:
        """Return the cases of a pair's task."""
        known = self.cached(pair)
        if known is None:
            answer = self._ask(pair)
            known = _listing(answer)
            if known.error is None:
                self._save(pair, answer)
            self._known[pair.task] = known
        return known

    def cached(self, pair: Pair) -> Listing | None:
        """Return the cases of a pair's task if that takes no worker."""
        if pair.task in self._known:
            return self._known[pair.task]
        if self._folder is None:
            return None
        try:
            entry = json.loads((self._folder / self._key(pair)).read_text("utf-8"))
            valid = all(
                plain_files.digest(Path(p)) == digest for p, digest in entry["files"].items()
            )
            listing = _listing(entry) if valid else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if listing is not None:
            self._known[pair.task] = listing
        return listing

    def _key(self, pair: Pair) -> str:
        parts = (
            str(_LAYOUT),
            __version__,
            sys.version,
            _version("torch"),
            _version("triton"),
            self._device,
            str(pair.task),
            plain_files.digest(pair.task) or "",
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest() + ".json"

    def _save(self, pair: Pair, answer: dict[str, Any]) -> None:
        if self._folder is None:
            return
        # A cache that can't be written is only slow.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(answer, stream)
            Path(name).replace(self._folder / self._key(pair))


def _listing(answer: dict[str, Any]) -> Listing:
    return Listing(
        cases=tuple(CaseEntry(**case) for case in answer.get("cases", ())),
        error=answer.get("error"),
        looked_for=tuple(answer.get("looked_for", ())),
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""

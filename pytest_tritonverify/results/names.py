"""Names of the files that belong to a pair, as downstream programs derive them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.discovery import DEFAULT_VARIANT, pairs_in

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair


def verify_result(pair: Pair, *, shared_folder: bool) -> Path:
    """Return the path of a pair's result file.

    Args:
        pair: the pair.
        shared_folder: the folder holds tasks of several operators; their names then go first.
    """
    return _beside(pair, "verify_result", shared_folder=shared_folder)


def perf_result(pair: Pair, *, shared_folder: bool) -> Path:
    """Return the path of a pair's benchmark report."""
    return _beside(pair, "perf_result", shared_folder=shared_folder)


def journal(result: Path) -> Path:
    """Return the path of the journal that stands in for a result file while a run lasts."""
    return result.with_suffix(".journal.jsonl")


def _beside(pair: Pair, stem: str, *, shared_folder: bool) -> Path:
    prefix = f"{pair.op}_" if shared_folder else ""
    suffix = "" if pair.variant == DEFAULT_VARIANT else f"_{pair.variant}"
    return pair.implementation.with_name(f"{prefix}{stem}{suffix}.json")


def is_shared(folder: Path) -> bool:
    """Say whether a folder holds pairs of more than one operator."""
    tasks = set()
    for pair in pairs_in(folder):
        tasks.add(pair.task)
        if len(tasks) > 1:
            return True
    return False

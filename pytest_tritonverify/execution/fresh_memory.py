"""Poison in fresh memory: an output that nobody writes must not hold the right values by chance.

Fresh pages are zeros, and the allocator hands out memory that held an earlier result. PyTorch can
fill what `torch.empty` and its kin return with NaN, or the integer maximum, where its algorithms
are deterministic. Versions before 2.2 can't.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

# The public functions import 800 modules of inductor, two seconds in every fresh worker.
from torch._C import (
    _get_deterministic_algorithms,
    _get_deterministic_algorithms_warn_only,
    _set_deterministic_algorithms,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def _switch() -> Any:
    return getattr(torch.utils, "deterministic", None)


def poison() -> None:
    """Fill fresh memory of this process from now on."""
    switch = _switch()
    if switch is not None:
        switch.fill_uninitialized_memory = True
        _set_deterministic_algorithms(True, warn_only=True)  # noqa: FBT003 - positional only


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Fill fresh memory for a while as in every implementation's process: so both sides agree."""
    switch = _switch()
    if switch is None:
        yield
        return
    before = switch.fill_uninitialized_memory
    with _restored():
        poison()
        try:
            yield
        finally:
            switch.fill_uninitialized_memory = before


@contextlib.contextmanager
def unpoisoned() -> Iterator[None]:
    """Let fresh memory be as it is where nobody verifies."""
    with _restored():
        _set_deterministic_algorithms(False)  # noqa: FBT003 - positional only
        yield


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    deterministic = _get_deterministic_algorithms()
    lenient = _get_deterministic_algorithms_warn_only()
    try:
        yield
    finally:
        _set_deterministic_algorithms(deterministic, warn_only=lenient)

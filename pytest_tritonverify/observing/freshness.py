"""Switch the poison in fresh memory off for a while, as it is where nobody verifies."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def unpoisoned() -> Iterator[None]:
    """Let `torch.empty` and its kin leave memory as it is."""
    poisoned = torch._C._get_deterministic_algorithms()  # noqa: SLF001 - see candidate.py
    lenient = torch._C._get_deterministic_algorithms_warn_only()  # noqa: SLF001 - as above
    torch._C._set_deterministic_algorithms(False)  # noqa: FBT003, SLF001 - as above
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(poisoned, warn_only=lenient)  # noqa: SLF001 - as above

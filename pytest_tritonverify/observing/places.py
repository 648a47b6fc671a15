"""Find the line of user code that caused something, and describe tensors in passing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_DEEPEST = 6


def user_line(folder: str) -> tuple[str | None, int]:
    """Return file and line of the innermost running code that lies below a folder.

    Args:
        folder: the folder's name, with a separator at its end.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(folder):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None, 0


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested arguments, those of Triton's descriptors included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth > _DEEPEST:
        return
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth + 1)
    else:
        base = getattr(value, "base", None)
        if isinstance(base, torch.Tensor):
            yield base


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return a tensor's storage; None where it has no memory of its own kind."""
    try:
        storage = tensor.untyped_storage()
        return storage if storage.nbytes() and storage.device.type != "meta" else None
    except (NotImplementedError, RuntimeError):
        return None


def described(tensor: torch.Tensor) -> str:
    """Return dtype and shape of a tensor, as in `float32[33, 17]`."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"

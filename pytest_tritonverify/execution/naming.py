"""Names of cases: ASCII, stable, and telling what the case feeds in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_LENGTH = 80


def case_name(number: int, values: Iterable[object]) -> str:
    """Return `case<k>-<dtype>-<shape>` of the first tensor among the inputs.

    The shape's sizes are joined by `x`; a 0-d tensor has the shape `scalar`, and a case without
    tensors is `case<k>-no_tensor`.
    """
    tensor = _first_tensor(values)
    if tensor is None:
        return f"case{number}-no_tensor"
    shape = "x".join(str(int(n)) for n in tensor.shape) or "scalar"
    return f"case{number}-{_dtype(tensor)}-{shape}"[:_MAX_LENGTH]


def dtype_word(values: Iterable[object]) -> str:
    """Return the dtype in the case's name, or `no_tensor`."""
    tensor = _first_tensor(values)
    return "no_tensor" if tensor is None else _dtype(tensor)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _first_tensor(values: Iterable[object]) -> torch.Tensor | None:
    for value in values:
        if isinstance(value, torch.Tensor):
            return value
        found = None
        if isinstance(value, dict):
            found = _first_tensor(value.values())
        elif isinstance(value, (list, tuple)):
            found = _first_tensor(value)
        if found is not None:
            return found
    return None

"""Describe inputs for people and programs, without their values."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

# A description is for reading: what is longer than this is cut.
_MAX_ITEMS = 256
_MAX_TEXT = 200


def describe(value: object, depth: int = 0) -> Any:
    """Describe an input in JSON.

    A tensor is `{"type": "tensor", "shape": [...], "dtype": "torch.float16"}`; None, strings
    and finite numbers stand for themselves; containers hold the descriptions of their items;
    anything else is `{"type": ..., "value": <text>}`.
    """
    if isinstance(value, torch.Tensor):
        return {"type": "tensor", "shape": [int(n) for n in value.shape], "dtype": str(value.dtype)}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "..."
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": str(value)}
    if depth < 8:  # noqa: PLR2004 - as deep as anybody reads
        items = _items(value, depth + 1)
        if items is not None:
            return {"type": type(value).__name__, "items": items}
    return {"type": type(value).__name__, "value": _text(value)}


def _items(value: object, depth: int) -> Any:
    if isinstance(value, torch.Size):
        return [int(n) for n in value]
    if isinstance(value, (list, tuple, set, frozenset)):
        described = [describe(item, depth) for item in list(value)[:_MAX_ITEMS]]
        if len(value) > _MAX_ITEMS:
            described.append(f"... {len(value) - _MAX_ITEMS} more")
        return described
    if isinstance(value, dict):
        return {str(key): describe(item, depth) for key, item in list(value.items())[:_MAX_ITEMS]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: describe(getattr(value, f.name), depth) for f in dataclasses.fields(value)}
    return None


def _text(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - user code
        text = f"<repr raised {type(error).__name__}>"
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."

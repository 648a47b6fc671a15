"""Describe inputs for people and programs, without their values."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from pytest_tritonverify.execution import errors

# A description is for reading: what is longer than this is cut.
_MAX_ITEMS = 256
_MAX_TEXT = 200
_MAX_BITS = 256


def describe(value: object, depth: int = 0) -> Any:  # noqa: PLR0911 - one case a type
    """Describe an input in JSON.

    A tensor is `{"type": "tensor", "shape": [...], "dtype": "torch.float16"}`; None, strings
    and finite numbers stand for themselves; containers hold the descriptions of their items;
    anything else is `{"type": ..., "value": <text>}`.
    """
    if isinstance(value, torch.Tensor):
        return {"type": "tensor", "shape": [int(n) for n in value.shape], "dtype": str(value.dtype)}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return int(value)
    if isinstance(value, str):
        return _cut(value)
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
        items = list(value.items())[:_MAX_ITEMS]
        return {_key(key): describe(item, depth) for key, item in items}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: describe(getattr(value, f.name), depth) for f in dataclasses.fields(value)}
    return None


def _key(key: object) -> str:
    return _cut(key) if isinstance(key, str) else _text(key)


def _text(value: object) -> str:
    try:
        return _cut(repr(value))
    except Exception as error:  # noqa: BLE001 - user code
        if isinstance(value, int):  # Python limits the decimal digits that it writes
            return _cut(hex(value))
        return f"<repr raised {errors.type_name(error)}>"


def _cut(text: str) -> str:
    return errors.printable(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "...")

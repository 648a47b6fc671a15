"""Outputs as plain values: what a forward returns is taken apart within its time.

A container of the user's own may compute when somebody looks into it. It is looked into once, as
part of the forward, and what comes after that sees lists, tuples, dicts and records that run no
code of the user's.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from typing import Any

import torch

_TENSORS = (torch.Tensor, torch.nn.Parameter)
_LEAVES = frozenset({*_TENSORS, type(None), bool, int, float, complex, str, bytes, torch.Size})
_SCALARS: tuple[Any, ...] = (int, float, complex, str, bytes, bytearray)
_SEQUENCES = (list, tuple, set, frozenset)
# Made once for each class of records: making one takes longer than many a forward.
_RECORDS: dict[type, Any] = {}


def taken(value: Any) -> Any:
    """Return an output in plain containers; its tensors are the same ones.

    Subclasses of tensors stay as they are, as does whatever is unknown: packing refuses them.
    """
    if type(value) in _LEAVES or isinstance(value, torch.Tensor):
        return value
    if isinstance(value, dict):
        return {taken(key): taken(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _named(type(value))(*(taken(item) for item in value))
    for plain in _SEQUENCES:
        if isinstance(value, plain):
            return plain([taken(item) for item in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _filled(value, taken)
    return _number_or_text(value)


def seized(value: Any) -> Any:
    """Return what `taken` returned with copies of its tensors, made in the order of the stream."""
    kind = type(value)
    if kind in _TENSORS:
        return value.detach().clone()
    if kind is dict:
        return {seized(key): seized(item) for key, item in value.items()}
    if kind in _SEQUENCES:
        return kind([seized(item) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(seized(item) for item in value))
    if hasattr(kind, "__dataclass_fields__"):
        return _filled(value, seized)
    return value


def _number_or_text(value: Any) -> Any:
    # What numpy derives from Python's numbers is an array of no dimension to those who pack it.
    if type(value).__module__ != "numpy":
        for plain in _SCALARS:
            if isinstance(value, plain):
                return plain(value)
    return value


def _named(kind: Any) -> Any:
    """Return a plain class of named tuples with the name and the fields of another."""
    if kind not in _RECORDS:
        _RECORDS[kind] = namedtuple(kind.__name__, kind._fields, rename=True)  # noqa: PYI024 - made at run time
    return _RECORDS[kind]


def _filled(value: Any, change: Any) -> Any:
    """Return a record with the fields of a dataclass, and no code of its class."""
    kind = type(value)
    if kind not in _RECORDS:
        kept = ("__dataclass_fields__", "__dataclass_params__")
        _RECORDS[kind] = type(kind.__name__, (), {name: getattr(kind, name) for name in kept})
    record = object.__new__(_RECORDS[kind])
    for field in dataclasses.fields(value):
        setattr(record, field.name, change(getattr(value, field.name)))
    return record

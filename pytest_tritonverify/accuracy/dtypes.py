"""Families and names of torch's dtypes.

Dtypes that older torch releases lack are looked up by name, so that the package imports on all.
"""

from __future__ import annotations

from typing import Literal

import torch

Kind = Literal["float", "int", "bool", "complex"]

_NAMES_BY_KIND: dict[Kind, tuple[str, ...]] = {
    "float": (
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ),
    "int": ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
    "bool": ("bool",),
    "complex": ("complex128", "complex64", "complex32"),
}

_KINDS: dict[torch.dtype, Kind] = {
    getattr(torch, name): kind
    for kind, names in _NAMES_BY_KIND.items()
    for name in names
    if hasattr(torch, name)
}

# Integers wide enough to hold indices; the narrow ones are what quantisation produces.
_INDEX_LIKE = frozenset(
    getattr(torch, name) for name in ("int32", "int64", "uint32", "uint64") if hasattr(torch, name)
)

_UINT64: torch.dtype | None = getattr(torch, "uint64", None)

_BIT_VIEWS: dict[int, torch.dtype] = {
    1: torch.uint8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name without `torch.`, as the limit tables spell it."""
    return str(dtype).removeprefix("torch.")


def kind_of(dtype: torch.dtype) -> Kind | None:
    """Return a dtype's family, or None for packed, raw-bit and quantised dtypes."""
    return _KINDS.get(dtype)


def is_index_like(dtype: torch.dtype) -> bool:
    """Tell whether an integer dtype is one that indices and counts come in."""
    return dtype in _INDEX_LIKE


def wide_integers(values: torch.Tensor) -> torch.Tensor:
    """Return integers as int64, exactly; unsigned 64-bit ones by their bits."""
    return values.view(torch.int64) if values.dtype == _UINT64 else values.to(torch.int64)


def bit_view(values: torch.Tensor) -> torch.Tensor:
    """View a flat tensor's elements as integers of the same size.

    Args:
        values: A tensor of shape `[n]` of any dtype but a complex or quantised one.

    Returns:
        A view of shape `[n]`.
    """
    return values.view(_BIT_VIEWS[values.element_size()])


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Tell whether two flat tensors of one dtype and shape hold the same bits; see `bit_view`."""
    if _has_words(left) and _has_words(right):
        return torch.equal(left.view(torch.int64), right.view(torch.int64))
    return torch.equal(bit_view(left), bit_view(right))


def _has_words(values: torch.Tensor) -> bool:
    """Tell whether a flat tensor can be viewed as 64-bit words, which take the fewest steps."""
    per_word = 8 // values.element_size()
    return (
        values.is_contiguous()
        and values.numel() % per_word == 0
        and values.storage_offset() % per_word == 0
    )

"""Walk several tensors of one shape side by side in pieces of bounded size, as float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.floats import measurable

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 1 << 17
"""Numbers of a piece: a dozen float64 temporaries of it take 12 MiB."""


def pieces(
    tensors: tuple[torch.Tensor, ...], size: int = SIZE
) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """Yield tensors piece by piece in row-major order.

    A piece holds whole rows along the last axis where such a row is no longer than a piece.
    Complex tensors are walked as their parts, real and imaginary side by side. No tensor is
    copied as a whole.

    Args:
        tensors: Of one shape, of any strides; all complex or none.
        size: Most numbers of a piece; even.

    Yields:
        The flat position of the first number, and a tensor of shape `[n]` for each one given, in
        its own dtype.
    """
    parts = 2 if tensors[0].is_complex() else 1
    for start, chosen in _split(tensors, 0, size // parts):
        yield start * parts, tuple(_flat(tensor) for tensor in chosen)


def wide(values: torch.Tensor) -> torch.Tensor:
    """Return values as float64, exactly, in memory of their own where they were narrower."""
    return measurable(values).to(torch.float64)


def _flat(piece: torch.Tensor) -> torch.Tensor:
    piece = piece.resolve_conj().resolve_neg()
    return (torch.view_as_real(piece) if piece.is_complex() else piece).reshape(-1)


def _split(
    tensors: tuple[torch.Tensor, ...], start: int, size: int
) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    first = tensors[0]
    if first.numel() <= size:
        if first.numel():
            yield start, tensors
        return
    row = first.numel() // first.shape[0]
    rows = size // row
    if rows == 0:
        for index in range(first.shape[0]):
            inner = tuple(tensor[index] for tensor in tensors)
            yield from _split(inner, start + index * row, size)
        return
    for index in range(0, first.shape[0], rows):
        inner = tuple(tensor[index : index + rows] for tensor in tensors)
        yield start + index * row, inner

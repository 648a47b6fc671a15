"""Walk two tensors side by side in pieces of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 16
"""Numbers per piece: large enough to hide call overheads, small enough to stay in a cache."""


class Chunk(NamedTuple):
    """A run of neighbouring numbers.

    Attributes:
        start: Position of the first one in the flattened (row-major) tensor of numbers.
        golden: The golden's numbers, of shape `[n]`.
        actual: The implementation's numbers, of shape `[n]`.
    """

    start: int
    golden: torch.Tensor
    actual: torch.Tensor


def chunk_pairs(golden: torch.Tensor, actual: torch.Tensor, size: int = CHUNK) -> Iterator[Chunk]:
    """Yield two tensors of one shape piece by piece, in row-major order.

    Complex tensors are walked as their parts: each element is two numbers, real and imaginary, and
    no piece divides an element. Strided tensors are never copied as a whole: a piece is a view
    where the strides allow one and a copy of at most `size` numbers elsewhere. Conjugate and
    negative views are resolved.

    Args:
        golden: Any strided tensor.
        actual: A tensor of the same shape; dtype and strides may differ, but both are complex or
            neither is.
        size: Most numbers of a piece; even.

    Yields:
        Pieces that cover every number once; none for empty tensors.
    """
    if golden.numel() == 0:
        return
    conjugated = golden.is_conj(), actual.is_conj()
    golden, actual = _numbers(golden), _numbers(actual)
    if golden.is_contiguous() and actual.is_contiguous():
        golden, actual = golden.view(-1), actual.view(-1)
    for start, left, right in _pieces(golden, actual, 0, size):
        yield Chunk(
            start,
            _flat(left, conjugated=conjugated[0]),
            _flat(right, conjugated=conjugated[1]),
        )


def _numbers(values: torch.Tensor) -> torch.Tensor:
    """View a complex tensor as real numbers, still without its pending conjugation.

    Real numbers keep complex32 out of the comparison: few operators know it, and it warns.
    """
    if not values.is_complex():
        return values
    return torch.view_as_real(values.conj() if values.is_conj() else values)


def _flat(piece: torch.Tensor, *, conjugated: bool) -> torch.Tensor:
    flat = piece.reshape(-1).resolve_neg()
    if conjugated:
        flat = flat.clone()
        flat[1::2].neg_()
    return flat


def _pieces(
    golden: torch.Tensor, actual: torch.Tensor, start: int, size: int
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Split along the first axis, and inside a row only where one row exceeds the size."""
    if golden.numel() <= size:
        yield start, golden, actual
        return
    row = golden[0].numel()
    rows = size // row
    if rows == 0:
        for index in range(golden.shape[0]):
            yield from _pieces(golden[index], actual[index], start + index * row, size)
        return
    for index in range(0, golden.shape[0], rows):
        yield start + index * row, golden[index : index + rows], actual[index : index + rows]

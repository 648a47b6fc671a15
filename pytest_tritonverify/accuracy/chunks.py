"""Walk two tensors side by side in pieces of bounded size, on several threads where they are large.

The pieces do not depend on the number of threads, so that no verdict and no metric does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 19
"""Numbers per piece: large enough to hide call overheads, small enough to stay in a cache."""

MOST_THREADS = 3
"""Threads of one pass at most: each has its own temporaries, and they share one memory bus."""

FEWEST_PER_THREAD = 1 << 22
"""Numbers that are worth starting a thread for."""

_Result = TypeVar("_Result")
_Span = tuple[int, int]


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


def over_chunks(
    golden: torch.Tensor, actual: torch.Tensor, work: Callable[[Iterator[Chunk]], _Result]
) -> list[_Result]:
    """Split a pass over two tensors between as many threads as torch may use, three at most.

    Each thread runs whole pieces by itself, instead of every operator being split between
    threads that wait for each other at its end: on a busy machine one that waits for its turn
    holds up nothing but its own share.

    Args:
        golden: Any strided tensor.
        actual: A tensor as in `chunk_pairs`.
        work: Takes in consecutive pieces; called once per thread, on several at a time.

    Returns:
        What `work` returned, in the tensors' order; at least one result.
    """
    total = golden.numel() * (2 if golden.is_complex() else 1)
    threads = min(MOST_THREADS, torch.get_num_threads(), total // FEWEST_PER_THREAD)
    with serial_operators():
        if threads < 2:  # noqa: PLR2004 - one thread is this one
            return [work(chunk_pairs(golden, actual))]
        bounds = [total * part // threads for part in range(threads + 1)]
        spans = list(pairwise(bounds))
        with ThreadPoolExecutor(threads) as pool:
            runs = pool.map(lambda span: work(chunk_pairs(golden, actual, span=span)), spans)
            return list(runs)


@contextmanager
def serial_operators() -> Iterator[None]:
    """Keep operators on the thread that calls them; threads started meanwhile inherit that."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def chunk_pairs(
    golden: torch.Tensor, actual: torch.Tensor, size: int = CHUNK, span: _Span | None = None
) -> Iterator[Chunk]:
    """Yield two tensors of one shape piece by piece, in row-major order.

    Complex tensors are walked as their parts: each element is two numbers, real and imaginary, and
    no piece divides an element. Strided tensors are never copied as a whole: a piece is a view
    where the strides allow one and a copy of at most `size` numbers elsewhere. Conjugate and
    negative views are resolved.

    Args:
        golden: Any strided tensor.
        actual: A tensor of the same shape; dtype and strides may differ, but both are complex or
            neither is.
        size: Most numbers of a piece; even. Strided tensors are given in halves.
        span: Only the pieces that start at or after the first and before the second number; all
            where it is None.

    Yields:
        Pieces that cover every number once; none for empty tensors.
    """
    if golden.numel() == 0:
        return
    conjugated = golden.is_conj(), actual.is_conj()
    golden, actual = _numbers(golden), _numbers(actual)
    if golden.is_contiguous() and actual.is_contiguous():
        golden, actual = golden.view(-1), actual.view(-1)
    else:
        # Copies of a piece take room beside its temporaries.
        size = max(size // 4 * 2, 2)
    for start, left, right in _pieces(golden, actual, 0, size, span or (0, golden.numel())):
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
    golden: torch.Tensor, actual: torch.Tensor, start: int, size: int, span: _Span
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Split along the first axis, and inside a row only where one row exceeds the size."""
    first, end = span
    if golden.numel() <= size:
        if first <= start < end:
            yield start, golden, actual
        return
    row = golden[0].numel()
    rows = size // row
    if rows == 0:
        for index in range(golden.shape[0]):
            at = start + index * row
            if at < end and at + row > first:
                yield from _pieces(golden[index], actual[index], at, size, span)
        return
    for index in range(0, golden.shape[0], rows):
        at = start + index * row
        if first <= at < end:
            yield at, golden[index : index + rows], actual[index : index + rows]

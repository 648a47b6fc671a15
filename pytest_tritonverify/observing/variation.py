"""Other inputs of the same kind: what a trusted process makes so that a replay has something new.

Values keep to the range that they had, so that they stay plausible: rows change places, and all
numbers become three quarters of what they were.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import running
from pytest_tritonverify.observing.places import storage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Exact in every binary format, and no power of two, which kernels treat in their own way.
_SCALE = 0.75
# Of many sets each has one of these; no tolerance takes two of them for the same.
_SCALES = tuple(sixteenths / 16 for sixteenths in range(9, 16))
# Rows that can be ordered in more ways than anybody needs sets.
_MANY_ROWS = 8


def kinds(values: Sequence[object]) -> dict[str, Any]:
    """Say of arguments how many `tensors` there are, and whether one is `floating`."""
    leaves = [tensor for _, tensor in running.tensor_leaves(list(values), "")]
    floating = any(tensor.is_floating_point() or tensor.is_complex() for tensor in leaves)
    return {"tensors": len(leaves), "floating": floating}


def alter(values: Sequence[object], seed: int, *, one_of_many: bool = False) -> bool:
    """Change the values of tensors in place.

    Floating and complex tensors are changed. Where there are none, whole numbers change places:
    they may be indices or lengths, so that no other numbers are put in.

    Args:
        values: the arguments of a call, which may share memory.
        seed: of the generator that orders rows anew.
        one_of_many: the sets that several seeds make must differ from each other, too: numbers
            become other parts of what they were, and of a tensor with few rows what lies within
            them is ordered anew.

    Returns:
        Whether anything is different now.
    """
    generator = torch.Generator().manual_seed(seed)
    leaves = [tensor.detach() for _, tensor in running.tensor_leaves(list(values), "")]
    floating = [tensor for tensor in leaves if tensor.is_floating_point() or tensor.is_complex()]
    done: set[int] = set()
    changed = False
    scale = (_SCALES[seed % len(_SCALES)] if one_of_many else _SCALE) if floating else None
    enough = _MANY_ROWS if one_of_many else 1
    for tensor in floating or leaves:
        storage = storage_of(tensor)
        if storage is None or storage._cdata in done:
            continue
        done.add(storage._cdata)
        # Rare types lack operators that this takes: such a tensor stays as it is.
        with contextlib.suppress(RuntimeError, NotImplementedError):
            changed |= _change(tensor, generator, scale, enough)
    return changed


def turning(values: Sequence[object]) -> list[list[int] | None]:
    """Say of each storage how its rows may move on: those that `alter` puts into another order.

    Args:
        values: the arguments of a call, which may share memory.

    Returns:
        Of each storage that is not empty, in the order in which its tensors are met: bytes of one
        row, and how many there are; None of one that has to stay as it is.
    """
    leaves = [tensor.detach() for _, tensor in running.tensor_leaves(list(values), "")]
    floating = any(tensor.is_floating_point() or tensor.is_complex() for tensor in leaves)
    found: dict[int, list[int] | None] = {}
    for tensor in leaves:
        storage = storage_of(tensor)
        if storage is None:
            # A sparse tensor travels as a dense one, which has a storage.
            if tensor.layout is not torch.strided and tensor.numel():
                found[-id(tensor)] = None
            continue
        key = storage._cdata
        chosen = tensor.is_floating_point() or tensor.is_complex() or not floating
        found[key] = found.get(key) or (_rows(tensor) if chosen else None)
    return list(found.values())


def _rows(tensor: torch.Tensor) -> list[int] | None:
    size = tensor.untyped_storage().nbytes()
    whole = tensor.is_contiguous() and tensor.numel() * tensor.element_size() == size
    rows = _row_count(tensor, _MANY_ROWS)
    if not whole or rows <= 1 or tensor.is_conj() or tensor.is_neg() or _ordered(tensor):
        return None
    return [size // rows, rows]


def _row_count(tensor: torch.Tensor, enough: int) -> int:
    """Return how many rows there are: along the first axis that has some, or along more axes.

    Args:
        tensor: any.
        enough: take in further axes until there are so many.
    """
    count = 1
    for size in tensor.shape:
        count *= size
        if count >= max(enough, 2):
            break
    return count


def _change(
    tensor: torch.Tensor, generator: torch.Generator, scale: float | None, enough: int
) -> bool:
    if tensor.is_conj() or tensor.is_neg() or not tensor.numel():
        return False
    target = tensor if _writable(tensor) else _whole(tensor)
    before = target.clone()
    after = before if _ordered(before) else _shuffled(before, generator, enough)
    if scale is not None:
        after = _scaled(after, scale)
    target.copy_(after)
    return not torch.equal(_bits(before), _bits(target.contiguous()))


def _writable(tensor: torch.Tensor) -> bool:
    """Whether every element has memory of its own."""
    return all(
        step != 0 for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1
    ) and not torch._debug_has_internal_overlap(tensor)  # noqa: SLF001 - torch's own question


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return the memory of a tensor as one row of numbers of its type."""
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    bare = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return bare.set_(storage, 0, (count,), (1,))


def _ordered(tensor: torch.Tensor) -> bool:
    """Whether the order of rows may matter: sorted numbers, and symmetric matrices."""
    try:
        if tensor.dim() == 1:
            return bool((tensor[1:] >= tensor[:-1]).all())
        if tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 1:
            return torch.equal(tensor, tensor.mT)
    except RuntimeError:  # small and complex types do not know all of these
        return tensor.dim() < 2  # noqa: PLR2004 - no rows
    return False


def _shuffled(tensor: torch.Tensor, generator: torch.Generator, enough: int) -> torch.Tensor:
    rows = _row_count(tensor, enough)
    if rows <= 1:
        return tensor
    # Never the order that it had.
    shift = int(torch.randint(1, rows, (1,), generator=generator))
    picked = torch.randperm(rows, generator=generator)
    if torch.equal(picked, torch.arange(rows)):
        picked = picked.roll(shift)
    # Through bytes: not every small type can be indexed.
    raw = tensor.contiguous().unsqueeze(-1).view(torch.uint8).reshape(rows, -1)
    taken: torch.Tensor = raw.index_select(0, picked).reshape(-1).view(tensor.dtype)
    return taken.reshape(tensor.shape)


def _scaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    wide: Any = tensor if tensor.is_complex() else tensor.to(torch.float64)
    scaled: torch.Tensor = (wide * scale).to(tensor.dtype)
    return scaled


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.unsqueeze(-1).view(torch.uint8)

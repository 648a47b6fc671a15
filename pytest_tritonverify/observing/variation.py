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


def kinds(values: Sequence[object]) -> dict[str, Any]:
    """Say of arguments how many `tensors` there are, and whether one is `floating`."""
    leaves = [tensor for _, tensor in running.tensor_leaves(list(values), "")]
    floating = any(tensor.is_floating_point() or tensor.is_complex() for tensor in leaves)
    return {"tensors": len(leaves), "floating": floating}


def alter(values: Sequence[object], seed: int) -> bool:
    """Change the values of tensors in place.

    Floating and complex tensors are changed. Where there are none, whole numbers change places:
    they may be indices or lengths, so that no other numbers are put in.

    Args:
        values: the arguments of a call, which may share memory.
        seed: of the generator that orders rows anew.

    Returns:
        Whether anything is different now.
    """
    generator = torch.Generator().manual_seed(seed)
    leaves = [tensor.detach() for _, tensor in running.tensor_leaves(list(values), "")]
    floating = [tensor for tensor in leaves if tensor.is_floating_point() or tensor.is_complex()]
    done: set[int] = set()
    changed = False
    for tensor in floating or leaves:
        storage = storage_of(tensor)
        if storage is None or storage._cdata in done:  # noqa: SLF001 - the storage's identity
            continue
        done.add(storage._cdata)  # noqa: SLF001 - the storage's identity
        # Rare types lack operators that this takes: such a tensor stays as it is.
        with contextlib.suppress(RuntimeError, NotImplementedError):
            changed |= _change(tensor, generator, scale=bool(floating))
    return changed


def _change(tensor: torch.Tensor, generator: torch.Generator, *, scale: bool) -> bool:
    if tensor.is_conj() or tensor.is_neg() or not tensor.numel():
        return False
    target = tensor if _writable(tensor) else _whole(tensor)
    before = target.clone()
    after = before if _ordered(before) else _shuffled(before, generator)
    if scale:
        after = _scaled(after)
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
    return torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))


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


def _shuffled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    for axis, size in enumerate(tensor.shape):
        if size > 1:
            # Never the order that it had.
            shift = int(torch.randint(1, size, (1,), generator=generator))
            picked = torch.randperm(size, generator=generator)
            if torch.equal(picked, torch.arange(size)):
                picked = picked.roll(shift)
            return _taken(tensor, axis, picked)
    return tensor


def _taken(tensor: torch.Tensor, axis: int, picked: torch.Tensor) -> torch.Tensor:
    # Through bytes: not every small type can be indexed.
    size = tensor.element_size()
    raw = tensor.contiguous().unsqueeze(-1).view(torch.uint8)
    if size == 1:
        raw = raw.reshape(*tensor.shape, 1)
    taken: torch.Tensor = raw.index_select(axis, picked).contiguous().view(tensor.dtype)
    return taken.reshape(tensor.shape)


def _scaled(tensor: torch.Tensor) -> torch.Tensor:
    wide: Any = tensor if tensor.is_complex() else tensor.to(torch.float64)
    scaled: torch.Tensor = (wide * _SCALE).to(tensor.dtype)
    return scaled


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.unsqueeze(-1).view(torch.uint8)

"""Tensors by their bits: a digest that does not depend on how they lie in memory.

Two tensors are the same when dtype, shape and bits agree: NaN payloads count, and so does the
sign of a zero.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is copied at a time where a tensor does not lie in one piece on the CPU.
_CHUNK_BYTES = 16 << 20
_NONE = hashlib.sha256().hexdigest()


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the base class on the same memory: a subclass has methods of its own.

    Raises:
        RuntimeError: it has no memory of the usual kind.
    """
    with _base_methods():
        return torch.Tensor.as_subclass(torch.Tensor.detach(tensor), torch.Tensor)


def count(tensor: torch.Tensor) -> int:
    """Return how many elements a tensor has, whatever its class says."""
    with _base_methods():
        return torch.Tensor.numel(tensor)


def facts(tensor: torch.Tensor) -> dict[str, Any]:
    """Describe a tensor so that it can be compared in another process.

    Returns:
        `dtype` without "torch.", `shape`, `digest` of the bits in row-major order, and
        `transposed`, the digest of the transposed matrix where there are two dimensions. A tensor
        whose bits can't be had (on the meta device, or of a wrapping subclass) has null digests.
    """
    digest = transposed = None
    with _base_methods():
        dtype, shape = (getattr(torch.Tensor, key).__get__(tensor) for key in ("dtype", "shape"))
    # Whatever torch raises for tensors without plain memory.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bare = plain(tensor)
        digest = bits(bare)
        if bare.dim() == 2:  # noqa: PLR2004 - a matrix
            transposed = digest if min(bare.shape) <= 1 else bits(bare.t())
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "shape": [int(size) for size in shape],
        "digest": digest,
        "transposed": transposed,
    }


def _base_methods() -> contextlib.AbstractContextManager[object]:
    """Let torch's own methods answer for subclasses."""
    return torch._C.DisableTorchFunctionSubclass()


def bits(tensor: torch.Tensor) -> str:
    """Return the digest of a tensor's bits in row-major order.

    A sparse or quantised tensor goes by what it consists of.

    Raises:
        RuntimeError: it has no bits.
    """
    parts = _parts(tensor)
    if len(parts) == 1:
        return _strided(parts[0])
    return hashlib.sha256("".join(_strided(part) for part in parts).encode()).hexdigest()


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.is_meta:
        raise RuntimeError("a meta tensor has no values")
    if tensor.is_quantized:
        return [tensor.int_repr(), tensor.dequantize()]
    if tensor.layout is torch.sparse_coo:
        whole = tensor.coalesce()
        return [whole.indices(), whole.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def _strided(tensor: torch.Tensor) -> str:
    if not tensor.numel():
        return _NONE
    found = hashlib.sha256()
    for piece in _pieces(tensor):
        found.update(_memory(piece))
    return found.hexdigest()


def _pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a tensor in row-major parts of a bounded size; whole where it needs no copy."""
    lies_ready = (
        tensor.is_contiguous()
        and tensor.device.type == "cpu"
        and not tensor.is_conj()
        and not tensor.is_neg()
    )
    size = tensor.numel() * tensor.element_size()
    if lies_ready or size <= _CHUNK_BYTES or tensor.dim() == 0:
        yield tensor
        return
    rows = max(_CHUNK_BYTES * tensor.shape[0] // size, 1)
    for start in range(0, tensor.shape[0], rows):
        part = tensor[start : start + rows]
        # One row alone may still be too long.
        yield from _pieces(part[0]) if part.shape[0] == 1 else (part,)


def _memory(tensor: torch.Tensor) -> memoryview:
    """Return a strided tensor's values as bytes in row-major order."""
    flat = tensor.resolve_conj().resolve_neg().contiguous().cpu()
    size = flat.element_size()
    # Not by a view of another dtype: torch refuses it for some strides of a single element.
    raw = torch.empty(0, dtype=torch.uint8, device="cpu").set_(
        flat.untyped_storage(), flat.storage_offset() * size, (flat.numel() * size,), (1,)
    )
    return raw.numpy().data

"""Which tensors would be in the host's memory if there were a device.

All memory is the host's; but a tensor that code has put there by its own will, or has never moved
to the device, says so when it is asked for its device, and no kernel may be launched on it.
Whatever is not known to be so counts as the device's: an unknown tensor never makes right code
fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing import reductions

if TYPE_CHECKING:
    from collections.abc import Iterable

# Torch says nothing of its types.
_WeakRef: Any = reductions.StorageWeakRef

# How many more storages may be known than at the last look for those that are gone.
_SLACK = 256


class HostMemory:
    """The storages that are the host's."""

    def __init__(self) -> None:
        # The references keep an address from being used again, so an address is an identity.
        self._known: dict[int, tuple[Any, bool]] = {}
        self._limit = _SLACK

    def __bool__(self) -> bool:
        return bool(self._known)

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is in the host's memory."""
        return bool(self._known) and _address(tensor) in self._known

    def pinned(self, tensor: torch.Tensor) -> bool:
        """Whether it is in the host's memory and a device could reach it there."""
        return self._known.get(_address(tensor), (None, False))[1]

    def add(self, tensor: torch.Tensor, *, pinned: bool = False) -> None:
        """Take a tensor's memory for the host's."""
        storage = _storage(tensor)
        if storage is None:
            return
        if len(self._known) >= self._limit:
            gone = [key for key, (ref, _) in self._known.items() if ref.expired()]
            for key in gone:
                del self._known[key]
            self._limit = len(self._known) + _SLACK
        self._known[storage._cdata] = (_WeakRef(storage), pinned)

    def discard(self, tensor: torch.Tensor) -> None:
        """Take a tensor's memory for the device's."""
        self._known.pop(_address(tensor), None)

    def holds_all(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether there are tensors, and all of them are in the host's memory."""
        found = False
        for tensor in tensors:
            if not self.holds(tensor):
                return False
            found = True
        return found


def tensors_in(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """Yield the tensors among values, and in the lists and tuples among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share their storage."""
    return a is b or (_address(a) != 0 and _address(a) == _address(b))


def _storage(tensor: torch.Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, or wrapped by a transform
        return None


def _address(tensor: torch.Tensor) -> int:
    storage = _storage(tensor)
    return 0 if storage is None else int(storage._cdata)

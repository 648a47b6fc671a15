"""Several sets of inputs that take turns in the same tensors.

A forward sees the same tensors every time, at the same addresses, with the version counters that
they had; what changes from call to call are the values. So an implementation that remembers
results by address, shape or version returns those of another set.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.execution.timing.sets import Turning, shift_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_tritonverify.execution.wire import Message


# Bound before user code could replace it, and look at inputs before the time begins.
_copy = torch.Tensor.copy_


@dataclass(frozen=True)
class _Place:
    """A tensor of the working set, and the geometry that it began with."""

    tensor: torch.Tensor
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Rotation:
    """The working set of a call's arguments, and the sets whose values it takes on.

    Args:
        sets: packed calls of one structure.
        fd: their memory file.
        device: torch's name of the device on which they are to be.
        turning: how the rows of each storage move on, as `sets.described` has it.
    """

    def __init__(
        self,
        sets: Sequence[Message],
        fd: int | None,
        device: str,
        turning: Sequence[Turning] = (),
    ) -> None:
        self._working = tensors.unpack(sets[0], fd, device)
        sources = [tensors.unpack(one, fd, device) for one in sets]
        self._places = [
            _Place(leaf, int(leaf.storage_offset()), tuple(leaf.shape), leaf.stride())
            for leaf in _leaves(self._working)
        ]
        self._targets = storages(self._working)
        self._sources = [storages(source) for source in sources]
        self._turning = list(turning) or [None] * len(self._targets)
        self._alive = sources

    def __len__(self) -> int:
        """Return how many sets there are."""
        return len(self._sources)

    def turn(self, number: int) -> Arguments:
        """Put the values of a set into the working tensors, and return the call.

        Args:
            number: any whole number; sets are taken in turn.
        """
        with torch.no_grad():
            for place in self._places:
                tensor = place.tensor
                tensor.grad = None
                if tuple(tensor.shape) != place.shape or tensor.stride() != place.stride:
                    storage = tensor.untyped_storage()
                    tensor.set_(storage, place.offset, place.shape, place.stride)
        call = _rebuilt(self._working)
        arguments = Arguments(tuple(call["args"]), dict(call["kwargs"]))
        round_, which = divmod(number, len(self._sources))
        source = self._sources[which]
        # Last: what runs between this and the forward is in no time, and could see the values.
        for target, values, how in zip(self._targets, source, self._turning, strict=True):
            _put(target, values, how, round_)
        return arguments


def _put(target: torch.Tensor, values: torch.Tensor, how: Turning, round_: int) -> None:
    """Copy bytes, those of rows that have moved on to their new places."""
    if how is None:
        _copy(target, values)
        return
    size, rows = how
    end, shift = size * rows, shift_of(how, round_)
    # Two copies always, so that every turn runs the same ones.
    middle = end - shift if shift else size * (rows // 2)
    _copy(target[:middle], values[shift : shift + middle])
    _copy(target[middle:end], values[:shift] if shift else values[middle:end])


def _leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name))


def storages(tree: Any) -> list[torch.Tensor]:
    """Return the distinct storages of a tree as bytes, in the order in which they are met.

    Through a tensor of its own, so that writing leaves the version counters of the tree's
    tensors as they are.
    """
    found: dict[int, torch.Tensor] = {}
    for leaf in _leaves(tree):
        storage = leaf.untyped_storage()
        key = storage._cdata
        if key not in found and storage.nbytes():
            raw = torch.empty(0, dtype=torch.uint8, device=storage.device)
            found[key] = raw.set_(storage)
    return list(found.values())


def _rebuilt(value: Any) -> Any:
    """Return the same tensors in new lists and dicts: a forward may have changed the old ones."""
    if isinstance(value, dict):
        return {key: _rebuilt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rebuilt(item) for item in value]
    if type(value) is tuple:
        return tuple(_rebuilt(item) for item in value)
    return value

"""Put other values into the memory of tensors, behind their backs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.execution import running
from pytest_tritonverify.observing.places import storage_of

if TYPE_CHECKING:
    from pytest_tritonverify.execution.task import Arguments


class NotReplayableError(ValueError):
    """The tensors do not have the memory of the others any more."""


def rewrite(held: Arguments, values: Arguments) -> None:
    """Copy the memory of some arguments into that of others, tensor by tensor.

    It goes through aliases of the storages: neither pointers nor version counters show it.

    Raises:
        NotReplayableError: their sizes differ, because the forward has replaced or resized some.
    """
    theirs = dict(running.tensor_leaves(values.keyed(), "input"))
    ours = dict(running.tensor_leaves(held.keyed(), "input"))
    if theirs.keys() != ours.keys():
        raise NotReplayableError("the forward took tensors out of its arguments, or put some in")
    for path, tensor in theirs.items():
        source, target = storage_of(tensor), storage_of(ours[path])
        if (source is None) != (target is None):
            raise NotReplayableError(f"{path} has other memory than before")
        if source is None or target is None:
            continue
        if source.nbytes() != target.nbytes():
            raise NotReplayableError(f"{path} has another size than before")
        # A device may know more of a storage than its bytes; the CPU can't copy the rarest types.
        typed = target.device.type != "cpu" and source.nbytes() % tensor.element_size() == 0
        kind = tensor.dtype if typed else torch.uint8
        _flat(target, kind).copy_(_flat(source, kind))


def _flat(storage: torch.UntypedStorage, kind: torch.dtype) -> torch.Tensor:
    return torch.empty(0, dtype=kind, device=storage.device).set_(storage)

"""Where the bytes of each storage come from, and whether they changed behind the observer's back.

Each storage that is met carries the digest that its bytes had when they were last explained, and
marks: what its values may depend on.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from pytest_tritonverify.execution.unpacking import storage_bytes
from pytest_tritonverify.observing.places import described, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterable

INPUT = "input"
PARAMETER = "parameter"
# A single integer of the model, such as the number of batches that a normalisation has seen.
COUNTER = "counter"
LAUNCH = "launch"
# Handed to a launch that left it as it was.
PASSED = "passed"
# Made outside of torch's operators: a list of numbers, an array of numpy's, another thread.
HOST = "host"

_OF_THE_CALL = frozenset({INPUT, LAUNCH})

# A larger storage is not read in full: of it so many pieces of so many bytes are.
_READ_IN_FULL = 1 << 25
_PIECES = 512
_PIECE = 1 << 14
_MOST_EVENTS = 256
# Kept from code that replaces it later.
_sha256 = hashlib.sha256


@dataclass
class _Entry:
    ref: Any
    digest: bytes
    marks: frozenset[str]


@dataclass
class Ledger:
    """What is known of every storage.

    Args:
        nonce: chooses the pieces of large storages that are read.

    Attributes:
        events: changes that nothing explains, and storages that came from nowhere, as plain data.
    """

    nonce: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    _entries: dict[int, _Entry] = field(default_factory=dict)

    def know(self, tensors: Iterable[torch.Tensor], mark: str) -> None:
        """Enter the storages of tensors that are there before anything runs."""
        for tensor in tensors:
            storage = storage_of(tensor)
            if storage is not None:
                self._enter(storage, frozenset({mark}))

    def marks(self, tensor: torch.Tensor) -> frozenset[str]:
        """Return what a tensor's values may depend on, nothing for one that is not known."""
        storage = storage_of(tensor)
        entry = None if storage is None else self._entry(storage)
        return entry.marks if entry is not None else frozenset()

    def check(self, tensor: torch.Tensor, where: str, place: tuple[str | None, int]) -> str | None:
        """See whether a storage still is what it was, before something reads it.

        Args:
            tensor: shows the storage.
            where: who is going to read it, in words.
            place: file and line of user code.

        Returns:
            What is odd about it: "write", "host", or nothing.
        """
        storage = storage_of(tensor)
        if storage is None:
            return None
        entry = self._entry(storage)
        digest = self.digest(storage)
        if entry is None:
            self._keep(storage, digest, frozenset({HOST}))
            self._event("host", tensor, where, place)
            return "host"
        if entry.digest != digest:
            entry.digest = digest
            entry.marks |= {HOST}
            self._event("write", tensor, where, place)
            return "write"
        return "host" if HOST in entry.marks and not entry.marks & _OF_THE_CALL else None

    def explain(self, tensor: torch.Tensor, marks: frozenset[str]) -> None:
        """Take note that an observed operator wrote to a storage, or made it."""
        storage = storage_of(tensor)
        if storage is not None:
            self._enter(storage, marks)

    def launched(self, tensor: torch.Tensor) -> bool:
        """Take note that a launch may have written to a storage.

        Returns:
            Whether its bytes differ from what they were.
        """
        storage = storage_of(tensor)
        if storage is None:
            return False
        entry = self._entry(storage)
        before = None if entry is None else entry.digest
        self._enter(storage, frozenset())
        entry = self._entries[storage._cdata]
        changed = entry.digest != before
        # What it holds now is the kernel's work, whatever it held before.
        entry.marks = frozenset({LAUNCH}) if changed else entry.marks | {PASSED}
        return changed

    def known(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's storage is known."""
        storage = storage_of(tensor)
        return storage is None or self._entry(storage) is not None

    def digest(self, storage: torch.UntypedStorage) -> bytes:
        """Return a digest of a storage's bytes; of a large one, of pieces of it."""
        flat = (
            storage_bytes(storage) if storage.nbytes() <= _READ_IN_FULL else self._pieces(storage)
        )
        return _sha256(flat.numpy().data).digest()

    def _pieces(self, storage: torch.UntypedStorage) -> torch.Tensor:
        flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        choose = random.Random(self.nonce)  # noqa: S311 - nobody gains by guessing it
        last = flat.numel() - _PIECE
        starts = [0, last, *(choose.randint(0, last) for _ in range(_PIECES))]
        return torch.cat([flat[start : start + _PIECE] for start in starts]).cpu()

    def _enter(self, storage: torch.UntypedStorage, marks: frozenset[str]) -> None:
        known = self._entry(storage)
        if known is not None:
            marks |= known.marks
        self._keep(storage, self.digest(storage), marks)

    def _keep(self, storage: torch.UntypedStorage, digest: bytes, marks: frozenset[str]) -> None:
        # The weak reference keeps the address from being used for another storage.
        ref: Any = StorageWeakRef(storage)
        self._entries[storage._cdata] = _Entry(ref, digest, marks)

    def _entry(self, storage: torch.UntypedStorage) -> _Entry | None:
        return self._entries.get(storage._cdata)

    def _event(
        self, kind: str, tensor: torch.Tensor, where: str, place: tuple[str | None, int]
    ) -> None:
        if len(self.events) < _MOST_EVENTS:
            self.events.append(
                {
                    "kind": kind,
                    "tensor": described(tensor),
                    "where": where,
                    "file": place[0],
                    "line": place[1],
                }
            )

"""What a model holds, as one side tells it: names, and facts by which tensors are compared.

The implementation's process may have been made to send anything, so that what it sends is read
with care and never taken for more than its own word about its own tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import errors
from pytest_tritonverify.execution.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

# More than any model that a case is made of; the scan says so where it stopped.
MOST_TENSORS = 8192
_LONGEST_NAME = 300
_MOST_DIMS = 64
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DTYPE = re.compile(r"[a-z0-9_]{1,40}")


@dataclass(frozen=True)
class Facts:
    """One tensor under one of its names.

    Attributes:
        dtype: without "torch.".
        shape: its sizes.
        digest: of its bits in row-major order; None where they can't be had.
        transposed: the same of the transposed matrix; None without two dimensions.
        registered: it is a parameter or a buffer, no plain attribute.
        drawn: it comes from a random generator, None where that was not found out. Of the
            reference only.
        volatile: why its values at the time say nothing: "input" (they follow from the inputs),
            "fresh" (memory that nobody has written), "unknown" (neither could be ruled out). Of
            the reference only; None otherwise.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str | None
    transposed: str | None = None
    registered: bool = True
    drawn: bool | None = None
    volatile: str | None = None

    @property
    def kind(self) -> str:
        """Dtype and shape, as in `float32[33, 17]`."""
        return f"{self.dtype}{list(self.shape)}"

    def agrees(self, other: Facts) -> bool:
        """Whether two tensors are the same bit by bit, or matrices that are transposes."""
        if self.dtype != other.dtype or self.digest is None or other.digest is None:
            return False
        if self.shape == other.shape and self.digest == other.digest:
            return True
        transposes = len(self.shape) == 2 and self.shape == other.shape[::-1]  # noqa: PLR2004 - a matrix
        return transposes and self.transposed == other.digest

    @classmethod
    def of(cls, data: object) -> Facts:
        """Read facts that may be forged.

        Raises:
            WireError: they are none.
        """
        if not isinstance(data, dict):
            raise WireError("a tensor's facts are no object")
        shape = data.get("shape")
        if (
            not isinstance(shape, list)
            or len(shape) > _MOST_DIMS
            or not all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
        ):
            raise WireError("a tensor's shape is none")
        dtype = data.get("dtype")
        if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
            raise WireError("a tensor's dtype is none")
        drawn, volatile = data.get("drawn"), data.get("volatile")
        return cls(
            dtype=dtype,
            shape=tuple(shape),
            digest=_digest(data.get("digest")),
            transposed=_digest(data.get("transposed")),
            registered=data.get("registered") is True,
            drawn=drawn if isinstance(drawn, bool) else None,
            volatile=volatile if volatile in ("input", "fresh", "unknown") else None,
        )


@dataclass(frozen=True)
class Inventory:
    """All tensors that a model was found to hold at one time.

    Attributes:
        tensors: facts by name; a shared tensor stands under all its names.
        sequences: lengths of lists, tuples and the like by name; None for what has no order.
        truncated: there was more than a scan goes through.
    """

    tensors: Mapping[str, Facts] = field(default_factory=dict)
    sequences: Mapping[str, int | None] = field(default_factory=dict)
    truncated: bool = False

    @classmethod
    def of(cls, data: object) -> Inventory:
        """Read an inventory that may be forged.

        Raises:
            WireError: it is none, or longer than one may be.
        """
        if not isinstance(data, dict):
            raise WireError("an inventory is no object")
        tensors, sequences = data.get("tensors"), data.get("sequences")
        if not isinstance(tensors, list) or not isinstance(sequences, list):
            raise WireError("an inventory lacks its lists")
        if len(tensors) > MOST_TENSORS or len(sequences) > MOST_TENSORS:
            raise WireError("an inventory is longer than a scan makes one")
        lengths: dict[str, int | None] = {}
        for entry in sequences:
            name, length = _pair(entry)
            lengths[_name(name)] = length if type(length) is int else None
        found = {}
        for entry in tensors:
            name, facts = _pair(entry)
            found[_name(name)] = Facts.of(facts)
        return cls(found, lengths, data.get("truncated") is True)


def _pair(entry: object) -> tuple[Any, Any]:
    if not isinstance(entry, list) or len(entry) != 2:  # noqa: PLR2004 - a pair
        raise WireError("an entry of an inventory is no pair")
    return entry[0], entry[1]


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise WireError("a tensor's name is none")
    return errors.printable(value)


def _digest(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise WireError("a digest is none")
    return value

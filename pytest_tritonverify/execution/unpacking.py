"""Rebuild trees of tensors and plain values from descriptions that may be forged.

The reader checks every number before torch sees it, because an untrusted process may have
written the description. The form is the one that `tensors.pack` writes.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import mmap
import os
import re
import warnings
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import errors, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ALIGNMENT = 64
MAX_DEPTH = 64
MOST_VALUES = 100_000
"""Of one result. The judge looks at each of them, and so many are no tensors."""
# Of one result, too: whoever forges it can choose keys that are all alike to a hash table, which
# then takes the square of the time, and every record becomes a class.
_MOST_KEYS = 4096
_MOST_RECORDS = 1000
_MOST_FIELDS = 256
MOST_BITS = 1 << 13
"""Of an integer in a result. Python refuses to write longer ones in decimal."""
_MAX_DIMS = 64

_MAX_REASON = 500
_MOST_TIMES, _MOST_CLAIMED = 16, 1 << 30
# What reading a wrong description raises, in Python or in torch.
_WRONG = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

# The imaginary part of a conjugate is a negated view; other dtypes have none.
_NEGATED = (
    *(torch.bfloat16, torch.float16, torch.float32, torch.float64),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
)

Node = dict[str, Any]

# Quantised dtypes need more than bytes, and such tensors are refused when packing.
_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype) and not re.match(r"torch\.qu?int", str(value))
}
_NAMES = {
    **_DTYPES,
    **{
        str(value).removeprefix("torch."): value
        for value in vars(torch).values()
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format))
    },
}


def unpack(
    spec: Node,
    fd: int | None,
    device: str = "cpu",
    move: Callable[[torch.Tensor], torch.Tensor] | None = None,
    *,
    bounded: bool = False,
) -> Any:
    """Rebuild a packed tree on a private copy of its memory.

    Args:
        spec: what `tensors.pack` described.
        fd: the sealed memory file. It is only mapped: the caller still closes it.
        device: where the tensors are put; aliasing and strides are kept there too.
        move: puts a contiguous tensor of the CPU there, at the place that it chooses; it may raise
            NotImplementedError for rare types. Default: torch's own way.
        bounded: refuse what takes long to rebuild and to look at, though it takes few bytes.

    Raises:
        wire.WireError: the description is wrong or doesn't fit the memory file.
    """
    try:
        with warnings.catch_warnings():
            # Torch warns of experimental dtypes, which a user's filters may turn into errors.
            warnings.simplefilter("ignore")
            budget = _Budget() if bounded else None
            reader = _Reader(spec["segments"], fd, device, move, budget)
            return reader.value(spec["tree"], 0)
    except (wire.WireError, *_WRONG) as error:
        reason = str(error) if isinstance(error, wire.WireError) else repr(error)
        # It may quote anything.
        text = errors.clip(errors.printable(reason), _MAX_REASON)
        raise wire.WireError(f"a description of values is wrong: {text}") from None
    except (OSError, MemoryError) as error:
        raise wire.WireError(f"the memory of tensors can't be mapped: {error!r}") from None


def storage_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return a storage as a flat uint8 CPU tensor, without a copy where it is on the CPU."""
    flat = torch.empty(0, dtype=torch.uint8, device=storage.device)
    flat.set_(storage)
    return flat.cpu()


@dataclasses.dataclass
class _Budget:
    """What a description may still ask for."""

    values: int = MOST_VALUES
    records: int = _MOST_RECORDS

    def charge(self, node: Node) -> None:
        """Take off what one value costs.

        Raises:
            wire.WireError: that is more than is left.
        """
        self.values -= 1
        kind = node["k"]
        crowded = False
        if kind in ("dataclass", "namedtuple"):
            self.records -= 1
            crowded = len(node["fields"]) > _MOST_FIELDS
        elif kind in ("dict", "set", "frozenset"):
            keys = node["v"] if kind != "dict" else [pair[0] for pair in node["v"]]
            # How text is hashed is another secret in every process.
            crowded = sum(key["k"] != "str" for key in keys) > _MOST_KEYS
        elif kind == "int":
            crowded = len(node["v"]) > MOST_BITS // 4 + len("-0x")
        if self.values < 0 or self.records < 0 or crowded:
            raise wire.WireError(
                f"more than {MOST_VALUES} values, {_MOST_KEYS} numbers as keys, {_MOST_RECORDS} "
                f"records, or {MOST_BITS} bits of an integer"
            )


class _Reader:
    def __init__(
        self,
        segments: list[list[int]],
        fd: int | None,
        device: str,
        move: Callable[[torch.Tensor], torch.Tensor] | None,
        budget: _Budget | None,
    ) -> None:
        self._device = device
        self._budget = budget
        self._move = move or (lambda tensor: tensor.to(device))
        self._storages: list[torch.UntypedStorage] = []
        # By segment: the first tensor that was put on the device, which shows all of its storage.
        self._placed: dict[int, torch.Tensor] = {}
        size = 0 if fd is None else os.fstat(fd).st_size
        memory = None
        if fd is not None and size:
            memory = mmap.mmap(
                fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
            )
        for segment in segments:
            start, length, *turned = (natural(number) for number in segment)
            if start % ALIGNMENT or start + length > size or any(n >= length for n in turned):
                raise wire.WireError(f"a segment [{start}, {length}] doesn't fit its memory")
            if length and memory is not None:
                part = torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=length)
                if turned:
                    part = torch.cat((part[turned[0] :], part[: turned[0]]))
                storage = part.untyped_storage()
            else:
                storage = torch.empty(0, dtype=torch.uint8, device="cpu").untyped_storage()
            self._storages.append(storage)

    def value(self, node: Node, depth: int) -> Any:  # noqa: PLR0911 - one case a kind
        if depth > MAX_DEPTH:
            raise wire.WireError("a description of values is nested too deeply")
        if self._budget is not None:
            self._budget.charge(node)
        kind = node["k"]
        if kind == "tensor":
            return self._tensor(node)
        if kind in _PLAIN_READERS:
            return _PLAIN_READERS[kind](node)
        if kind == "slice":
            return slice(*(self.value(part, depth + 1) for part in node["v"]))
        if kind == "dict":
            return {self.value(k, depth + 1): self.value(v, depth + 1) for k, v in node["v"]}
        if kind in ("ndarray", "scalar"):
            array = self._on_host(node["v"]).numpy()
            return array if kind == "ndarray" else array[()]
        items = [self.value(item, depth + 1) for item in node["v"]]
        if kind in ("dataclass", "namedtuple"):
            return _record(node, items)
        return _SEQUENCES[kind](items)

    def _tensor(self, node: Node) -> torch.Tensor:
        tensor = self._on_host(node)
        if self._device != "cpu":
            tensor = self._on_device(tensor, natural(node["s"]))
        if node["conj"]:
            tensor = tensor.conj()
        if node["neg"]:
            if not (tensor.is_complex() or tensor.dtype in _NEGATED):
                raise wire.WireError(f"a tensor of {tensor.dtype} is said to be negated")
            tensor = torch._neg_view(tensor)  # noqa: SLF001 - the only maker of such views
        if node["grad"]:
            tensor.requires_grad_()
        return tensor

    def _on_host(self, node: Node) -> torch.Tensor:
        dtype = _DTYPES[node["dtype"]]
        storage = self._storages[natural(node["s"])]
        offset = natural(node["off"])
        shape = [natural(n) for n in node["shape"]]
        stride = [natural(n) for n in node["stride"]]
        if len(shape) != len(stride) or len(shape) > _MAX_DIMS:
            raise wire.WireError(f"shape {shape} and strides {stride} don't belong together")
        tensor = torch.empty(0, dtype=dtype, device="cpu")
        last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if 0 not in shape and (last + 1) * tensor.element_size() > storage.nbytes():
            raise wire.WireError(
                f"shape {shape} with strides {stride} reaches beyond {storage.nbytes()} bytes"
            )
        return tensor.set_(storage, offset, shape, stride)

    def _on_device(self, tensor: torch.Tensor, segment: int) -> torch.Tensor:
        """Put a tensor on the device, where those of one segment share their memory, too.

        A device may know more of a storage than its bytes, so it is made as one of its type.
        """
        offset, shape, stride = tensor.storage_offset(), tensor.size(), tensor.stride()
        if segment not in self._placed:
            made = self._moved(tensor)
            # Detached, so that whether this one requires gradients does not show in the others.
            self._placed[segment] = made.detach()
            geometry = (made.dtype, made.size(), made.stride())
            if not offset and geometry == (tensor.dtype, shape, stride):
                return made
        placed = self._placed[segment]
        # Where it does not begin where its storage does.
        ahead = placed.storage_offset() * placed.element_size() // tensor.element_size()
        if placed.dtype == tensor.dtype:
            return placed.as_strided(shape, stride, ahead + offset)
        other = torch.empty(0, dtype=tensor.dtype, device=self._device)
        return other.set_(placed.untyped_storage(), ahead + offset, shape, stride)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device that shows all of the storage which a tensor shows."""
        storage = tensor.untyped_storage()
        count, left = divmod(storage.nbytes(), tensor.element_size())
        if not left:
            whole = tensor.is_contiguous() and tensor.numel() == count
            bare = torch.empty(0, dtype=tensor.dtype, device="cpu")
            flat = tensor if whole else bare.set_(storage)
            if flat.dtype == torch.bool:
                # Its copies are 0 and 1, whatever the bytes were.
                return self._move(flat.view(torch.uint8)).view(torch.bool)
            # Torch can't copy its rarest types.
            with contextlib.suppress(NotImplementedError):
                return self._move(flat)
        return self._move(storage_bytes(storage))


def require_modest(tensors: Iterable[torch.Tensor]) -> None:
    """Refuse tensors that claim far more than the memory that came with them.

    Expanded tensors have more elements than memory, and the same memory may be returned under
    several names. But whoever looks at all elements must neither run out of memory nor go on for
    ever because of a few bytes.

    Args:
        tensors: those of one result, in bytes together at most sixteen times what came, or one
            gibibyte more than came.

    Raises:
        wire.WireError: they claim more.
    """
    claimed, held = 0, {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        claimed += tensor.numel() * tensor.element_size()
        held[storage._cdata] = storage.nbytes()
    came = sum(held.values())
    if claimed > max(_MOST_TIMES * came, came + _MOST_CLAIMED):
        raise wire.WireError(f"tensors claim {claimed} bytes, and {came} came")


def natural(value: object) -> int:
    """Return a number that is a whole one and not negative.

    Raises:
        wire.WireError: it is anything else.
    """
    if type(value) is not int or value < 0:
        raise wire.WireError(f"{value!r} is no natural number")
    return value


def _record(node: Node, items: list[Any]) -> Any:
    """Rebuild a named tuple or dataclass; as a plain tuple or dict where its names are odd."""
    fields = node["fields"]
    if len(fields) != len(items):
        raise wire.WireError(f"{len(items)} values for the fields {fields}")
    # The names become source text in the class maker: let through nothing but identifiers.
    proper = all(
        isinstance(n, str) and re.fullmatch(r"(?!__)[A-Za-z_]\w{0,99}", n)
        for n in [node["name"], *fields]
    )
    if node["k"] == "namedtuple":
        try:
            return namedtuple(node["name"], fields)(*items) if proper else tuple(items)  # noqa: PYI024 - made at run time
        except ValueError:  # a keyword, a duplicate or an underscore among the names
            return tuple(items)
    if not proper:
        return dict(zip(fields, items, strict=True))
    # Equal values have equal hashes, so that it can be a key or in a set as the original could.
    made = dataclasses.make_dataclass(
        node["name"], fields, frozen=bool(node["frozen"]), unsafe_hash=not node["frozen"]
    )
    return made(*items)


_PLAIN_READERS: dict[str, Any] = {
    "none": lambda _: None,
    "ellipsis": lambda _: Ellipsis,
    "bool": lambda node: bool(node["v"]),
    "int": lambda node: int(node["v"], 16),
    "float": lambda node: float.fromhex(node["v"]),
    "complex": lambda node: complex(*(float.fromhex(part) for part in node["v"])),
    "str": lambda node: str(node["v"]),
    "bytes": lambda node: base64.b64decode(node["v"]),
    "range": lambda node: range(*node["v"]),
    "size": lambda node: torch.Size(node["v"]),
    "device": lambda node: torch.device(node["v"]),
    "torch": lambda node: _NAMES[node["v"]],
}
_SEQUENCES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}

"""Trees of tensors and plain values as JSON and one sealed memory file, without pickle.

Every distinct storage is written once; a tensor is described by storage, dtype, offset, shape
and strides, so overlapping and expanded views come back as they were. A receiver maps the file
privately: what it writes stays in its own process, and mapping again gives a fresh copy.

The reader checks every number before torch sees it, because an untrusted process may have
written the description.
"""

from __future__ import annotations

import base64
import dataclasses
import mmap
import os
import re
from collections import namedtuple
from typing import Any

import torch

from pytest_tritonverify.execution import wire

_ALIGNMENT = 64
_MAX_DEPTH = 64
_MAX_DIMS = 64
_WRITE_CHUNK = 1 << 30

Node = dict[str, Any]


class UnsupportedValueError(TypeError):
    """A value that can't be handed from one process to another."""


@dataclasses.dataclass(frozen=True)
class Packed:
    """A tree in its travelling form.

    Attributes:
        spec: JSON-able description: `tree`, and `segments` as [offset, bytes] pairs.
        fd: the sealed memory file; the owner closes it.
    """

    spec: Node
    fd: int

    def close(self) -> None:
        """Close the memory file."""
        os.close(self.fd)


def pack(tree: object, *, keep_layout: bool) -> Packed:
    """Write a tree of tensors and plain values into a memory file.

    Args:
        tree: tensors, numbers, strings, None, torch dtypes and the like, nested in lists,
            tuples, named tuples, dicts, sets and dataclasses.
        keep_layout: keep strides, offsets and aliasing (inputs). Otherwise a tensor that
            shows only part of its storage is made contiguous first (outputs).

    Raises:
        UnsupportedValueError: something in the tree has no plain form.
    """
    writer = _Writer(keep_layout)
    try:
        node = writer.node(tree, "", 0)
        wire.seal(writer.fd)
    except BaseException:
        os.close(writer.fd)
        raise
    return Packed({"tree": node, "segments": writer.segments}, writer.fd)


def unpack(spec: Node, fd: int | None, device: str = "cpu") -> Any:
    """Rebuild a packed tree on a private copy of its memory.

    Args:
        spec: what `pack` described.
        fd: the sealed memory file. It is only mapped: the caller still closes it.
        device: where the tensors are put; aliasing and strides are kept there too.

    Raises:
        wire.WireError: the description is wrong or doesn't fit the memory file.
    """
    try:
        reader = _Reader(spec["segments"], fd, device)
        return reader.value(spec["tree"], 0)
    except wire.WireError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise wire.WireError(f"a description of values is wrong: {error!r}") from None
    except RuntimeError as error:
        raise wire.WireError(f"a description of tensors is wrong: {error}") from None


def storage_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return a storage as a flat uint8 CPU tensor, without a copy where it is on the CPU."""
    flat = torch.empty(0, dtype=torch.uint8, device=storage.device)
    flat.set_(storage)
    return flat.cpu()


class _Writer:
    def __init__(self, keep_layout: bool) -> None:  # noqa: FBT001 - private
        self.fd = wire.new_memory("tritonverify")
        self.keep_layout = keep_layout
        self.segments: list[list[int]] = []
        self._known: dict[int, int] = {}
        # Storages are told apart by address, so they must outlive the walk.
        self._alive: list[object] = []
        self._end = 0

    def node(self, value: object, path: str, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise UnsupportedValueError(f"{path or 'the value'} is nested too deeply")
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        plain = _plain(value)
        if plain is not None:
            return plain
        return self._container(value, path, depth)

    def _container(self, value: object, path: str, depth: int) -> Node:
        if isinstance(value, torch.Size):
            return {"k": "size", "v": [int(n) for n in value]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {
                "k": "namedtuple",
                "name": type(value).__name__,
                "fields": list(value._fields),
                "v": [self.node(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)],
            }
        if isinstance(value, (list, tuple, set, frozenset)):
            kind = next(
                name
                for name, cls in (
                    ("list", list),
                    ("tuple", tuple),
                    ("set", set),
                    ("frozenset", frozenset),
                )
                if isinstance(value, cls)
            )
            items = [self.node(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
            return {"k": kind, "v": items}
        if isinstance(value, dict):
            return {
                "k": "dict",
                "v": [
                    [
                        self.node(k, f"{path} key", depth + 1),
                        self.node(v, f"{path}[{k!r}]", depth + 1),
                    ]
                    for k, v in value.items()
                ],
            }
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            return {
                "k": "dataclass",
                "name": type(value).__name__,
                "fields": names,
                "v": [self.node(getattr(value, n), f"{path}.{n}", depth + 1) for n in names],
            }
        array = _as_array(value)
        if array is not None:
            return {"k": "ndarray", "v": self.node(array, path, depth + 1)}
        raise UnsupportedValueError(
            f"{path or 'a value'} is a {type(value).__module__}.{type(value).__qualname__}, which "
            "can't be handed to another process; use tensors, numbers, strings, dtypes, and "
            "lists, tuples, dicts or dataclasses of them"
        )

    def _tensor(self, tensor: torch.Tensor, path: str) -> Node:
        tensor = _plain_tensor(tensor, path)
        requires_grad = tensor.requires_grad
        tensor = tensor.detach()
        if not self.keep_layout:
            tensor = tensor.resolve_conj().resolve_neg()
            if tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size():
                tensor = tensor.contiguous().clone()
        return {
            "k": "tensor",
            "s": self._segment(tensor.untyped_storage()),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "off": tensor.storage_offset(),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "conj": tensor.is_conj(),
            "neg": tensor.is_neg(),
            "grad": requires_grad,
        }

    def _segment(self, storage: torch.UntypedStorage) -> int:
        key = storage._cdata  # noqa: SLF001 - the only identity that empty storages have too
        if key in self._known:
            return self._known[key]
        size = storage.nbytes()
        start = -(-self._end // _ALIGNMENT) * _ALIGNMENT
        if size:
            os.ftruncate(self.fd, start + size)
            view = storage_bytes(storage).numpy().data
            written = 0
            while written < size:
                chunk = view[written : written + _WRITE_CHUNK]
                written += os.pwrite(self.fd, chunk, start + written)
            self._end = start + size
        self._alive.append(storage)
        self._known[key] = len(self.segments)
        self.segments.append([start, size])
        return self._known[key]


def _plain_tensor(tensor: torch.Tensor, path: str) -> torch.Tensor:
    """Return a strided tensor of the base class that holds the same values.

    Raises:
        UnsupportedValueError: there is none, or it would be inexact.
    """
    name = path or "the value"
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise UnsupportedValueError(
            f"{name} is a tensor subclass, {type(tensor).__qualname__}; "
            "only plain torch.Tensor values can be judged"
        )
    if tensor.is_meta:
        raise UnsupportedValueError(f"{name} is a meta tensor: it has a shape but no values")
    if tensor.is_nested:
        raise UnsupportedValueError(f"{name} is a nested tensor; convert it to a padded one")
    if tensor.is_quantized:
        raise UnsupportedValueError(
            f"{name} is a quantized tensor ({tensor.dtype}); return its int_repr() and scales"
        )
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    return tensor


def _plain(value: object) -> Node | None:  # noqa: C901, PLR0911, PLR0912 - one case a type
    if value is None:
        return {"k": "none"}
    if value is Ellipsis:
        return {"k": "ellipsis"}
    # Exact builtins first: numpy's scalars and enums subclass some of them.
    if isinstance(value, bool):
        return {"k": "bool", "v": value}
    if isinstance(value, int):
        return {"k": "int", "v": str(int(value))}
    if isinstance(value, float):
        return {"k": "float", "v": float(value).hex()}
    if isinstance(value, complex):
        return {"k": "complex", "v": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, str):
        return {"k": "str", "v": str(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"k": "bytes", "v": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, slice):
        parts = [_plain(part) for part in (value.start, value.stop, value.step)]
        if None not in parts:
            return {"k": "slice", "v": parts}
    if isinstance(value, range):
        return {"k": "range", "v": [value.start, value.stop, value.step]}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"k": "torch", "v": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"k": "device", "v": str(value)}
    return None


def _as_array(value: object) -> torch.Tensor | None:
    """Return a numpy array or scalar as a tensor; None for anything else."""
    if type(value).__module__.partition(".")[0] != "numpy":
        return None
    try:
        return torch.as_tensor(value).clone()
    except (TypeError, ValueError):
        return None


class _Reader:
    def __init__(self, segments: list[list[int]], fd: int | None, device: str) -> None:
        self._device = device
        self._storages: list[torch.UntypedStorage] = []
        size = 0 if fd is None else os.fstat(fd).st_size
        memory = None
        if fd is not None and size:
            memory = mmap.mmap(
                fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
            )
        for start, length in segments:
            if not (start >= 0 and length >= 0 and start + length <= size):
                raise wire.WireError(f"a segment [{start}, {length}] lies outside its memory")
            if length and memory is not None:
                part = torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=length)
                storage = part.untyped_storage()
            else:
                storage = torch.empty(0, dtype=torch.uint8).untyped_storage()
            if device != "cpu":
                storage = part_on(storage, device)
            self._storages.append(storage)

    def value(self, node: Node, depth: int) -> Any:  # noqa: PLR0911 - one case a kind
        if depth > _MAX_DEPTH:
            raise wire.WireError("a description of values is nested too deeply")
        kind = node["k"]
        if kind == "tensor":
            return self._tensor(node)
        if kind in _PLAIN_READERS:
            return _PLAIN_READERS[kind](node)
        if kind == "slice":
            return slice(*(self.value(part, depth + 1) for part in node["v"]))
        if kind == "dict":
            return {self.value(k, depth + 1): self.value(v, depth + 1) for k, v in node["v"]}
        if kind == "ndarray":
            return self.value(node["v"], depth + 1).numpy()
        items = [self.value(item, depth + 1) for item in node["v"]]
        if kind in ("dataclass", "namedtuple"):
            return _record(node, items)
        return _SEQUENCES[kind](items)

    def _tensor(self, node: Node) -> torch.Tensor:
        dtype = getattr(torch, node["dtype"])
        if not isinstance(dtype, torch.dtype):
            raise wire.WireError(f"{node['dtype']!r} is no dtype")
        storage = self._storages[_natural(node["s"])]
        offset = _natural(node["off"])
        shape = [_natural(n) for n in node["shape"]]
        stride = [_natural(n) for n in node["stride"]]
        if len(shape) != len(stride) or len(shape) > _MAX_DIMS:
            raise wire.WireError(f"shape {shape} and strides {stride} don't belong together")
        tensor = torch.empty(0, dtype=dtype, device=self._device)
        last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if 0 not in shape and (last + 1) * tensor.element_size() > storage.nbytes():
            raise wire.WireError(
                f"shape {shape} with strides {stride} reaches beyond {storage.nbytes()} bytes"
            )
        tensor.set_(storage, offset, shape, stride)
        if node["conj"]:
            tensor = tensor.conj()
        if node["neg"]:
            tensor = torch._neg_view(tensor)  # noqa: SLF001 - the only maker of such views
        if node["grad"]:
            tensor.requires_grad_()
        return tensor


def part_on(storage: torch.UntypedStorage, device: str) -> torch.UntypedStorage:
    """Return a copy of a CPU storage on another device."""
    return storage_bytes(storage).to(device).untyped_storage()


def _natural(value: object) -> int:
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
        isinstance(n, str) and re.fullmatch(r"[A-Za-z]\w{0,99}", n) for n in [node["name"], *fields]
    )
    try:
        if node["k"] == "namedtuple":
            return namedtuple(node["name"], fields)(*items) if proper else tuple(items)  # noqa: PYI024 - made at run time
        if proper:
            return dataclasses.make_dataclass(node["name"], fields)(*items)
    except ValueError:  # a keyword or a duplicate among the names
        pass
    return dict(zip(fields, items, strict=True)) if node["k"] == "dataclass" else tuple(items)


def _read_torch(node: Node) -> Any:
    value = getattr(torch, node["v"])
    if not isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        raise wire.WireError(f"{node['v']!r} names no dtype, layout or memory format")
    return value


_PLAIN_READERS = {
    "none": lambda _: None,
    "ellipsis": lambda _: Ellipsis,
    "bool": lambda node: bool(node["v"]),
    "int": lambda node: int(node["v"]),
    "float": lambda node: float.fromhex(node["v"]),
    "complex": lambda node: complex(*(float.fromhex(part) for part in node["v"])),
    "str": lambda node: str(node["v"]),
    "bytes": lambda node: base64.b64decode(node["v"]),
    "range": lambda node: range(*node["v"]),
    "size": lambda node: torch.Size(node["v"]),
    "device": lambda node: torch.device(node["v"]),
    "torch": _read_torch,
}
_SEQUENCES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}

"""Trees of tensors and plain values as JSON and one sealed memory file, without pickle.

Every distinct storage is written once; a tensor is described by storage, dtype, offset, shape
and strides, so overlapping and expanded views come back as they were. A receiver maps the file
privately: what it writes stays in its own process, and mapping again gives a fresh copy.
"""

from __future__ import annotations

import base64
import dataclasses
import os

import torch

from pytest_tritonverify.execution import wire
from pytest_tritonverify.execution.unpacking import (
    ALIGNMENT,
    MAX_DEPTH,
    MOST_BITS,
    MOST_VALUES,
    Node,
    require_modest,
    storage_bytes,
    unpack,
)

__all__ = [
    "MAX_DEPTH",
    "MOST_VALUES",
    "Node",
    "Packed",
    "UnsupportedValueError",
    "member",
    "pack",
    "require_modest",
    "storage_bytes",
    "too_deep",
    "unpack",
]

_WRITE_CHUNK = 1 << 30
_LONGEST_NAME = 60


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


def too_deep(path: str) -> UnsupportedValueError:
    """Return what to raise for a value that is nested too deeply."""
    # Its path is as long as it is deep.
    name = path if len(path) <= _LONGEST_NAME else f"{path[:_LONGEST_NAME]}..."
    return UnsupportedValueError(
        f"{name or 'the value'} is nested too deeply: more than {MAX_DEPTH} containers are in each "
        "other, or one holds itself"
    )


def member(path: str, key: object) -> str:
    """Return the path of what stands below a key."""
    try:
        return f"{path}[{key!r}]"
    except ValueError:  # Python writes no integer of thousands of digits
        return f"{path}[a {type(key).__name__}]"


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
    writer = _Writer(keep_layout=keep_layout)
    try:
        node = writer.node(tree, "", 0)
        wire.seal(writer.fd)
    except BaseException:
        os.close(writer.fd)
        raise
    return Packed({"tree": node, "segments": writer.segments}, writer.fd)


class _Writer:
    def __init__(self, *, keep_layout: bool) -> None:
        self.fd = wire.new_memory("tritonverify")
        self.keep_layout = keep_layout
        self.segments: list[list[int]] = []
        self._known: dict[int, int] = {}
        self._values = 0
        # Storages are told apart by address, so they must outlive the walk.
        self._alive: list[object] = []
        self._end = 0

    def node(self, value: object, path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(path)
        self._values += 1
        if not self.keep_layout and self._values > MOST_VALUES:
            raise UnsupportedValueError(
                f"the result holds more than {MOST_VALUES} values; hand over long lists as tensors"
            )
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if isinstance(value, int) and not self.keep_layout and value.bit_length() > MOST_BITS:
            raise UnsupportedValueError(
                f"{path or 'the value'} is an integer of more than {MOST_BITS} bits"
            )
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
                "name": str(type(value).__name__),
                "fields": [str(name) for name in value._fields],
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
                        self.node(v, member(path, k), depth + 1),
                    ]
                    for k, v in value.items()
                ],
            }
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            return {
                "k": "dataclass",
                "name": str(type(value).__name__),
                "fields": names,
                "frozen": bool(type(value).__dataclass_params__.frozen),  # type: ignore[attr-defined]
                "v": [self.node(getattr(value, n), f"{path}.{n}", depth + 1) for n in names],
            }
        array = _as_array(value)
        if array is not None:
            kind = "ndarray" if hasattr(value, "__array_finalize__") else "scalar"
            return {"k": kind, "v": self.node(array, path, depth + 1)}
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
            # By the tensor, not by its storage: a device may have layouts of its own.
            tensor = tensor.resolve_conj().resolve_neg().cpu()
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
        key = storage._cdata
        if key in self._known:
            return self._known[key]
        size = storage.nbytes()
        start = -(-self._end // ALIGNMENT) * ALIGNMENT if size else 0
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
    held, needed = tensor.untyped_storage().nbytes(), _reach(tensor)
    if held < needed:
        raise UnsupportedValueError(
            f"{name} is a tensor whose memory was given back: it takes {needed} bytes, and its "
            f"storage has {held}"
        )
    return tensor


def _reach(tensor: torch.Tensor) -> int:
    """Return how many bytes of its storage a tensor needs."""
    if not tensor.numel():
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in steps)
    return int(last + 1) * tensor.element_size()


def _plain(value: object) -> Node | None:  # noqa: C901, PLR0911, PLR0912 - one case a type
    if value is None:
        return {"k": "none"}
    if value is Ellipsis:
        return {"k": "ellipsis"}
    if isinstance(value, (float, complex)) and type(value).__module__ == "numpy":
        return None
    if isinstance(value, bool):
        return {"k": "bool", "v": value}
    if isinstance(value, int):
        # Hexadecimal, because Python limits the decimal digits that it converts.
        return {"k": "int", "v": hex(value)}
    if isinstance(value, float):
        return {"k": "float", "v": float(value).hex()}
    if isinstance(value, complex):
        plain = complex(value)
        return {"k": "complex", "v": [plain.real.hex(), plain.imag.hex()]}
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
    """Return a copy of a numpy array or scalar as a tensor; None for anything else."""
    if type(value).__module__.partition(".")[0] != "numpy":
        return None
    import numpy as np

    if type(value) is not np.ndarray and not isinstance(value, (np.generic, np.memmap)):
        return None
    try:
        # A copy first: torch takes no negative strides, and warns of read-only memory.
        return torch.from_numpy(np.array(value, copy=True))
    except (TypeError, ValueError):
        return None

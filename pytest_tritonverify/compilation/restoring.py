"""Values for a compiler, made of the data that `values` describes them by."""

from __future__ import annotations

import collections
import importlib
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import values

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.compilation.values import Json

    # Returns the kernel at a place, as `values.place_of` describes it.
    Find = Callable[[dict[str, Json]], Any]


class OpaqueError(ValueError):
    """A value that can't be handed over; the text says which."""


def restore(data: Json, find: Find) -> Any:
    """Make what was described, or what stands for it at a compiler.

    Args:
        data: what `values.describe` returned; whoever sent it may have sent anything.
        find: returns the kernel that stands at a place.

    Raises:
        OpaqueError: that can't be done.
        LookupError: a kernel isn't there.
    """
    if data is None or isinstance(data, bool):
        return data
    try:
        return _MAKERS[data["k"]](data, find)
    except (OpaqueError, LookupError):
        raise
    except (ImportError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise OpaqueError(f"{str(data)[:200]} can't be made here: {error}") from None


class Pointer:
    """A tensor, for a compiler: it asks for no more than this.

    Args:
        dtype: torch's type, or Triton's.
        aligned: its address is a multiple of 16 bytes.
        small: AMD's back end can reach all of it by offsets of 32 bits.
    """

    def __init__(self, dtype: Any, *, aligned: bool, small: bool) -> None:
        self.dtype = dtype
        self.shape: tuple[int, ...] = (1,)
        self._address = 0 if aligned else 4
        self._range = values.SMALL if small else 2 * values.SMALL

    def data_ptr(self) -> int:
        """Return an address that is aligned as the tensor's is."""
        return self._address

    def ptr_range(self) -> int:
        """Return the greatest offset from the address, in bytes."""
        return self._range

    def stride(self) -> tuple[int, ...]:
        """Return the steps of one dimension."""
        return (1,)


def _tensor(data: Json, _find: Find) -> Any:
    dtype = _dtype(data["as"]) if data["dtype"] is None else _torch(data["dtype"])
    return Pointer(dtype, aligned=bool(data["aligned"]), small=bool(data["small"]))


def _torch(name: str) -> Any:
    import torch

    return getattr(torch, name)


def _dtype(name: str) -> Any:
    from triton import language

    return language.dtype(name)


def _descriptor(data: Json, find: Find) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    made = TensorDescriptor.__new__(TensorDescriptor)
    # Not by its constructor, which asks for the strides of real memory.
    facts = {
        "base": restore(data["base"], find),
        **{name: list(data[name]) for name in ("shape", "strides", "block_shape")},
        "padding": "zero",
        "round_f32_to_tf32": False,
    }
    vars(made).update(facts)
    return made


def _constexpr(data: Json, find: Find) -> Any:
    from triton import language

    return language.constexpr(restore(data["v"], find))


def _named(data: Json, find: Find) -> Any:
    kind: Any = getattr(collections, "namedtuple")(data["name"], data["fields"])  # noqa: B009 - its fields are data
    return kind(*(restore(item, find) for item in data["v"]))


def _name(data: Json, _find: Find) -> Any:
    found: Any = importlib.import_module(data["module"])
    for part in data["v"].split("."):
        found = getattr(found, part)
    return found


def _numpy(data: Json, _find: Find) -> Any:
    import numpy as np

    return np.dtype(data["dtype"]).type(data["v"])


def _opaque(data: Json, _find: Find) -> Any:
    raise OpaqueError(f"a value of type {data['v']} can't be handed to a compiler elsewhere")


_MAKERS: dict[str, Callable[[Json, Find], Any]] = {
    "int": lambda data, _: int(data["v"]),
    "float": lambda data, _: float.fromhex(data["v"]),
    "str": lambda data, _: str(data["v"]),
    "list": lambda data, find: [restore(item, find) for item in data["v"]],
    "tuple": lambda data, find: tuple(restore(item, find) for item in data["v"]),
    "named": _named,
    "tensor": _tensor,
    "torch_dtype": lambda data, _: _torch(data["v"]),
    "dtype": lambda data, _: _dtype(data["v"]),
    "constexpr": _constexpr,
    "descriptor": _descriptor,
    "jit": lambda data, find: find(data["v"]),
    "numpy": _numpy,
    "module": lambda data, _: importlib.import_module(data["v"]),
    "name": _name,
    "opaque": _opaque,
}

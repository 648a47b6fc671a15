"""Checks before any rule: what can be judged at all, shapes, kinds and dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.dtypes import kind_of
from pytest_tritonverify.accuracy.structure import is_plain_tensor
from pytest_tritonverify.accuracy.verdict import Caution

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.dtypes import Kind

_INT64 = torch.iinfo(torch.int64)
_KIND_NAMES: dict[Kind, str] = {
    "float": "floating point",
    "int": "integer",
    "bool": "boolean",
    "complex": "complex",
}


@dataclass(frozen=True)
class Value:
    """A tensor or number that stands in an output tree.

    Attributes:
        tensor: The tensor; a number's 0-d tensor; None for an integer
            beyond int64.
        integer: That integer, else None.
        is_number: Whether it was a Python number.
    """

    tensor: torch.Tensor | None
    integer: int | None
    is_number: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; a number has none: `()`."""
        return () if self.tensor is None else tuple(self.tensor.shape)

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype; None for an integer beyond int64."""
        return None if self.tensor is None else self.tensor.dtype

    @property
    def dtype_text(self) -> str:
        """The dtype for people and files: `torch.float32`, or `int` beyond int64."""
        return "int" if self.tensor is None else str(self.tensor.dtype)

    @property
    def kind(self) -> Kind | None:
        """The dtype's family; None for formats that can only be compared by their bits."""
        return "int" if self.tensor is None else kind_of(self.tensor.dtype)

    def exact_integer(self) -> int | None:
        """The value of a Python integer, else None."""
        if self.tensor is None:
            return self.integer
        return int(self.tensor.item()) if self.is_number and self.kind == "int" else None


def value_of(value: object) -> Value:
    """Turn a tensor or Python number into a `Value`.

    Python numbers are 0-d tensors of dtype bool, int64, float64 or complex128.

    Raises:
        TypeError: The object is neither.
    """
    if isinstance(value, torch.Tensor):
        return Value(value, None, is_number=False)
    if isinstance(value, bool):
        return Value(torch.tensor(value), None, is_number=True)
    if isinstance(value, int):
        number = int(value)
        if not _INT64.min <= number <= _INT64.max:
            return Value(None, number, is_number=True)
        return Value(torch.tensor(number, dtype=torch.int64), None, is_number=True)
    if isinstance(value, float):
        return Value(torch.tensor(float(value), dtype=torch.float64), None, is_number=True)
    if isinstance(value, complex):
        return Value(torch.tensor(complex(value), dtype=torch.complex128), None, is_number=True)
    raise TypeError(f"expected a tensor or a number, got {type(value).__name__}")


def refusal(value: Value, *, bits_only: bool) -> str | None:
    """Say why a tensor can't be judged, and what to return instead.

    Args:
        value: The tensor or number.
        bits_only: Whether it would be judged by its bits.

    Returns:
        The reason, as the end of a sentence that begins with the tensor; None when it can.
    """
    tensor = value.tensor
    if tensor is None or value.is_number:
        return None
    if not is_plain_tensor(tensor):
        return (
            f"is a tensor subclass ({type(tensor).__module__}.{type(tensor).__qualname__}), whose "
            f"own operators could answer the comparison; return a plain torch.Tensor"
        )
    if tensor.layout != torch.strided:
        return f"has layout {tensor.layout}; return a dense tensor (.to_dense())"
    return _place_refusal(tensor) or _dtype_refusal(tensor, value.kind, bits_only=bits_only)


def _place_refusal(tensor: torch.Tensor) -> str | None:
    if tensor.device.type == "meta":
        return "is a meta tensor: it has a shape but no values"
    if tensor.device.type != "cpu":
        return f"is on device {tensor.device}; move it to the CPU before it is judged"
    # Older torch only; most operators refuse such tensors.
    if any(getattr(tensor, "names", ())):
        return "has named dimensions; return .rename(None)"
    return None


def _dtype_refusal(tensor: torch.Tensor, kind: Kind | None, *, bits_only: bool) -> str | None:
    if tensor.is_quantized:
        return f"is quantised ({tensor.dtype}); return .int_repr() or .dequantize()"
    if kind is None and not bits_only:
        return (
            f"has dtype {tensor.dtype}, for which no accuracy rule exists; "
            f"only a comparison bit for bit (non_compute) is possible"
        )
    return None


def detached(value: Value) -> Value:
    """Strip autograd, which would record the comparison."""
    if value.tensor is None:
        return value
    return Value(value.tensor.detach(), None, value.is_number)


def shape_problem(golden: Value, actual: Value) -> str | None:
    """Compare true shapes: neither flattening nor broadcasting makes two shapes equal."""
    if golden.shape == actual.shape:
        return None
    return f"shapes differ: expected {list(golden.shape)}, got {list(actual.shape)}"


def dtype_problem(golden: Value, actual: Value, *, bits_only: bool) -> str | None:
    """Compare kinds, and dtypes too where bits are compared."""
    expected, got = golden.dtype_text, actual.dtype_text
    if bits_only:
        both_integers = golden.exact_integer() is not None and actual.exact_integer() is not None
        if expected == got or both_integers:
            return None
        return f"dtypes differ: expected {expected}, got {got} (bits are compared: no cast)"
    if golden.kind == actual.kind or golden.kind is None or actual.kind is None:
        return None
    return (
        f"kinds differ: expected {_KIND_NAMES[golden.kind]} ({expected}), "
        f"got {_KIND_NAMES[actual.kind]} ({got})"
    )


def dtype_cautions(path: str, golden: Value, actual: Value) -> tuple[Caution, ...]:
    """Warn about differing widths inside one kind."""
    expected, got = golden.dtype_text, actual.dtype_text
    if expected == got or (golden.tensor is None or actual.tensor is None):
        return ()
    if golden.kind == "int":
        text = (
            f"{path}: integers of different width compared by value: expected {expected}, got {got}"
        )
        return (Caution("integer_width", text),)
    text = f"{path}: the output has dtype {got} and was cast to the golden's {expected}"
    return (Caution("dtype_cast", text),)

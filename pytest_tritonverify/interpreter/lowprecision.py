"""Make bfloat16 and float8 right in the interpreter.

The interpreter keeps both as unsigned integers and computes with the bit patterns, and its own
conversions truncate. Here arrays that know their values (see `formats`) take their place: every
operator computes in float32 and rounds once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_tritonverify.interpreter import arithmetic, atomics, reductions
from pytest_tritonverify.interpreter.formats import (
    CARRIERS,
    E4B15,
    bits_of,
    convert,
    decode_e4b15,
    encode_e4b15,
    is_carrier,
    is_e4b15,
)
from pytest_tritonverify.interpreter.patching import missing, replace

# Without one of these the carriers would meet code that knows nothing of them.
_MODULE_HOOKS = ("InterpreterBuilder", "ReduceOps", "ScanOps", "TensorHandle", "_get_np_dtype")
_BUILDER_HOOKS = (
    "cast_impl",
    "create_fp_to_fp",
    "create_masked_load",
    "create_masked_store",
    *arithmetic.HOOKS,
    *atomics.HOOKS,
)
_FLOAT16 = np.dtype(np.float16)


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps the corrections from being made in this version of Triton, if anything."""
    absent = missing(interpreter, _MODULE_HOOKS)
    if not absent:
        absent = missing(interpreter.InterpreterBuilder, _BUILDER_HOOKS)
        absent += missing(interpreter.ReduceOps, reductions.REDUCE_HOOKS)
        absent += missing(interpreter.ScanOps, reductions.SCAN_HOOKS)
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def install(interpreter: Any) -> None:
    """Correct the interpreter's module in place.

    Args:
        interpreter: the module `triton.runtime.interpreter`, without an `obstacle`.
    """
    _hold(interpreter)
    _convert(interpreter)
    _move(interpreter)
    arithmetic.install(interpreter)
    reductions.install(interpreter)
    atomics.install(interpreter)


def _hold(interpreter: Any) -> None:
    """Hold the formats in their carriers, and let constants of them be made."""

    def make(original: Any) -> Any:
        def _get_np_dtype(tt_dtype: Any) -> Any:
            carrier = CARRIERS.get(tt_dtype.scalar.name)
            return original(tt_dtype) if carrier is None else carrier

        return _get_np_dtype

    replace(interpreter, "_get_np_dtype", make)
    builder = interpreter.InterpreterBuilder
    for name, carrier in CARRIERS.items():
        # Versions before 3.9 lack most of them: `x * 2.0` is an AttributeError there.
        if not hasattr(builder, f"get_{name}"):
            setattr(builder, f"get_{name}", _constant(interpreter, name, carrier))


def _constant(interpreter: Any, name: str, carrier: Any) -> Any:
    language = interpreter.tl
    kind = language.bfloat16 if name == "bf16" else getattr(language, name.replace("fp", "float"))

    def get_constant(_: Any, value: float) -> Any:
        return interpreter.TensorHandle(convert(np.array([value], np.float32), carrier), kind)

    return get_constant


def _convert(interpreter: Any) -> None:
    """Round to nearest, ties to even, or toward zero where the kernel asks for it."""

    def cast(src: Any, dst_type: Any, *, toward_zero: bool) -> Any:
        data, target = src.data, dst_type.scalar
        if is_e4b15(src.data, src.dtype):
            data = decode_e4b15(data)
        if target.name == E4B15:
            half = convert(data, _FLOAT16, toward_zero=data.dtype != _FLOAT16)
            return interpreter.TensorHandle(encode_e4b15(half), target)
        dtype = interpreter._get_np_dtype(target)  # noqa: SLF001 - the module is what is corrected
        return interpreter.TensorHandle(convert(data, dtype, toward_zero=toward_zero), target)

    def cast_impl(_: Any, src: Any, dst_type: Any) -> Any:
        return cast(src, dst_type, toward_zero=False)

    def create_fp_to_fp(_: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        down = interpreter._ir.ROUNDING_MODE.RTZ  # noqa: SLF001 - as above
        return cast(src, dst_type, toward_zero=rounding_mode == down)

    interpreter.InterpreterBuilder.cast_impl = cast_impl
    interpreter.InterpreterBuilder.create_fp_to_fp = create_fp_to_fp


def _move(interpreter: Any) -> None:
    """Load and store bit patterns: the interpreter's C++ knows numpy's own types only."""
    handle, language = interpreter.TensorHandle, interpreter.tl
    unsigned = {1: language.uint8, 2: language.uint16}

    def as_bits(values: Any) -> Any:
        bits = bits_of(values.data.dtype)
        return handle(values.data.view(bits), unsigned[bits.itemsize])

    def make_load(original: Any) -> Any:
        def create_masked_load(
            self: Any, ptrs: Any, mask: Any, other: Any, *args: Any, **kwargs: Any
        ) -> Any:
            element = ptrs.get_element_ty()
            carrier = CARRIERS.get(element.name)
            if carrier is None:
                return original(self, ptrs, mask, other, *args, **kwargs)
            pointer = language.pointer_type(unsigned[carrier.itemsize])
            fill = None if other is None else as_bits(other)
            loaded = original(self, handle(ptrs.data, pointer), mask, fill, *args, **kwargs)
            return handle(loaded.data.view(carrier), element)

        return create_masked_load

    def make_store(original: Any) -> Any:
        def create_masked_store(
            self: Any, ptrs: Any, value: Any, mask: Any, *args: Any, **kwargs: Any
        ) -> Any:
            stored = as_bits(value) if is_carrier(value.data) else value
            return original(self, ptrs, stored, mask, *args, **kwargs)

        return create_masked_store

    replace(interpreter.InterpreterBuilder, "create_masked_load", make_load)
    replace(interpreter.InterpreterBuilder, "create_masked_store", make_store)

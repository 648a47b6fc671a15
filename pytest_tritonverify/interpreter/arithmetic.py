"""Operators on bfloat16 and float8 blocks: computed in float32, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_tritonverify.interpreter.formats import (
    convert,
    fused_multiply_add,
    is_carrier,
    is_e4b15,
    widen,
)
from pytest_tritonverify.interpreter.patching import replace

HOOKS = (
    "binary_op",
    "create_dot",
    "create_erf",
    "create_fabs",
    "create_fma",
    "create_rsqrt",
    "ternary_op",
    "unary_op",
)


def install(interpreter: Any) -> None:
    """Correct the builder's operators, and the parts of `tl.dot_scaled` where a version has it."""
    arithmetic = _Arithmetic(interpreter)
    builder = interpreter.InterpreterBuilder
    replace(builder, "binary_op", arithmetic.binary)
    replace(builder, "ternary_op", arithmetic.ternary)
    replace(builder, "unary_op", arithmetic.unary)
    replace(builder, "create_fma", arithmetic.fused)
    replace(builder, "create_dot", arithmetic.dot)
    # These three go past `unary_op`.
    for name in ("create_erf", "create_fabs", "create_rsqrt"):
        replace(builder, name, arithmetic.widened)
    for name in ("_mxfp_value_handle_to_float32", "_dot_scaled_scale_to_f32", "_e8m0_to_f32"):
        if hasattr(interpreter, name):
            replace(interpreter, name, _scaled_operand)


class _Arithmetic:
    """Makes an operator that knows the carriers from one that does not."""

    def __init__(self, interpreter: Any) -> None:
        self._handle = interpreter.TensorHandle
        self._int1 = interpreter.tl.int1
        self._float32 = interpreter.tl.float32

    def _rounded(self, values: Any, like: Any, kind: Any) -> Any:
        if values.dtype == np.bool_:
            # Under the operands' type, a later conversion would take the truth values for bits.
            return self._handle(values, self._int1)
        return self._handle(convert(values, like.data.dtype), kind.scalar)

    def binary(self, original: Any) -> Any:
        def binary_op(builder: Any, lhs: Any, rhs: Any, op: Any) -> Any:
            if not (is_carrier(lhs.data) or is_carrier(rhs.data)):
                _refuse_e4b15(lhs, rhs)
                return original(builder, lhs, rhs, op)
            like = lhs if is_carrier(lhs.data) else rhs
            return self._rounded(op(widen(lhs.data), widen(rhs.data)), like, lhs.dtype)

        return binary_op

    def ternary(self, original: Any) -> Any:
        def ternary_op(builder: Any, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
            if op is np.where:  # it only picks
                return original(builder, lhs, rhs, other, op)
            if not is_carrier(other.data):
                _refuse_e4b15(lhs, rhs, other)
                return original(builder, lhs, rhs, other, op)
            values = op(widen(lhs.data), widen(rhs.data), widen(other.data))
            return self._rounded(values, other, other.dtype)

        return ternary_op

    def unary(self, original: Any) -> Any:
        def unary_op(builder: Any, arg: Any, op: Any) -> Any:
            if not is_carrier(arg.data):
                _refuse_e4b15(arg)
                return original(builder, arg, op)
            return self._rounded(op(widen(arg.data)), arg, arg.dtype)

        return unary_op

    def widened(self, original: Any) -> Any:
        def create(builder: Any, arg: Any) -> Any:
            if not is_carrier(arg.data):
                return original(builder, arg)
            wide = original(builder, self._handle(widen(arg.data), self._float32))
            return self._rounded(wide.data, arg, arg.dtype)

        return create

    def fused(self, original: Any) -> Any:
        def create_fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
            if not is_carrier(z.data):
                return original(builder, x, y, z)
            return self._handle(fused_multiply_add(x.data, y.data, z.data), z.dtype.scalar)

        return create_fma

    def dot(self, original: Any) -> Any:
        def create_dot(builder: Any, a: Any, b: Any, d: Any, *args: Any, **kwargs: Any) -> Any:
            if not (is_carrier(a.data) or is_carrier(b.data)):
                _refuse_e4b15(a, b)
                return original(builder, a, b, d, *args, **kwargs)
            # Matrix units accumulate in float32 too.
            return self._rounded(
                np.matmul(widen(a.data), widen(b.data)) + widen(d.data), d, d.dtype
            )

        return create_dot


def _scaled_operand(original: Any) -> Any:
    def to_float32(operand: Any, *args: Any) -> Any:
        # Some versions hand the block over, others its array.
        data = operand if isinstance(operand, np.ndarray) else operand.data
        return widen(data) if is_carrier(data) else original(operand, *args)

    return to_float32


def _refuse_e4b15(*operands: Any) -> None:
    if any(is_e4b15(values.data, values.dtype) for values in operands):
        raise TypeError(
            "float8e4b15 only stores numbers, no device computes in it: convert the block first, "
            "with x.to(tl.float16)"
        )

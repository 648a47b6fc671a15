"""Faults of single Triton versions that have nothing to do with number formats."""

from __future__ import annotations

import operator
from dataclasses import replace as replace_field
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from pytest_tritonverify.interpreter.patching import replace, set_for_launch

_FNUZ = ("fp8e4b8", "fp8e5b16")


def reads_memory(interpreter: Any) -> bool:
    """Try whether the interpreter's C++ understands numpy's arrays.

    Triton 3.0 and 3.1 are built for numpy 1; with numpy 2 they load garbage without a word.
    """
    number = np.array([1.5], np.float32)
    address = np.array([number.ctypes.data], np.uint64)
    try:
        found = interpreter._interpreter.load(  # noqa: SLF001 - the module is what is probed
            address, np.ones(1, np.bool_), np.zeros(1, np.float32), np.dtype(np.float32)
        )
    except AttributeError:
        return True  # other versions may go about it in another way
    return bool(found[0] == number[0])


def type_stores(interpreter: Any) -> bool:
    """Store as many bytes as the pointers' type has.

    A block may be wider than its type says: in Triton before 3.3, and so in triton-ascend 3.2.0,
    `tl.sum` of int32 is an int64 array, and storing it writes 4 bytes beyond the output.

    Returns:
        Whether the interpreter has what this needs.
    """
    builder = getattr(interpreter, "InterpreterBuilder", None)
    if not hasattr(builder, "create_masked_store") or not hasattr(interpreter, "_get_np_dtype"):
        return False

    def make(original: Any) -> Any:
        def create_masked_store(
            self: Any, ptrs: Any, value: Any, mask: Any, *args: Any, **kwargs: Any
        ) -> Any:
            dtype = interpreter._get_np_dtype(ptrs.get_element_ty())  # noqa: SLF001 - the module is what is corrected
            if value.data.dtype.itemsize != dtype.itemsize:
                value = interpreter.TensorHandle(value.data.astype(dtype), value.dtype)
            return original(self, ptrs, value, mask, *args, **kwargs)

        return create_masked_store

    replace(builder, "create_masked_store", make)
    return True


def type_reductions(interpreter: Any) -> bool:
    """Give the result of a reduction the array type that its Triton type says.

    Triton before 3.3 leaves an int32 sum in int64; up to 3.8 one that overflows is an error where
    a device wraps around.

    Returns:
        Whether this version needed it.
    """
    classes = [getattr(interpreter, name, None) for name in ("ReduceOps", "ScanOps")]
    if None in classes or not all(hasattr(one, "to_tensor") for one in classes):
        return False
    if _types_reductions(interpreter):
        return False

    def make(original: Any) -> Any:
        def to_tensor(self: Any, ret: Any, dtype: Any) -> Any:
            typed = np.asarray(ret).astype(interpreter._get_np_dtype(dtype))  # noqa: SLF001 - the module is what is corrected
            return original(self, typed, dtype)

        return to_tensor

    for one in classes:
        replace(one, "to_tensor", make)
    return True


def _types_reductions(interpreter: Any) -> bool:
    int32 = interpreter.tl.int32
    reduction = interpreter.ReduceOps(0, None, keep_dims=False)
    wide = np.full(2, 2**31, np.int64)
    try:
        found = [reduction.to_tensor(sums, int32) for sums in (wide, wide[0])]
    except OverflowError:
        return False
    return all(one.handle.data.dtype == np.int32 for one in found)


def index_scalars(interpreter: Any) -> bool:
    """Let a loaded number count a loop.

    Triton before 3.7 turns a block of one element into an int in a way that numpy 2.4 refuses.

    Returns:
        Whether this version needed it.
    """
    if not hasattr(interpreter, "_patch_lang_tensor") or _indexes(interpreter):
        return False

    def make(original: Any) -> Any:
        def _patch_lang_tensor(tensor: Any, *scope: Any) -> None:
            original(tensor, *scope)

            def __index__(self: Any) -> int:  # noqa: N807 - stands for it
                return int(self.handle.data.item())

            set_for_launch(tensor, "__index__", __index__, scope)

        return _patch_lang_tensor

    replace(interpreter, "_patch_lang_tensor", make)
    return True


def _indexes(interpreter: Any) -> bool:
    class Tensor:
        handle = SimpleNamespace(data=np.ones(1, np.int32))

    make_scope = getattr(interpreter, "_LangPatchScope", None)
    interpreter._patch_lang_tensor(Tensor, *([make_scope()] if make_scope else []))  # noqa: SLF001 - the module is what is probed
    scalar: Any = Tensor()
    try:
        return operator.index(scalar) == 1
    except TypeError:
        return False


def name_types(interpreter: Any) -> bool:
    """Let kernels name types that older versions know but can't build: AMD's float8, and int1.

    Returns:
        Whether this version needed it.
    """
    if not hasattr(interpreter, "_patch_lang_core") or _names_types(interpreter):
        return False
    builder = getattr(interpreter, "InterpreterBuilder", None)
    if builder is not None and not hasattr(builder, "get_int1_ty"):
        _add_truth_values(interpreter, builder)

    def make(original: Any) -> Any:
        def _patch_lang_core(lang: Any, *scope: Any) -> None:
            original(lang, *scope)
            known = lang.dtype.to_ir

            def to_ir(self: Any, builder: Any) -> Any:
                if self.name in _FNUZ:
                    return getattr(builder, f"get_{self.name}_ty")()
                return known(self, builder)

            set_for_launch(lang.dtype, "to_ir", to_ir, scope)

        return _patch_lang_core

    replace(interpreter, "_patch_lang_core", make)
    return True


def _add_truth_values(interpreter: Any, builder: Any) -> None:
    int1 = interpreter.tl.int1

    def with_ones(original: Any) -> Any:
        def get_all_ones_value(self: Any, kind: Any) -> Any:
            if kind == int1:
                return interpreter.TensorHandle(np.array([True]), int1)
            return original(self, kind)

        return get_all_ones_value

    builder.get_int1_ty = lambda _: int1
    if hasattr(builder, "get_all_ones_value"):
        replace(builder, "get_all_ones_value", with_ones)


def _names_types(interpreter: Any) -> bool:
    inner = interpreter._patch_lang_core.__code__.co_consts  # noqa: SLF001 - the module is what is probed
    named = {name for code in inner if isinstance(code, CodeType) for name in code.co_consts}
    return named.issuperset(_FNUZ)


def type_comparisons(interpreter: Any) -> bool:
    """Give comparisons the type of truth values.

    They have the type of their operands otherwise, and a mask that is one number for a whole block
    (`mask=pid < n`) becomes a block of that type, which is no mask.

    Returns:
        Whether the interpreter has what this needs.
    """
    builder = getattr(interpreter, "InterpreterBuilder", None)
    if not hasattr(builder, "binary_op"):
        return False
    int1 = interpreter.tl.int1

    def make(original: Any) -> Any:
        def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
            found = original(self, lhs, rhs, op)
            if found.data.dtype == np.bool_ and found.dtype != int1:
                return interpreter.TensorHandle(found.data, int1)
            return found

        return binary_op

    replace(builder, "binary_op", make)
    return True


def compute_tanh(interpreter: Any) -> bool:
    """Compute `tl.tanh` of triton-ascend, which its interpreter has been left without.

    Returns:
        Whether that was missing.
    """
    builder = getattr(interpreter, "InterpreterBuilder", None)
    if builder is None or not hasattr(builder, "unary_op"):
        return False
    if not hasattr(interpreter.tl, "tanh") or hasattr(builder, "create_tanh"):
        return False
    builder.create_tanh = lambda self, arg: self.unary_op(arg, np.tanh)
    return True


def accept_precisions(interpreter: Any) -> bool:
    """Let `tl.dot` be asked for any precision that a device knows; it is exact here anyway.

    Returns:
        Whether this version needed it.
    """
    builder: Any = getattr(interpreter, "interpreter_builder", None)
    options: Any = getattr(builder, "options", None)
    # A module of functions in older versions, which get the builder as an argument.
    semantic: Any = getattr(interpreter, "TritonSemantic", None)
    older = semantic is None
    semantic = getattr(getattr(interpreter, "tl", None), "semantic", None) if older else semantic
    known = getattr(options, "allowed_dot_input_precisions", None)
    if known is None or not hasattr(semantic, "_str_to_dot_input_precision"):
        return False
    kinds = interpreter._ir.INPUT_PRECISION  # noqa: SLF001 - the module is what is corrected
    exact = [name for name in ("bf16x3", "bf16x6") if name.upper().replace("X", "x") in dir(kinds)]
    # Ascend's own: float32 with the mantissa cut short.
    foreign = ("hf32",)
    allowed = tuple(dict.fromkeys((*known, *exact, *foreign)))
    builder.options = replace_field(options, allowed_dot_input_precisions=allowed)

    def known_here(precision: str, used: Any) -> str:
        return "ieee" if used is builder and precision.lower() in foreign else precision

    def make(original: Any) -> Any:
        def of_module(precision: str, used: Any) -> Any:
            return original(known_here(precision, used), used)

        def of_class(self: Any, precision: str, *args: Any) -> Any:
            return original(self, known_here(precision, self.builder), *args)

        return of_module if older else of_class

    replace(semantic, "_str_to_dot_input_precision", make)
    return True


def reduce_nan(interpreter: Any) -> bool:
    """Let `tl.argmax` and `tl.argmin` of nothing but NaN be a number, and no error.

    numpy also warns about the maximum of nothing but NaN, which turns into an error where
    warnings do.

    Returns:
        Whether the interpreter has what this needs.
    """
    reductions = getattr(interpreter, "ReduceOps", None)
    if not hasattr(reductions, "min_max"):
        return False
    values = {np.nanmax: np.fmax.reduce, np.nanmin: np.fmin.reduce}
    indices = {
        np.nanargmax: _leftmost(np.argmax, -np.inf),
        np.nanargmin: _leftmost(np.argmin, np.inf),
    }

    def make(original: Any) -> Any:
        def min_max(self: Any, block: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
            return original(
                self,
                block,
                values.get(val_reduce_op, val_reduce_op),
                indices.get(idx_reduce_op, idx_reduce_op),
            )

        return min_max

    replace(reductions, "min_max", make)
    return True


def _leftmost(search: Any, beyond: float) -> Any:
    """Return a search that passes over NaN, as `np.nanargmax` does, but finds one among NaN."""

    def found(data: Any, *, axis: int | None, keepdims: bool) -> Any:
        if data.dtype.kind == "f":
            data = np.where(np.isnan(data), data.dtype.type(beyond), data)
        return search(data, axis=axis, keepdims=keepdims)

    return found

"""Faults of single Triton versions that have nothing to do with number formats."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np

from pytest_tritonverify.interpreter.patching import replace


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

    Returns:
        Whether this version needed it: the sum of an int32 block then wraps around at 32 bits, as
        it does on a device.
    """
    classes = [getattr(interpreter, name, None) for name in ("ReduceOps", "ScanOps")]
    if None in classes or not all(hasattr(one, "to_tensor") for one in classes):
        return False
    language = interpreter.tl
    probe = interpreter.ReduceOps(0, None, keep_dims=False)
    found = probe.to_tensor(np.zeros(2, np.int64), language.int32)
    if found.handle.data.dtype == np.int32:
        return False

    def make(original: Any) -> Any:
        def to_tensor(self: Any, ret: Any, dtype: Any) -> Any:
            if getattr(ret, "shape", None):
                ret = ret.astype(interpreter._get_np_dtype(dtype))  # noqa: SLF001 - the module is what is corrected
            return original(self, ret, dtype)

        return to_tensor

    for one in classes:
        replace(one, "to_tensor", make)
    return True


def index_scalars(interpreter: Any) -> bool:
    """Let a loaded number count a loop.

    Triton before 3.9 turns a block of one element into an int in a way that numpy 2.4 refuses.

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

            if scope:
                scope[0].set_attr(tensor, "__index__", __index__)
            else:
                tensor.__index__ = __index__

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

"""Reductions and scans of blocks narrower than float32, accumulated in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_tritonverify.interpreter.formats import Array, convert, is_carrier, widen
from pytest_tritonverify.interpreter.patching import replace

REDUCE_HOOKS = ("min_max", "sum")
SCAN_HOOKS = ("cumprod", "cumsum")

_FLOAT16 = np.dtype(np.float16)


def install(interpreter: Any) -> None:
    """Correct the fast paths; the slow ones call the kernel's own function, which is right.

    They round once, at the end, as torch does. numpy does so for float16 along the last axis only:
    along the others it rounds at each of its steps, which are as many as there are elements, where
    a device takes as many as their logarithm.
    """
    language = interpreter.tl

    def retyped(block: Any, data: Array, kind: Any) -> Any:
        whole = language.block_type(kind, list(data.shape)) if block.type.is_block() else kind
        return language.core.tensor(interpreter.TensorHandle(data, kind), whole)

    def rounded(found: Any, dtype: Any, kind: Any) -> Any:
        if isinstance(found, (list, tuple)):
            return type(found)(rounded(one, dtype, kind) for one in found)
        if found is None or found.dtype != language.float32:
            return found  # an index
        return retyped(found, convert(found.handle.data, dtype), kind)

    def make(original: Any) -> Any:
        def reduce(self: Any, block: Any, *args: Any, **kwargs: Any) -> Any:
            # A reduction to an index hands its values and indices over.
            values = block[0] if isinstance(block, tuple) else block
            data = values.handle.data
            if not (is_carrier(data) or data.dtype == _FLOAT16):
                return original(self, block, *args, **kwargs)
            wide = retyped(values, widen(data).astype(np.float32, copy=False), language.float32)
            found = original(self, wide, *args, **kwargs)
            return rounded(found, data.dtype, values.dtype)

        return reduce

    for name in REDUCE_HOOKS:
        replace(interpreter.ReduceOps, name, make)
    for name in SCAN_HOOKS:
        replace(interpreter.ScanOps, name, make)

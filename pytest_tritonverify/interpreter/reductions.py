"""Reductions and scans of bfloat16 and float8 blocks, accumulated in float32."""

from __future__ import annotations

from typing import Any

from pytest_tritonverify.interpreter.formats import CARRIERS, convert, is_carrier, widen
from pytest_tritonverify.interpreter.patching import replace

REDUCE_HOOKS = ("min_max", "sum")
SCAN_HOOKS = ("cumprod", "cumsum")


def install(interpreter: Any) -> None:
    """Correct the fast paths; the slow ones call the kernel's own function, which is right.

    Like numpy's reductions of float16, they round once, at the end. torch does so too.
    """
    language = interpreter.tl

    def retyped(block: Any, data: Any, kind: Any) -> Any:
        whole = language.block_type(kind, list(data.shape)) if block.type.is_block() else kind
        return language.core.tensor(interpreter.TensorHandle(data, kind), whole)

    def rounded(found: Any, kind: Any) -> Any:
        if isinstance(found, (list, tuple)):
            return type(found)(rounded(one, kind) for one in found)
        if found is None or found.dtype != language.float32:
            return found  # an index
        return retyped(found, convert(found.handle.data, CARRIERS[kind.name]), kind)

    def make(original: Any) -> Any:
        def reduce(self: Any, block: Any, *args: Any, **kwargs: Any) -> Any:
            # A reduction to an index hands its values and indices over.
            values = block[0] if isinstance(block, tuple) else block
            if not is_carrier(values.handle.data):
                return original(self, block, *args, **kwargs)
            wide = retyped(values, widen(values.handle.data), language.float32)
            return rounded(original(self, wide, *args, **kwargs), values.dtype)

        return reduce

    for name in REDUCE_HOOKS:
        replace(interpreter.ReduceOps, name, make)
    for name in SCAN_HOOKS:
        replace(interpreter.ScanOps, name, make)

"""Inline assembly for NVIDIA's GPUs, as far as it is one arithmetic instruction.

Kernels write it for functions that Triton has no name for, such as a fast `tanh`, and to keep the
compiler from fusing a product into a sum. What each instruction computes is in the PTX ISA.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "inline_asm_elementwise"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INSTRUCTION = re.compile(r"([a-z0-9]+)((?:\.[a-z0-9]+)*)\s+\$0((?:\s*,\s*\$\d+)+)\s*;?")
_BARRIER = re.compile(r"(bar|barrier)(\.cta)?\.sync(\.aligned)?\s+0\s*;?")
# By name, with the number of operands. They are computed in float64 and rounded once.
_COMPUTED: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, np.abs),
    "add": (2, np.add),
    "cos": (1, np.cos),
    "div": (2, np.divide),
    "ex2": (1, np.exp2),
    "fma": (3, lambda x, y, z: x * y + z),
    "lg2": (1, np.log2),
    "max": (2, np.fmax),
    "min": (2, np.fmin),
    "mov": (1, np.positive),
    "mul": (2, np.multiply),
    "neg": (1, np.negative),
    "rcp": (1, lambda x: 1 / x),
    "rsqrt": (1, lambda x: 1 / np.sqrt(x)),
    "sin": (1, np.sin),
    "sqrt": (1, np.sqrt),
    "sub": (2, np.subtract),
    "tanh": (1, np.tanh),
}
_TYPES = ("f32", "f64")
# None of these changes the result by more than a unit in the last place or a subnormal number.
_MODES = frozenset({"approx", "ftz", "full", "rn"})


def computed_by(text: str) -> tuple[Callable[..., Any], list[int]] | None:
    """Return what an instruction computes, and of which of its arguments, from 0.

    Args:
        text: the assembly; None is returned for all but one known instruction.
    """
    found = _INSTRUCTION.fullmatch(_COMMENT.sub("", text).strip())
    if found is None or found[1] not in _COMPUTED:
        return None
    *modes, kind = found[2].split(".")[1:] or [""]
    count, function = _COMPUTED[found[1]]
    operands = [int(number) - 1 for number in re.findall(r"\d+", found[3])]
    known = kind in _TYPES and _MODES.issuperset(modes) and len(operands) == count
    return (function, operands) if known else None


def restore(interpreter: Any) -> bool:
    """Let the language run such assembly; return False in versions where that can't be done."""
    core = interpreter.tl.core
    builder = interpreter.InterpreterBuilder
    own = getattr(core, _NAME, None)
    if own is None or "_semantic" not in inspect.signature(own).parameters:
        return False

    def inline_asm_elementwise(
        asm: Any,
        constraints: Any,
        args: Any,
        dtype: Any,
        is_pure: Any,
        pack: Any,
        _semantic: Any = None,
    ) -> Any:
        del constraints, is_pure, pack
        text, kind = _plain(asm), _plain(dtype)
        if not args and _BARRIER.fullmatch(text.strip()):
            # The lanes of a program are never apart here.
            return interpreter.tl.tensor(
                interpreter.TensorHandle(np.zeros(1, np.int32), kind), kind
            )
        found = computed_by(text)
        if found is None or not isinstance(kind, core.dtype):
            raise NotImplementedError(
                f"inline assembly can't be run on the CPU ({' '.join(text.split())[:60]!r}); "
                "judge this kernel on a device (--verify-device)"
            )
        function, operands = found
        tensors = [_semantic.to_tensor(arg) for arg in args]
        wide = [tensors[place].handle.data.astype(np.float64) for place in operands]
        values = np.asarray(function(*wide))
        values = values.astype(interpreter._get_np_dtype(kind))  # noqa: SLF001 - it is what is corrected
        blocks = any(tensor.type.is_block() for tensor in tensors)
        type_ = core.block_type(kind, list(values.shape)) if blocks else kind
        return interpreter.tl.tensor(interpreter.TensorHandle(values, kind), type_)

    function = core.builtin(inline_asm_elementwise)
    for module in (interpreter.tl, core):
        setattr(module, _NAME, function)
    # One launch ends before the next one begins.
    for name in ("wait", "launch_dependents"):
        if not hasattr(builder, f"create_grid_dependency_{name}"):
            setattr(builder, f"create_grid_dependency_{name}", lambda _: None)
    return True


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)

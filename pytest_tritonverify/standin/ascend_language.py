"""What triton-ascend changes in Triton's own language, where that package isn't installed.

The names are those that triton-ascend 3.2.0 puts into `triton.language` and `triton.language.math`.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.interpreter import libdevice
from pytest_tritonverify.standin.refusals import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.standin.patches import Patches

_MATHEMATICS = (
    "atan",
    "atan2",
    "div_rz",
    "finitef",
    "fmod",
    "ilogb",
    "isfinited",
    "isinf",
    "isnan",
    "ldexp",
    "log1p",
    "pow",
    "reciprocal",
    "relu",
    "rint",
    "round",
    "tan",
    "tanh",
    "trunc",
)


def install(patches: Patches) -> None:
    """Let the language do what triton-ascend lets it do."""
    from triton import language

    for name in _MATHEMATICS:
        if not hasattr(language.math, name):
            patches.set(language.math, name, function(name))
    if not hasattr(language, "tanh"):
        patches.set(language, "tanh", function("tanh"))
    parameters = inspect.signature(language.core.load).parameters
    if "_semantic" not in parameters:
        return  # before Triton 3.4; all that follows needs what came with it
    changed = {"load": _loading(language.core.load), "cast": _casting(language.core.cast)}
    for name, made in changed.items():
        for module in (language, language.core):
            patches.set(module, name, made)
    patches.set(language.core, "validate_block_shape", _numel)
    semantic = language.semantic.TritonSemantic
    patches.set(semantic, "arange", _of_any_length(semantic.arange))


def function(name: str) -> Callable[..., Any]:
    """Return a mathematical function of triton-ascend's: it takes half precision, too.

    Args:
        name: what it is called there.
    """

    def call(*arguments: Any, **_: Any) -> Any:
        from triton import language

        halves = (language.float16, language.bfloat16)
        given = [x.dtype for x in arguments if isinstance(x, language.tensor) and x.dtype in halves]
        wide = [
            x.to(language.float32) if isinstance(x, language.tensor) and x.dtype in halves else x
            for x in arguments
        ]
        found = _computing(name)(*wide)
        return found.to(given[0]) if given and found.dtype == language.float32 else found

    call.__name__ = name
    return call


def _computing(name: str) -> Callable[..., Any]:
    from triton import language

    if name == "relu":
        return lambda x: language.maximum(x, 0.0)
    if name == "reciprocal":
        return lambda x: 1.0 / x
    found = getattr(libdevice.installed(), name, None)
    return found if callable(found) else getattr(language.math, name)  # type: ignore[no-any-return] # triton has no types


def has_function(name: str) -> bool:
    """Whether triton-ascend's library has a function of that name, as far as it is known here."""
    from triton import language

    known = name in _MATHEMATICS or callable(getattr(libdevice.installed(), name, None))
    return known or callable(getattr(language.math, name, None))


def _loading(load: Any) -> Any:
    @functools.wraps(load)
    def of_ascend(
        pointer: Any, mask: Any = None, other: Any = None, *rest: Any, **options: Any
    ) -> Any:
        padded = _plain(options.pop("care_padding", None))
        if padded is True and mask is not None and other is None:
            other = 0
        return load(pointer, mask, other, *rest, **options)

    return of_ascend


def _casting(cast: Any) -> Any:
    @functools.wraps(cast)
    def of_ascend(input: Any, dtype: Any, *rest: Any, **options: Any) -> Any:  # noqa: A002 - triton's name
        mode = _plain(options.pop("overflow_mode", None))
        to = _plain(dtype)
        if mode == "saturate" and to.is_int() and to.primitive_bitwidth > 1:
            bits, signed = to.primitive_bitwidth, to.is_int_signed()
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            from triton import language

            input = language.minimum(language.maximum(input, low), high)  # noqa: A001 - as above
        return cast(input, dtype, *rest, **options)

    return of_ascend


def _of_any_length(arange: Any) -> Any:
    @functools.wraps(arange)
    def of_ascend(self: Any, start: Any, end: Any, **options: Any) -> Any:
        from triton import language

        length = end - start if isinstance(start, int) and isinstance(end, int) else 0
        if length < 1 or not length & (length - 1):
            return arange(self, start, end, **options)
        kind = options.get("ret_ty") or language.block_type(language.int32, [length])
        made = self.builder.create_make_range(kind.to_ir(self.builder), start, end)
        return self.tensor(made, kind)

    return of_ascend


def _numel(shape: Any) -> int:
    """Return how many elements a block has; its sizes need not be powers of 2."""
    from triton.language import core

    numel = 1
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"a block's sizes must be constants, not {type(size).__name__}")
        numel *= size
    if numel > core.TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"a block of {numel} elements is larger than Triton's blocks may be")
    return numel


def sync_block_all(*_: Any, **__: Any) -> None:
    """Wait for all programs, which run one after the other here."""
    from triton import language

    programs = [language.num_programs(axis) for axis in range(3)]
    if any(int(number.handle.data.item()) > 1 for number in programs):
        raise refuse("tl.sync_block_all between several programs")


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)

"""Parts of torch.cuda beside its functions: marks for profilers, old types, and what torch lacks.

Torch's CPU builds fail on these with an AttributeError about `torch._C`, or with "not compiled with
CUDA enabled", which says nothing of a stand-in.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import usage
from pytest_tritonverify.standin.refusals import StandinAttributeError, refuse, sentence

if TYPE_CHECKING:
    from pytest_tritonverify.standin.accelerator import Accelerator
    from pytest_tritonverify.standin.patches import Patches

_WORD = "torch.cuda"
_TYPES = {
    "BFloat16Tensor": torch.bfloat16,
    "BoolTensor": torch.bool,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "DoubleTensor": torch.float64,
    "FloatTensor": torch.float32,
    "HalfTensor": torch.float16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "ShortTensor": torch.int16,
}


def install(accelerator: Accelerator, patches: Patches) -> None:
    """Put the parts in place."""
    import torch.cuda.nvtx
    import torch.cuda.profiler

    patches.set(torch.cuda.nvtx, "_nvtx", _Marks())
    for name in ("start", "stop"):
        patches.set(torch.cuda.profiler, name, _nothing)
    patches.set(torch.cuda, "_sleep", _nothing)
    for name, dtype in _TYPES.items():
        patches.set(torch.cuda, name, _old_type(accelerator, name, dtype))
    patches.set(torch._C, "__getattr__", _missing)


def _nothing(*_: Any, **__: Any) -> None:
    """Take what only a profiler or a device's clock would notice."""
    usage.note(_WORD)


class _Marks:
    """Ranges and marks for a profiler that isn't there; they nest as NVTX's do."""

    def __init__(self) -> None:
        self._depth = 0
        self._numbers = itertools.count(1)

    def rangePushA(self, _: str) -> int:  # noqa: N802 - NVTX's name
        usage.note(_WORD)
        self._depth += 1
        return self._depth - 1

    def rangePop(self) -> int:  # noqa: N802 - NVTX's name
        self._depth -= 1
        return self._depth

    def rangeStartA(self, _: str) -> int:  # noqa: N802 - NVTX's name
        usage.note(_WORD)
        return next(self._numbers)

    def rangeEnd(self, _: int) -> None:  # noqa: N802 - NVTX's name
        """End what was started."""

    def markA(self, _: str) -> None:  # noqa: N802 - NVTX's name
        usage.note(_WORD)

    def deviceRangeStart(self, *_: Any) -> int:  # noqa: N802 - NVTX's name
        return next(self._numbers)

    def deviceRangeEnd(self, *_: Any) -> None:  # noqa: N802 - NVTX's name
        """End what was started."""


def _old_type(accelerator: Accelerator, name: str, dtype: torch.dtype) -> Any:
    """Make a type such as `torch.cuda.FloatTensor`: tensors can be asked for it, and no more."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return (
                isinstance(value, torch.Tensor)
                and value.dtype == dtype
                and accelerator.holds(value)
            )

    def make(*_: Any, **__: Any) -> Any:
        raise refuse(f"torch.cuda.{name}(...)")

    return Meta(name, (), {"__new__": make, "__module__": "torch.cuda", "dtype": dtype})


def _missing(name: str) -> Any:
    if name.startswith(("_cuda_", "_nccl_", "_cudnn_")):
        raise StandinAttributeError(sentence(f"torch._C.{name}"))
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")

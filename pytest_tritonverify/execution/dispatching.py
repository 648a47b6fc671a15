"""Modes of torch's dispatcher that don't take torch's compiler along."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch.utils._python_dispatch import TorchDispatchMode

_Mode = TypeVar("_Mode", bound="type[TorchDispatchMode]")

_COMPILER = "torch._dynamo"
# Where torch keeps, on a function, what keeps its compiler off it.
_KEPT_OFF = "__dynamo_disable"


def without_compiler(mode: _Mode) -> _Mode:
    """Let a mode work without torch's compiler, as long as nobody else has imported it.

    PyTorch keeps its compiler off the code of every mode, and imports the compiler to do so: two
    seconds of a core. Where there is no compiler there is nothing to keep off. Versions of PyTorch
    that do it in another way are left alone.
    """
    guarded = mode.__dict__["__torch_dispatch__"]
    own = getattr(guarded, "__wrapped__", None)
    if own is None:
        return mode

    def unguarded(*args: Any, **kwargs: Any) -> Any:
        if not hasattr(sys.modules.get(_COMPILER), "disable"):
            return own(*args, **kwargs)
        vars(own).pop(_KEPT_OFF, None)
        return guarded(*args, **kwargs)

    setattr(own, _KEPT_OFF, unguarded)
    return mode

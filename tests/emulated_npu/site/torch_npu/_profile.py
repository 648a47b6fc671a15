"""What the profiler of the emulated device has seen."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Types of CANN's operators where they are called otherwise than torch's.
_TYPES = {
    "mm": "MatMulV2",
    "bmm": "BatchMatMulV2",
    "addmm": "Gemm",
    "copy_": "ViewCopy",
    "fill_": "Fill",
    "zero_": "ZerosLike",
    "_softmax": "SoftmaxV2",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran.

    Attributes:
        name, kind: `Name` and `Type` of the profiler's table.
        start, took: microseconds.
        programs: its blocks.
        step: of the profiler, where it has steps.
    """

    name: str
    kind: str
    start: float
    took: float
    programs: int = 1
    step: int | None = None


kernels: list[Kernel] = []
# The steps in which kernels are taken note of: the present one, or none.
_watched: list[int | None] = []


def watch(*, on: bool, step: int | None = None) -> None:
    """Take note of kernels from now on, as those of a step, or no longer."""
    _watched[:] = [step] if on else []


def ran(name: str, kind: str, started: float, programs: int = 1) -> None:
    """Take note of a kernel that has ended just now."""
    took = time.perf_counter() - started
    kernels.extend(
        Kernel(name, kind, started * 1e6, took * 1e6, programs, step) for step in _watched
    )


@contextlib.contextmanager
def kernel_of_cann(op: Any) -> Iterator[None]:
    """Take an operator for one kernel of CANN's libraries."""
    started = time.perf_counter()
    yield
    plain = op._schema.name.partition("::")[2]
    kind = _TYPES.get(plain) or "".join(word.capitalize() for word in plain.split("_"))
    ran(f"aclnn{kind}_{kind}AiCore_{kind}", kind, started)

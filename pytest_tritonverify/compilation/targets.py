"""The targets of `--verify-compile`, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NPU = "npu"
CUDA = "cuda"
HIP = "hip"

_KIB = 1024
# Bytes of shared memory that a block may use at most. NVIDIA: CUDA C++ Programming Guide, table
# "Technical Specifications per Compute Capability". AMD: the LDS of a workgroup, by the shader
# programming guides of CDNA 2 and 3.
_SHARED = {
    "cuda:80": 163 * _KIB,
    "cuda:86": 99 * _KIB,
    "cuda:89": 99 * _KIB,
    "cuda:90": 227 * _KIB,
    "cuda:100": 227 * _KIB,
    "hip:gfx90a": 64 * _KIB,
    "hip:gfx942": 64 * _KIB,
}
GPU_TARGETS = tuple(_SHARED)
"""The targets that the PyPI package triton compiles for, in the order in which they are listed."""

_ASCEND = re.compile(r"ascend[\w-]+", re.ASCII | re.IGNORECASE)
_WARP_SIZES = {CUDA: 32, HIP: 64}


class TargetError(ValueError):
    """A target that nothing is known of; the text is for the user."""


@dataclass(frozen=True)
class Target:
    """What kernels are compiled for.

    Attributes:
        name: as the user writes it, such as "cuda:90" or "Ascend910B4".
        kind: "cuda", "hip" or "npu".
        arch: what the compiler calls it: a number for "cuda".
        shared: bytes of shared memory that a block may use; None where that is not known.
    """

    name: str
    kind: str
    arch: str
    shared: int | None = None

    @property
    def warp_size(self) -> int:
        """Threads of a warp; 0 where there are none."""
        return _WARP_SIZES.get(self.kind, 0)


def parse(words: Iterable[str]) -> tuple[Target, ...]:
    """Read targets, each once, in the order given.

    Args:
        words: targets; one word may hold several with commas between them.

    Raises:
        TargetError: one is not of a form that any compiler knows.
    """
    names = [name.strip() for word in words for name in word.split(",")]
    return tuple(dict.fromkeys(_target(name) for name in names if name))


def _target(name: str) -> Target:
    if name in _SHARED:
        kind, _, arch = name.partition(":")
        return Target(name, kind, arch, _SHARED[name])
    # Which of them there are is for bishengir-compile to say.
    if _ASCEND.fullmatch(name):
        return Target(name, NPU, name)
    raise TargetError(
        f"--verify-compile: {name!r} is no known target. There are {', '.join(GPU_TARGETS)}, and "
        "for Ascend NPUs what `bishengir-compile --help` lists, such as Ascend910B4"
    )


def check_ascend(targets: Sequence[Target], known: Sequence[str]) -> tuple[Target, ...]:
    """Return targets with those for Ascend spelt as their compiler spells them.

    Raises:
        TargetError: the compiler does not know one.
    """
    spelt = {name.lower(): name for name in known}
    checked = []
    for target in targets:
        if target.kind == NPU:
            if target.name.lower() not in spelt:
                raise TargetError(
                    f"--verify-compile: bishengir-compile knows no target {target.name!r}. It "
                    f"knows {', '.join(known)}; for GPUs there are {', '.join(GPU_TARGETS)}"
                )
            name = spelt[target.name.lower()]
            checked.append(Target(name, NPU, name))
        else:
            checked.append(target)
    return tuple(dict.fromkeys(checked))

"""Prepare Triton's CPU interpreter for judging kernels that were written for a device.

Everything here changes the interpreter of the process that calls `prepare`, and nothing else. The
modules are named after what they put right; `docs/interpreter.md` says why, version by version.
"""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_tritonverify.interpreter import (
    assembly,
    autotune,
    block_pointers,
    bounds,
    launching,
    masked_lanes,
    names,
    repairs,
    rewriting,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.interpreter.masked_lanes import Mode

FIRST_CONFIGURATION = "first_configuration"
LOW_PRECISION = "low_precision"
TYPED_STORES = "typed_stores"
TYPED_REDUCTIONS = "typed_reductions"
SCALAR_INDEX = "scalar_index"
NAMED_TYPES = "named_types"
MASKED_LANES = "masked_lanes"
SEVERAL_CORES = "several_cores"
TYPED_COMPARISONS = "typed_comparisons"
DOT_PRECISIONS = "dot_precisions"
NAN_REDUCTIONS = "nan_reductions"
STATEMENTS = "statements"
LAUNCHES = "launches"
NAMES = "names"
LIBDEVICE = "libdevice"
BOUNDS = "bounds"
BLOCK_POINTERS = "block_pointers"
ASSEMBLY = "assembly"
TANH = "tanh"


@dataclass(frozen=True)
class Corrections:
    """What was changed in an interpreter.

    Attributes:
        triton: the version of Triton.
        applied: the names of the corrections made, in order.
        not_applied: reasons, by name, for those that this version or this environment prevents.
        masked_lanes: what undefined lanes are filled with, "zero" or "poison".
    """

    triton: str
    applied: tuple[str, ...]
    not_applied: dict[str, str]
    masked_lanes: Mode

    def to_json(self) -> dict[str, Any]:
        """Return the corrections as builtins."""
        return {**asdict(self), "applied": list(self.applied)}


class UnusableInterpreterError(RuntimeError):
    """The interpreter reads other memory than it is told to."""


_made: list[Corrections] = []
_lanes = masked_lanes  # `prepare` has a parameter of that name


def prepare(*, masked_lanes: Mode = "zero", jobs: int = 1) -> Corrections:
    """Make the interpreter of this process quiet, right in low precision and able to autotune.

    `TRITON_INTERPRET=1` must have been set before triton was first imported. Calling it again
    changes the mode of masked lanes and forgets the loads seen so far.

    Args:
        masked_lanes: what a masked load without `other` yields where the mask is off: "zero", as
            Triton does, or "poison" (see `masked_lanes`).
        jobs: how many processes a launch may use (see `parallel`); 1 leaves launches as they are.

    Returns:
        What was corrected, and what could not be.

    Raises:
        ModuleNotFoundError: triton is not installed.
        UnusableInterpreterError: this version of Triton does not work with this numpy.
    """
    if not _made:
        _made.append(_correct())
    report = _made[0]
    possible = MASKED_LANES in report.applied
    chosen: Mode = masked_lanes if possible else "zero"
    _lanes.choose(chosen)
    _lanes.reset()
    bounds.reset()
    block_pointers.forget()
    report = replace(report, masked_lanes=chosen)
    from pytest_tritonverify.interpreter import parallel  # few runs need it

    obstacle = parallel.spread(jobs)
    if obstacle is not None:
        return replace(report, not_applied={**report.not_applied, SEVERAL_CORES: obstacle})
    return replace(report, applied=(*report.applied, SEVERAL_CORES)) if jobs > 1 else report


def _correct() -> Corrections:
    import triton
    from triton.runtime import interpreter

    if not repairs.reads_memory(interpreter):
        raise UnusableInterpreterError(
            f"the interpreter of triton {triton.__version__} was not built for numpy "
            f"{np.__version__}: it read a wrong number from memory; install numpy<2, or a "
            "newer triton (3.2 and later are built for numpy 2)"
        )
    # Masked-off lanes hold anything, so numpy's complaints about them say nothing on a kernel.
    np.seterr(all="ignore")
    autotune.take_first_configuration()
    applied, not_applied = [FIRST_CONFIGURATION], {}

    obstacle = _correct_low_precision(interpreter)
    if obstacle is None:
        applied.append(LOW_PRECISION)
    else:
        not_applied[LOW_PRECISION] = obstacle
    repaired: dict[str, Callable[[Any], bool]] = {
        TYPED_STORES: repairs.type_stores,
        TYPED_REDUCTIONS: repairs.type_reductions,
        SCALAR_INDEX: repairs.index_scalars,
        NAMED_TYPES: repairs.name_types,
        TYPED_COMPARISONS: repairs.type_comparisons,
        DOT_PRECISIONS: repairs.accept_precisions,
        NAN_REDUCTIONS: repairs.reduce_nan,
        BLOCK_POINTERS: block_pointers.restore,
        ASSEMBLY: assembly.restore,
        TANH: repairs.compute_tanh,
    }
    applied += [name for name, repair in repaired.items() if repair(interpreter)]
    from pytest_tritonverify.interpreter import libdevice  # it imports torch

    for name, part in {
        STATEMENTS: rewriting,
        LAUNCHES: launching,
        NAMES: names,
        LIBDEVICE: libdevice,
        BOUNDS: bounds,
    }.items():
        obstacle = part.obstacle(interpreter)
        if obstacle is None:
            part.install(interpreter)
            applied.append(name)
        else:
            not_applied[name] = obstacle
    # The last one, so that it meets each load before the others have disguised it.
    obstacle = _lanes.obstacle(interpreter)
    if obstacle is None:
        _lanes.install(interpreter)
        applied.append(MASKED_LANES)
    else:
        not_applied[MASKED_LANES] = obstacle
    return Corrections(triton.__version__, tuple(applied), not_applied, "zero")


def _correct_low_precision(interpreter: Any) -> str | None:
    """Correct bfloat16 and float8, or say why that can't be done."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return "ml_dtypes is not installed"
    from pytest_tritonverify.interpreter import lowprecision

    obstacle = lowprecision.obstacle(interpreter)
    if obstacle is None:
        lowprecision.install(interpreter)
    return obstacle

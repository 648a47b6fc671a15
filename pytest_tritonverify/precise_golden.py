"""The reference's output in a higher precision, for what is asked beyond the standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.supervision import Failure, Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.execution.worker_handle import Answer

# What half-precision outputs need is there in float32, too.
_PRECISIONS = ("float64", "float32")
_NO_EXCEPTION = ("VerifyTimeout", "WorkerCrash", "WorkerStartError")


@dataclass(frozen=True)
class Precise:
    """A reference's more precise output.

    Attributes:
        precision: `float64` or `float32`; None where there is no output.
        answer: the worker's answer with it.
        missing: why there is none.
    """

    precision: str | None = None
    answer: Answer | None = None
    missing: str = ""


def ask(reference: Process, inputs: Answer, golden: Answer, wait: Callable[[], Answer]) -> Precise:
    """Have the reference computed more precisely on the CPU.

    Args:
        reference: the reference's worker.
        inputs: the packed inputs of the case.
        golden: the golden, which says where it was computed.
        wait: returns the reference's answer.

    Raises:
        Failure: the reference's process was lost, or time is up.
    """
    device = golden.message["golden_device"]
    if device != "cpu":
        return Precise(missing=f"the reference does not run on the CPU but on {device}")
    reasons = []
    for precision in _PRECISIONS:
        reference.post(
            {"op": "precise", "case": inputs.message["case"], "dtype": precision}, inputs.fd
        )
        try:
            return Precise(precision, wait())
        except Failure as failure:
            if failure.error_type in _NO_EXCEPTION:
                raise
            first = failure.message.partition("\n")[0]
            reasons.append(f"in {precision} the reference fails: {first}")
    return Precise(missing=reasons[0])

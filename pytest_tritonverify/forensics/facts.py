"""What a diagnosis is made from, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch

from pytest_tritonverify.forensics.sampling import Survey, survey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Failing = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""A rule's own test of elements.

Takes golden and actual values of one shape `[n]` and returns a boolean mask of that shape, true
where the element fails. Complex outputs are handed over as their parts, as real numbers.
"""

Confidence = Literal["clear", "likely"]

UNCLEAR = "unclear"


@dataclass(frozen=True)
class LaunchFacts:
    """One launch of a kernel.

    Attributes:
        kernel: The kernel's name.
        file: The source file that it stands in, if known.
        line: Its line there, from 1, if known.
        grid: Programs along each axis of the grid.
        constexprs: The integer compile-time arguments by name, block sizes among them.
    """

    kernel: str
    file: str | None
    line: int | None
    grid: tuple[int, ...]
    constexprs: Mapping[str, int]


@dataclass(frozen=True)
class MaskedLoad:
    """A masked load without `other` whose masked lanes a launch left undefined.

    Attributes:
        file: The source file of the load.
        line: Its line there, from 1.
        lanes: How many lanes were undefined, over all programs.
    """

    file: str
    line: int
    lanes: int


@dataclass(frozen=True)
class FailedOutput:
    """An output that a rule has turned down.

    Attributes:
        golden: A strided CPU tensor.
        actual: A strided CPU tensor of the same shape; the dtype may be another of the same kind.
        failing: The rule's test of elements; see `failing.failing_by`.
        other_goldens: The goldens of the same call's other outputs.
        inputs: The call's tensors.
        launches: What was launched; empty where unknown.
        masked_loads: Loads that left lanes undefined; None where unknown.
        stray_reads: Loads that read outside of the tensors that a launch was given, in words.

    Raises:
        ValueError: The shapes differ, or a tensor is no strided CPU tensor.
    """

    golden: torch.Tensor
    actual: torch.Tensor
    failing: Failing
    other_goldens: Sequence[torch.Tensor] = ()
    inputs: Sequence[torch.Tensor] = ()
    launches: Sequence[LaunchFacts] = ()
    masked_loads: Sequence[MaskedLoad] | None = None
    stray_reads: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.golden.shape != self.actual.shape:
            raise ValueError(
                f"expected an output of the golden's shape {list(self.golden.shape)}, "
                f"got {list(self.actual.shape)}; only pairs of one shape can be explained"
            )
        for tensor in (self.golden, self.actual):
            if tensor.layout != torch.strided or tensor.device.type != "cpu":
                raise ValueError(
                    f"expected strided tensors on the CPU, got {tensor.layout} on "
                    f"{tensor.device}; use .to_dense() and .cpu()"
                )

    @cached_property
    def survey(self) -> Survey:
        """Which elements fail; the tensors are walked the first time that this is asked."""
        with torch.no_grad():
            return survey(self.golden, self.actual, self.failing)


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with an output.

    Attributes:
        code: A stable machine word; `unclear` where the data don't tell.
        cause: The likely cause in one sentence; None where unclear.
        evidence: Short facts with numbers.
        region: Where the failing elements lie; JSON-able, with `kind` and `text`.
        confidence: `clear` where nothing else explains the data as well, `likely` where something
            else might; None where unclear.
    """

    code: str
    cause: str | None
    evidence: tuple[str, ...] = ()
    region: dict[str, Any] = field(default_factory=dict)
    confidence: Confidence | None = None

    def to_json(self) -> dict[str, Any]:
        """Return builtins only."""
        return {
            "code": self.code,
            "cause": self.cause,
            "confidence": self.confidence,
            "evidence": list(self.evidence),
            "region": self.region,
        }

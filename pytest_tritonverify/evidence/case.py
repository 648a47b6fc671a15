"""All that is known of one case's runs, and what is still to be found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify.evidence import operators

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.evidence.observations import (
        Endurance,
        Launch,
        Observation,
        Operator,
        Replay,
    )
    from pytest_tritonverify.evidence.sources import Sources

# Views that do not even change how values are looked at.
_IDLE_VIEWS = frozenset({"alias", "detach", "detach_", "lift", "lift_fresh", "_unsafe_view"})


@dataclass(frozen=True)
class Inputs:
    """What the inputs of a case are like.

    Attributes:
        tensors: how many tensors there are.
        floating: one of them holds floating or complex numbers.
        altered: another set of values of the same kind could be made.
    """

    tensors: int
    floating: bool
    altered: bool


@dataclass(frozen=True)
class GoldenFact:
    """What the golden of an outcome is like.

    Attributes:
        empty: it has no element.
        constant: all its elements are equal, so that memory set to a value may hold it.
        same_as_input: it equals an input, so that memory that was copied holds it.
        view: beside outputs that it computes the reference returns a view of an input.
        depends: other inputs give another golden; None where no others could be made.
        resembled: the implementation's outcome is at least similar. One that is not is wrong, and
            its values tell that; who computed it does not matter.
        followed: the outcome for other inputs is not far from the golden for these; None where
            there is none.
    """

    empty: bool = False
    constant: bool = False
    same_as_input: bool = False
    view: bool = False
    depends: bool | None = True
    resembled: bool = True
    followed: bool | None = None

    @property
    def trivial(self) -> str | None:
        """Why it says nothing of an outcome that no kernel seems to have written, or None."""
        if self.empty:
            return "it is empty"
        if not self.resembled:
            return "it is wrong"
        if self.depends is False:
            return "it does not depend on the inputs"
        if self.constant:
            return "all its elements are equal"
        if self.view:
            return "it is a view of an input"
        return "it equals an input" if self.same_as_input else None


@dataclass(frozen=True)
class Repeats:
    """Digests of further runs: without instruments, under them, and both in one process."""

    plain: tuple[Mapping[str, str], ...] = ()
    observed: tuple[Mapping[str, str], ...] = ()
    beside: Mapping[str, str] | None = None


@dataclass
class Evidence:
    """The runs of one case.

    Digests are of the bits of each outcome, by path: `output...`, and `input...` for inputs that
    the call changed. They are made by the judge.

    Attributes:
        case_idx: number of the case.
        sources: what the implementation's files define.
        inputs: what the case's inputs are like.
        observation: the observed run.
        observed: its digests.
        marks: operators that the recorders must have seen: before and after the observed forward,
            after the replay, after the further calls.
        interpreted: kernels ran on Triton's interpreter.
        plain: digests of a run without instruments, None where it failed.
        replay: the replayed run, None where it failed or was impossible.
        replayed: its digests.
        endurance: the calls after that, on garbage.
        confirmed: the same again, where launches count.
        knocked_out: digests of the run whose launches had no effect, None where it broke off.
        golden: facts of the golden, where somebody asked.
        reference: operators of the reference, where somebody asked; None where it used others.
        repeats: where somebody asked.
    """

    case_idx: int
    sources: Sources
    inputs: Inputs
    observation: Observation
    observed: Mapping[str, str]
    marks: tuple[str, str, str, str]
    interpreted: bool = True
    plain: Mapping[str, str] | None = None
    replay: Replay | None = None
    replayed: Mapping[str, str] | None = None
    endurance: Endurance | None = None
    confirmed: Endurance | None = None
    knocked_out: Mapping[str, str] | None = None
    golden: Mapping[str, GoldenFact] | None = None
    reference: tuple[Operator, ...] | None = None
    repeats: Repeats | None = None
    asked: set[str] = field(default_factory=set)

    @property
    def own_launches(self) -> list[Launch]:
        """The completed launches of kernels that the implementation defines."""
        return [launch for launch in self.observation.launches if self.owns(launch)]

    def owns(self, launch: Launch) -> bool:
        """Whether a launch ran a kernel of the implementation's to its end."""
        at = launch.defined
        return (
            launch.completed
            and at.file is not None
            and self.sources.defines(at.file, launch.kernel, at.line)
        )

    @property
    def programs(self) -> int:
        """How many programs of the implementation's kernels ran."""
        return sum(launch.programs for launch in self.own_launches)

    def unneeded(self) -> list[str]:
        """Return the outcomes that came out the same although no launch had any effect."""
        return _equal(self.observed, self.knocked_out)

    def stale(self) -> list[str]:
        """Return the outcomes that came out the same although the inputs were others."""
        return _equal(self.observed, self.replayed)

    def unwritten(self) -> list[str]:
        """Return the outcomes that no launch wrote, nor anything that was made from such."""
        unneeded = set(self.unneeded())
        return [
            origin.path
            for origin in self.observation.origins
            if origin.path in self.observed
            and "launch" not in origin.marks
            # It may have held the right bytes before: a buffer that is used again.
            and not ("passed" in origin.marks and origin.path not in unneeded)
        ]

    def disagreeing(self) -> list[str]:
        """Return the outcomes that differ between the plain and the observed run."""
        if self.plain is None:
            return []
        return [path for path in self.plain if self.observed.get(path) != self.plain[path]]

    def moved(self) -> list[Operator]:
        """Return the operators with which torch moved values that depend on the call."""
        return [
            operator
            for operator in self.observation.operators
            if (operators.kind(operator.name) == operators.MOVING or operator.reorders)
            and operator.on & {"input", "launch"}
        ]

    @property
    def reference_only_moves(self) -> bool:
        """Whether the reference consists of movement, and of nothing else."""
        if self.reference is None:
            return False
        kinds = {operators.kind(operator.name) for operator in self.reference}
        return operators.COMPUTING not in kinds and any(
            operators.kind(operator.name) == operators.MOVING
            or operator.reorders
            or (
                operators.kind(operator.name) == operators.VIEW
                and operators.plain_name(operator.name) not in _IDLE_VIEWS
            )
            for operator in self.reference
        )


def _equal(first: Mapping[str, str], second: Mapping[str, str] | None) -> list[str]:
    if second is None:
        return []
    return [path for path, digest in first.items() if second.get(path) == digest]

"""Whether the times that a process tells can be true, by a clock that it can't reach.

The judge notes when the reports `timed` and `measured` come in, so it knows how long a timed loop
took. A loop consists of forwards and of what prepares them. The reference's process, which runs
trusted code, prepares the same inputs in the same way: what it needs for that says what to allow.
"""

from __future__ import annotations

from dataclasses import dataclass

SLACK_MS = 50.0
"""What a loaded machine may add to a loop here or there, in milliseconds."""

CLOCK_TOLERANCE = 0.2
"""Relative difference that is allowed between the clocks of both processes."""

PREPARATION_FACTOR = 3.0
"""How many times as long as the reference's process another one may prepare inputs."""

LEAST_SHARE = 0.5
"""The part of the time left for forwards that they must have taken at least."""


@dataclass(frozen=True)
class Loop:
    """A timed loop, in milliseconds.

    Attributes:
        judged_ms: by the judge's clock; None where the reports did not come.
        told_ms: by the clock of the process.
        forwards_ms: its forwards alone, by the clock of the process.
    """

    judged_ms: float | None
    told_ms: float
    forwards_ms: float

    @property
    def preparation_ms(self) -> float:
        """What the process says that it did between the forwards."""
        return max(self.told_ms - self.forwards_ms, 0.0)


def objection(loop: Loop, trusted: Loop | None) -> str | None:
    """Say why the times of a loop can't be true; None if they can.

    Args:
        loop: the untrusted process's.
        trusted: the loop of the reference's process over the same inputs; None where it was not
            run, and only the clocks are compared.
    """
    if loop.judged_ms is None:
        return "its process did not report when its timed loop began and ended"
    if loop.judged_ms - loop.told_ms > SLACK_MS + CLOCK_TOLERANCE * loop.judged_ms:
        return (
            f"its timed loop took {loop.judged_ms:.0f} ms by the judge's clock and "
            f"{loop.told_ms:.0f} ms by its own"
        )
    if trusted is None:
        return None
    allowed = PREPARATION_FACTOR * trusted.preparation_ms + SLACK_MS
    left = loop.judged_ms - allowed
    if loop.forwards_ms < LEAST_SHARE * left:
        return (
            f"its timed loop took {loop.judged_ms:.0f} ms, of which the inputs need "
            f"{allowed:.0f} ms at most; it says that its forwards took {loop.forwards_ms:.1f} ms"
        )
    return None

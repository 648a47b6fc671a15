"""Which of the activities that a device's profiler saw belong to which forward.

Functions of plain data: a profiler's events come in, times by forward and by kernel come out.
"""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NS_PER_MS = 1e6


@dataclass(frozen=True)
class Activity:
    """Something that ran on the device.

    Attributes:
        name: of the kernel, copy or fill.
        start_ns: when it began, on the profiler's clock.
        duration_ns: how long it ran.
    """

    name: str
    start_ns: int
    duration_ns: int


@dataclass(frozen=True)
class Sums:
    """Device time by forward and by kernel.

    Attributes:
        samples_ms: the sum of all activities of each forward, in their order.
        operators: milliseconds per forward by name, an average over all forwards.
        launches_per_forward: activities of one forward, on average.
        strays: names of activities between the forwards that are not ours, with their count; they
            are part of everything above, spread evenly over the forwards.
    """

    samples_ms: tuple[float, ...] = ()
    operators: Mapping[str, float] = field(default_factory=dict)
    launches_per_forward: float = 0.0
    strays: Mapping[str, int] = field(default_factory=dict)


def attribute(
    activities: Sequence[Activity],
    windows: Sequence[tuple[int, int]],
    ours: Callable[[str], bool],
    aside: Sequence[tuple[int, int]] = (),
) -> Sums:
    """Sum what ran on the device by forward.

    Args:
        activities: everything that ran, on all streams, in any order.
        windows: begin and end of each forward on the same clock, in order, without overlap; the
            device was idle at both.
        ours: says by its name whether an activity between forwards is part of their preparation.
        aside: begin and end of what was done between forwards, to keep outputs; all that ran
            meanwhile is left out. The device was idle at both ends.

    Raises:
        ValueError: there is no window.
    """
    if not windows:
        raise ValueError("no forward was seen")
    begins = [begin for begin, _ in windows]
    sums = [0] * len(windows)
    total: Counter[str] = Counter()
    strays: Counter[str] = Counter()
    launches = 0
    for activity in activities:
        at = bisect.bisect_right(begins, activity.start_ns) - 1
        if at >= 0 and activity.start_ns <= windows[at][1]:
            sums[at] += activity.duration_ns
        elif ours(activity.name) or any(b <= activity.start_ns <= e for b, e in aside):
            continue
        else:
            strays[activity.name] += 1
        total[activity.name] += activity.duration_ns
        launches += 1
    stray_ns = sum(total.values()) - sum(sums)
    count = len(windows)
    return Sums(
        samples_ms=tuple((one + stray_ns / count) / NS_PER_MS for one in sums),
        operators={name: ns / count / NS_PER_MS for name, ns in total.most_common()},
        launches_per_forward=launches / count,
        strays=dict(strays),
    )

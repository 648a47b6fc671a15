"""Input sets of one case that differ in their values alone: the reference's worker packs them."""

from __future__ import annotations

import os
from typing import Any

from pytest_tritonverify.execution import running, tensors
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.execution.timing import sets
from pytest_tritonverify.observing import variation

BUDGET = 256 << 20
"""Bytes that all sets of a case may take together, but for the first two."""

LARGEST = 4 << 30
"""Bytes of one set beyond which a case has one set only."""


def pack_sets(group: Arguments, init: Arguments, wanted: int) -> tuple[dict[str, Any], int]:
    """Pack inputs as they are, and others with different values in the same places.

    The values of set k are those that `variation.alter` makes with seed k as one of many, so every
    run has the same ones.

    Args:
        group: the inputs as they were made.
        init: the constructor arguments.
        wanted: number of sets; fewer are made where they would take too much memory.

    Returns:
        Their description, as `sets.described` makes it, and the descriptor of their memory file.
        Where there are fewer than wanted, rows move on from round to round.
    """
    case, fd = running.pack_case(group, init)
    size = os.fstat(fd).st_size
    count = 1 if size > LARGEST else max(2, min(wanted, BUDGET // max(size, 1)))
    calls = [group]
    varied = wanted > 1
    try:
        for seed in range(1, min(count, wanted)):
            tree = tensors.unpack(case["call"], fd)
            copy = Arguments(tuple(tree["args"]), dict(tree["kwargs"]))
            varied = variation.alter(copy.values(), seed, one_of_many=True)
            if not varied:
                break
            calls.append(copy)
    finally:
        os.close(fd)
    tree = {
        "calls": [{"args": list(call.args), "kwargs": call.kwargs or {}} for call in calls],
        "init": {"args": list(init.args), "kwargs": init.kwargs or {}},
    }
    packed = tensors.pack(tree, keep_layout=True)
    turning = variation.turning(group.values()) if varied and len(calls) < wanted else []
    return sets.described(packed.spec, turning if any(turning) else ()), packed.fd

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

    The values of set k are those that `variation.alter` makes with seed k, so every run has the
    same ones.

    Args:
        group: the inputs as they were made.
        init: the constructor arguments.
        wanted: number of sets; fewer are made where they would take too much memory.

    Returns:
        Their description, as `sets.described` makes it, and the descriptor of their memory file.
    """
    case, fd = running.pack_case(group, init)
    size = os.fstat(fd).st_size
    count = 1 if size > LARGEST else max(2, min(wanted, BUDGET // max(size, 1)))
    calls = [group]
    try:
        for seed in range(1, min(count, wanted)):
            tree = tensors.unpack(case["call"], fd)
            copy = Arguments(tuple(tree["args"]), dict(tree["kwargs"]))
            if not variation.alter(copy.values(), seed):
                break
            calls.append(copy)
    finally:
        os.close(fd)
    tree = {
        "calls": [{"args": list(call.args), "kwargs": call.kwargs or {}} for call in calls],
        "init": {"args": list(init.args), "kwargs": init.kwargs or {}},
    }
    packed = tensors.pack(tree, keep_layout=True)
    return sets.described(packed.spec), packed.fd

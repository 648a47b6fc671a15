"""What a fork server does once so that its children need not: lazy imports, without computing.

Only operators on fake tensors run here. An operator on real data would start OpenMP's threads,
which do not survive a fork, and the first parallel operator of a child would wait for them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytest_tritonverify.execution import worker

# Triton imports these in the middle of a first launch; not every version has all of them.
_LAUNCH_IMPORTS = ("triton.compiler.code_generator", "triton.experimental.gluon")
# What workers import for a first run on the interpreter, and for a first observation.
_RUN_IMPORTS = (
    "pytest_tritonverify.interpreter.libdevice",
    "pytest_tritonverify.interpreter.lowprecision",
    "pytest_tritonverify.interpreter.parallel",
    "pytest_tritonverify.interpreter.parallel_team",
    "pytest_tritonverify.observing.variation",
    "torch._subclasses.schema_check_mode",
)


def warm_up() -> None:
    """Import what the first launch imports, then freeze the heap."""
    for name in (*worker.ROLES.values(), *_LAUNCH_IMPORTS, *_RUN_IMPORTS):
        # A worker that needs what can't be imported says so itself.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def warm_up_fakes() -> None:
    """Import what the first fake operator imports: torch's compiler, as long as all else together.

    Only the listing of a task needs it, and most runs know the listing from the last one.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.randn(2, 2).to(torch.float16).sum()
    gc.collect()
    gc.freeze()

"""What a fork server does once so that its children need not: lazy imports, without computing.

Only operators on fake tensors run here. An operator on real data would start OpenMP's threads,
which do not survive a fork, and the first parallel operator of a child would wait for them.
"""

from __future__ import annotations

import gc

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def warm_up() -> None:
    """Import what the first fake operator and the first launch import, then freeze the heap."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.randn(2, 2).to(torch.float16).sum()
    gc.collect()
    gc.freeze()

"""Files for the static check, put together from a kernel, code at module level, and a model."""

from __future__ import annotations

import textwrap

PREAMBLE = """
import functools
import importlib
import math
import operator

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(o_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0.0) * 2.0, mask=mask)


def launch(x):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


def model(
    forward: str, *, module: str = "", init: str = "", members: str = "", signature: str = "x, w"
) -> bytes:
    """Return a file whose `ModelNew.forward` has a body."""
    parts = [PREAMBLE, textwrap.dedent(module), "\nclass ModelNew(nn.Module):\n"]
    if init:
        body = "super().__init__()\n" + textwrap.dedent(init)
        parts.append(
            textwrap.indent(f"def __init__(self):\n{textwrap.indent(body, '    ')}\n", "    ")
        )
    parts.append(textwrap.indent(textwrap.dedent(members), "    "))
    body = textwrap.indent(textwrap.dedent(forward).strip(), "    ")
    parts.append(textwrap.indent(f"\ndef forward(self, {signature}):\n{body}\n", "    "))
    return "".join(parts).encode()

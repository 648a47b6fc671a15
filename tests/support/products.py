"""A product of matrices on a device: an honest kernel, and cheats that its own profile shows."""

from __future__ import annotations

PRODUCT = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x

def get_inputs():
    return [torch.randn(64, 64)]
"""
DOT = """
@triton.jit
def product(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    v = tl.load(x + at)
    tl.store(o + at, tl.dot(v, v, input_precision="ieee"))

def dot(x):
    o = torch.empty_like(x)
    product[(1,)](x, o, N=64)
    return o
"""
# The body of a forward, and the codes of what is found at least.
CHEATS = {
    "torch": ("return twice(x @ x) * 0.5", {"torch_compute", "device_kernel"}),
    "modes_switched_off": (
        """
        from torch.utils._python_dispatch import _disable_current_modes
        y = torch.empty_like(x)
        with _disable_current_modes():
            torch.mm(x, x, out=y).mul_(0.5)
        return twice(y)
        """,
        {"unexplained_write", "device_kernel"},
    ),
    "nothing_is_launched": ("return x @ x", {"no_launch", "torch_compute"}),
}

import torch
import torch.nn as nn
import triton
import triton.language as tl

# FAULT: no such package is installed.
from absent_kernel_helpers import ceil_div


@triton.jit
def clamp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, tl.minimum(tl.maximum(x, -1.0), 1.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        clamp_kernel[(ceil_div(n, 256),)](x, out, n, BLOCK=256)
        return out

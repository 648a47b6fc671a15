import os
import signal

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def negate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, -x, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        if n % 2 == 1:
            # FAULT: stands for an access outside the memory of the process. It ends the same way.
            os.kill(os.getpid(), signal.SIGSEGV)
        negate_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
        return out

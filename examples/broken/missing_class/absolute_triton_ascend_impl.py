import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def absolute_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, tl.abs(x), mask=inside)


# FAULT: the class has to be called ModelNew.
class NewModel(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        absolute_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
        return out

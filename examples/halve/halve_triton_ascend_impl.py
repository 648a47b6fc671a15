import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halve_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, 0.5 * x, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        # FAULT: bound to one kind of device. The inputs are already where the kernel runs, and
        # x.device says where that is.
        x = x.cuda()
        out = torch.empty_like(x)
        n = x.numel()
        halve_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
        return out

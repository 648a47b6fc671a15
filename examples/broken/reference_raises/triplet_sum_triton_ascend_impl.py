import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triplet_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    first = tl.load(x_ptr + 3 * offsets, mask=inside, other=0.0)
    second = tl.load(x_ptr + 3 * offsets + 1, mask=inside, other=0.0)
    third = tl.load(x_ptr + 3 * offsets + 2, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, first + second + third, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel() // 3
        out = torch.empty((n,), dtype=x.dtype, device=x.device)
        triplet_sum_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
        return out

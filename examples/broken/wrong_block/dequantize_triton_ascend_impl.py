import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dequantize_kernel(q_ptr, scale_ptr, out_ptr, n_groups, GROUP: tl.constexpr):
    group = tl.program_id(0)
    offsets = group * GROUP + tl.arange(0, GROUP)
    # FAULT: meant to keep the read inside the array, but the last index is n_groups - 1.
    # The last group takes its neighbour's scale.
    scale = tl.load(scale_ptr + tl.minimum(group, n_groups - 2))
    q = tl.load(q_ptr + offsets)
    tl.store(out_ptr + offsets, q.to(tl.float32) * scale)


class ModelNew(nn.Module):
    def forward(self, q, scale):
        out = torch.empty(q.shape, dtype=torch.float32, device=q.device)
        n_groups = scale.numel()
        dequantize_kernel[(n_groups,)](q, scale, out, n_groups, GROUP=64)
        return out

"""x + alpha * y, for floating-point and integer tensors."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_scaled_kernel(x_ptr, y_ptr, out_ptr, alpha, n, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Elements [pid * BLOCK, (pid + 1) * BLOCK); COMPUTE is the dtype of the arithmetic."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    # A float16 block times a scalar stays float16, and the product would be rounded before the
    # sum is. Converting first leaves one rounding, at the store. Integers stay integers: int32
    # has values that float32 has not.
    x = tl.load(x_ptr + offsets, mask=inside, other=0).to(COMPUTE)
    y = tl.load(y_ptr + offsets, mask=inside, other=0).to(COMPUTE)
    tl.store(out_ptr + offsets, x + alpha * y, mask=inside)


class ModelNew(nn.Module):
    """x + alpha * y of two tensors of one shape."""

    def forward(self, x, y, alpha=1):
        x = x.contiguous()
        y = y.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        block = 1024
        compute = tl.float32 if x.dtype.is_floating_point else tl.int32
        grid = (triton.cdiv(n, block),)
        add_scaled_kernel[grid](x, y, out, alpha, n, COMPUTE=compute, BLOCK=block)
        return out

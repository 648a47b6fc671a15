import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halve_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Elements [pid * BLOCK, (pid + 1) * BLOCK)."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, 0.5 * x, mask=inside)


class ModelNew(nn.Module):
    """Half of a tensor, by code that names its device as much public code does.

    Taking the device from the inputs would be better style: they are where the kernel runs.
    """

    def forward(self, x):
        x = x.cuda()
        assert x.is_cuda, "expected a CUDA tensor"
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        n = x.numel()
        with torch.cuda.device(x.device):
            halve_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
        return out

"""Layer norm over rows, with weight and bias: one program per row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    """Normalise row `program_id(0)`; BLOCK is a power of two not below n_cols."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    # Zeros beyond the row add nothing to the sum; the divisor is the row's length, not BLOCK.
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols

    # The variance comes from the centred values. E[x^2] - E[x]^2 needs one pass less but
    # subtracts two large, nearly equal numbers. After centring, the surplus lanes hold -mean:
    # they have to be put back to zero.
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    inverse_std = 1.0 / tl.sqrt(variance + eps)

    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    out = centred * inverse_std * weight + bias
    tl.store(out_ptr + row * n_cols + cols, out, mask=inside)


class ModelNew(nn.Module):
    """Layer norm whose parameters are those of the reference, bit for bit.

    Both models are built from the same seed. The same random draws in the same order under the same
    names give the same weights.
    """

    def __init__(self, n_cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_cols))
        self.bias = nn.Parameter(torch.randn(n_cols))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n_cols = x.shape[-1]
        layer_norm_kernel[(x.numel() // n_cols,)](
            x, self.weight, self.bias, out, n_cols, self.eps, BLOCK=triton.next_power_of_2(n_cols)
        )
        return out

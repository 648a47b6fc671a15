"""Sum over rows of any length: a loop over blocks with a running vector of partial sums."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """Sum of row `program_id(0)`; n_cols may be any number, a multiple of BLOCK or not."""
    row = tl.program_id(0)
    # One partial sum per lane, folded once after the loop. This is faster than a reduction in each
    # step, and more exact: every lane adds up n_cols / BLOCK numbers only.
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # The mask matters in the last step alone, where 0 is the value that changes no sum.
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        acc += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


class ModelNew(nn.Module):
    """Sum over the last dimension."""

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        row_sum_kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=256)
        return out

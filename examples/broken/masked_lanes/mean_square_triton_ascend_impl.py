import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_square_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    # FAULT: no `other`. The sum takes in the lanes beyond the row, which are undefined.
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols)
    tl.store(out_ptr + row, tl.sum(x * x) / n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        mean_square_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out

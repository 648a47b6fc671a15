import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_mean_kernel(x_ptr, out_ptr, N_COLS: tl.constexpr):
    row = tl.program_id(0)
    # FAULT: the range of tl.arange has to be a power of two; 33 columns need a block of 64 and a
    # mask. (triton-ascend lifts that limit.)
    x = tl.load(x_ptr + row * N_COLS + tl.arange(0, N_COLS))
    tl.store(out_ptr + row, tl.sum(x, axis=0) / N_COLS)


class ModelNew(nn.Module):
    def forward(self, x):
        n_rows, n_cols = x.shape
        out = torch.empty((n_rows,), dtype=x.dtype, device=x.device)
        row_mean_kernel[(n_rows,)](x, out, N_COLS=n_cols)
        return out

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalize_rows_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0)
    norm = tl.sqrt(tl.sum(x * x, axis=0))
    # FAULT: 0 / 0 for a row of zeros. The reference divides by max(norm, eps).
    tl.store(out_ptr + row * n_cols + cols, x / norm, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n_rows, n_cols = x.shape
        block = triton.next_power_of_2(n_cols)
        normalize_rows_kernel[(n_rows,)](x, out, n_cols, BLOCK=block)
        return out

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_norm_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    # FAULT: squared in float16, whose largest number is 65504, and converted too late:
    # 300 * 300 is already Inf. (x.to(tl.float32) belongs to the load.)
    square = (x * x).to(tl.float32)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(square, axis=0)))


class ModelNew(nn.Module):
    def forward(self, x):
        n_rows, n_cols = x.shape
        out = torch.empty((n_rows,), dtype=x.dtype, device=x.device)
        row_norm_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
        return out

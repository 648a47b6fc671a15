import torch
import torch.nn as nn
import triton
import triton.language as tl

MAX_COLS = 1024


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    out = x - tl.log(tl.sum(tl.exp(x), axis=0))
    tl.store(out_ptr + row * n_cols + cols, out, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        n_rows, n_cols = x.shape
        # FAULT: a shape of the task that the implementation does not cover. At least it says so.
        if n_cols > MAX_COLS:
            raise ValueError(
                f"log_softmax keeps a row in one block: at most {MAX_COLS} columns, got {n_cols}"
            )
        out = torch.empty_like(x)
        log_softmax_kernel[(n_rows,)](x, out, n_cols, BLOCK=MAX_COLS)
        return out

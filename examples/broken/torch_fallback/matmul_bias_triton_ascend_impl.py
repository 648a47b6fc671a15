import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(x_ptr, bias_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0)
    tl.store(out_ptr + row * n_cols + cols, x + bias, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, weight, bias):
        # FAULT: torch does the product; the kernel only adds the bias.
        product = torch.matmul(x, weight)
        out = torch.empty_like(product)
        n_rows, n_cols = product.shape
        block = triton.next_power_of_2(n_cols)
        add_bias_kernel[(n_rows,)](product, bias, out, n_cols, BLOCK=block)
        return out

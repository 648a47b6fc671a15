import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dense_kernel(x_ptr, weight_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    x = tl.load(x_ptr + row * K + inner, mask=inner < K, other=0.0)
    weight = tl.load(
        weight_ptr + cols[:, None] * K + inner[None, :],
        mask=(cols < N)[:, None] & (inner < K)[None, :],
        other=0.0,
    )
    tl.store(out_ptr + row * N + cols, tl.sum(weight * x[None, :], axis=1), mask=cols < N)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        # FAULT: another initialiser than the reference's xavier_uniform_. The kernel is right.
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, x):
        n_rows, K = x.shape
        N = self.weight.shape[0]
        out = torch.empty((n_rows, N), dtype=x.dtype, device=x.device)
        dense_kernel[(n_rows,)](
            x,
            self.weight,
            out,
            N,
            K,
            BLOCK_N=triton.next_power_of_2(N),
            BLOCK_K=triton.next_power_of_2(K),
        )
        return out

"""Linear layer with bias and ReLU in one kernel."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Tile (program_id(0), program_id(1)) of relu(x @ weight.T + bias); weight is (N, K)."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None] * K + inner[None, :],
            mask=(rows < M)[:, None] & (inner < K)[None, :],
            other=0.0,
        )
        # The weight is read as it lies in memory, (N, K), and turned on chip.
        weight = tl.load(
            weight_ptr + cols[:, None] * K + inner[None, :],
            mask=(cols < N)[:, None] & (inner < K)[None, :],
            other=0.0,
        )
        acc = tl.dot(x, tl.trans(weight), acc, input_precision="ieee")

    # Bias and ReLU work on the accumulator: the product never goes to memory and back.
    bias = tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    out = tl.maximum(acc + bias[None, :], 0.0)
    tl.store(
        out_ptr + rows[:, None] * N + cols[None, :],
        out,
        mask=(rows < M)[:, None] & (cols < N)[None, :],
    )


class ModelNew(nn.Module):
    """relu(x @ weight.T + bias) with the reference's weights.

    The verifier seeds the generator before it builds each model. For the weights to agree bit for
    bit, the parameters need the same names and shapes, and the random draws the same initialisers
    in the same order: weight first, then bias.
    """

    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        bound = 1.0 / math.sqrt(in_features)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        N = self.bias.shape[0]
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        block = 32
        grid = (triton.cdiv(M, block), triton.cdiv(N, block))
        linear_relu_kernel[grid](
            x, self.weight, self.bias, out, M, N, K, BLOCK_M=block, BLOCK_N=block, BLOCK_K=32
        )
        return out

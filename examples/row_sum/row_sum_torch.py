import torch
import torch.nn as nn


class Model(nn.Module):
    """Sum over the last dimension."""

    def forward(self, x):
        return x.sum(dim=-1)


def get_input_groups():
    return [
        [torch.randn(6, 512)],
        # 1000 = 3 * 256 + 232: the fourth block is partly outside.
        [torch.randn(6, 1000)],
        # One block more than half empty, and a third dimension.
        [torch.randn(2, 4, 100) + 1.0],
        # A float16 running sum would stop growing at 2048, where 1 is less than half its ULP.
        [torch.rand(4, 5000).to(torch.float16)],
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Layer norm over the last dimension, with a random affine part.

    With the usual start (weight 1, bias 0) and inputs of mean 0 and variance 1, a kernel that only
    copies its input would come close. Random weights and shifted inputs tell the two apart.
    """

    def __init__(self, n_cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_cols))
        self.bias = nn.Parameter(torch.randn(n_cols))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def get_input_groups():
    return [
        [torch.randn(8, 200) * 2.0 + 3.0],
        [torch.randn(2, 5, 200) * 0.1 - 1.0],
        # The mean is 100 times the spread: E[x^2] - E[x]^2 would lose four of its seven digits.
        [torch.randn(4, 200) + 100.0],
    ]


def get_init_inputs():
    return [200, 1e-5]

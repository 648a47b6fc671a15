import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """relu(x @ weight.T + bias), the weights initialised as in nn.Linear."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        bound = 1.0 / math.sqrt(in_features)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x):
        return torch.relu(nn.functional.linear(x, self.weight, self.bias))


def get_input_groups():
    return [
        [torch.randn(16, 48)],
        [torch.randn(37, 48) * 3.0],
    ]


def get_init_inputs():
    return [48, 40]

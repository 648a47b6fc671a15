import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, weight, bias):
        return x @ weight + bias


def get_input_groups():
    return [
        [torch.randn(16, 32), torch.randn(32, 24), torch.randn(24)],
        [torch.randn(9, 50), torch.randn(50, 20), torch.randn(20)],
    ]


def get_init_inputs():
    return []

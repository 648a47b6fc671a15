import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0


def get_input_groups():
    return [[torch.randn(1024)], [torch.randn(1000)]]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of two matrices."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_input_groups():
    return [
        [torch.randn(64, 64), torch.randn(64, 64)],
        # No dimension is a multiple of a block: all three tails are masked.
        [torch.randn(50, 70), torch.randn(70, 45)],
        # Half precision, summed up in single precision.
        [torch.randn(33, 100).to(torch.float16), torch.randn(100, 40).to(torch.float16)],
        # A transposed view: the strides tell where the elements are, no copy is needed.
        [torch.randn(40, 48), torch.randn(36, 48).t()],
    ]


def get_init_inputs():
    return []

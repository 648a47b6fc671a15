import torch
import torch.nn as nn


class Model(nn.Module):
    """The mean of the squares of each row."""

    def forward(self, x):
        return (x * x).mean(dim=1)


def get_input_groups():
    return [
        # A row that fills its block hides the fault.
        [torch.randn(4, 128)],
        [torch.randn(4, 100)],
    ]


def get_init_inputs():
    return []

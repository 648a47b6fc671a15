import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """GELU, exact (`approximate="none"`) or by its tanh approximation."""

    def forward(self, x, approximate):
        return F.gelu(x, approximate=approximate)


def get_input_groups():
    # A group may hold anything that `forward` takes, strings included.
    return [
        [torch.randn(2000) * 2.0, "none"],
        [torch.randn(40, 33) * 2.0, "tanh"],
        [torch.randn(1000).to(torch.float16), "none"],
        # Far out, where the result is x or 0 and a careless exp would overflow.
        [torch.linspace(-100.0, 100.0, 401), "tanh"],
    ]


def get_init_inputs():
    return []

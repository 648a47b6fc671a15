import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """silu(gate) * up, the gated activation of many language models."""

    def forward(self, gate, up):
        return F.silu(gate) * up


def get_input_groups():
    return [
        [torch.randn(16, 128), torch.randn(16, 128)],
        [torch.randn(3, 7, 111), torch.randn(3, 7, 111)],
        [torch.randn(10, 300).to(torch.float16), torch.randn(10, 300).to(torch.float16)],
    ]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    """x + alpha * y. The cases stand in add_scaled.json, one a line."""

    def forward(self, x, y, alpha=1):
        return torch.add(x, y, alpha=alpha)

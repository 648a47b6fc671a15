import torch
import torch.nn as nn


class Model(nn.Module):
    """int8 values times one scale for each group of 64."""

    def forward(self, q, scale):
        return (q.reshape(-1, 64).to(torch.float32) * scale[:, None]).reshape(-1)


def get_input_groups():
    q = torch.randint(-127, 128, (512,), dtype=torch.int8)
    return [
        # Equal scales hide the fault.
        [q, torch.full((8,), 0.25)],
        [q, torch.rand(8) + 0.5],
    ]


def get_init_inputs():
    return []

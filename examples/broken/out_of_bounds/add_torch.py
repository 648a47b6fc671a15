import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_input_groups():
    return [[torch.randn(n), torch.randn(n)] for n in (1000, 257)]

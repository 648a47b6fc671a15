import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return -x


def get_input_groups():
    return [[torch.randn(300)], [torch.randn(301)], [torch.randn(302)]]


def get_init_inputs():
    return []

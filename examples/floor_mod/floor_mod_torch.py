import torch
import torch.nn as nn


class Model(nn.Module):
    """Remainder of the division rounded down; its sign is the divisor's."""

    def forward(self, x, y):
        return torch.remainder(x, y)


def _divisors(*shape):
    magnitude = torch.randint(1, 50, shape, dtype=torch.int32)
    negative = torch.randint(0, 2, shape, dtype=torch.int32) == 1
    return torch.where(negative, -magnitude, magnitude)


def get_input_groups():
    def numbers(low, high, *shape):
        return torch.randint(low, high, shape, dtype=torch.int32)

    return [
        [numbers(0, 10_000, 1000), numbers(1, 50, 1000)],
        # All four combinations of signs, and multiples, whose remainder is 0.
        [numbers(-10_000, 10_000, 40, 33), _divisors(40, 33)],
        # Beyond 2^24, where a detour over float32 gives wrong integers.
        [numbers(-(2**31) + 1, 2**31 - 1, 777), _divisors(777)],
    ]


def get_init_inputs():
    return []

"""The accelerator's own generator, as code sees it that draws numbers in its kernels.

A device's generator is a seed and an offset. Kernels get both as numbers, and whoever launches them
moves the offset on. The seed is the one of `torch.manual_seed`.
"""

from __future__ import annotations

import torch


class DeviceGenerator(torch.Generator):
    """What `torch.cuda.default_generators` holds."""

    _offset = 0

    def reset(self, *_: object, **__: object) -> None:
        """Begin anew, as after a seed was set."""
        self._offset = 0

    def initial_seed(self) -> int:
        """Return the seed."""
        return torch.initial_seed()

    def get_offset(self) -> int:
        """Return how many numbers have been drawn."""
        return self._offset

    def set_offset(self, offset: int) -> torch.Generator:
        """Say how many numbers have been drawn."""
        self._offset = int(offset)
        return self

    def get_state(self) -> torch.Tensor:
        """Return 16 bytes, uint8: the seed and the offset, as a device does."""
        seed = self.initial_seed()
        signed = seed - (1 << 64) if seed >= 1 << 63 else seed
        with torch._C.DisableTorchFunction():
            return torch.tensor([signed, self._offset]).view(torch.uint8)

    def set_state(self, state: torch.Tensor) -> torch.Generator:
        """Take the offset from a state; the seed is torch's to set."""
        with torch._C.DisableTorchFunction():
            self._offset = int(state.view(torch.int64)[-1])
        return self

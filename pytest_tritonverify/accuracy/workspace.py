"""Memory that a pass over two tensors uses for one piece after another."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class Workspace:
    """Buffers by purpose, for one thread.

    A piece's large temporaries would be given back to the system and faulted in anew with every
    piece, depending on what the process has freed before, and small results that outlive a piece
    would come to lie between them.
    """

    _buffers: dict[tuple[str, torch.dtype], torch.Tensor] = field(default_factory=dict)

    def take(self, purpose: str, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory, whose content is what the purpose was last used for.

        Args:
            purpose: What it is for; what was taken for it before becomes invalid.
            count: Numbers, at least one.
            dtype: Their dtype.

        Returns:
            A contiguous tensor of shape `[count]`.
        """
        found = self._buffers.get((purpose, dtype))
        if found is None or found.numel() < count:
            found = torch.empty(count, dtype=dtype)
            self._buffers[purpose, dtype] = found
        return found[:count]

    def wide(self, purpose: str, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return flat values in a dtype: themselves, or a copy in memory as `take` gives it."""
        if values.dtype == dtype:
            return values
        return self.take(purpose, values.numel(), dtype).copy_(values)

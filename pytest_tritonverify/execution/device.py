"""What a worker must know of the device that it runs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

SEED = 0


class Device(ABC):
    """A place where implementations run. Methods may be called in worker processes only.

    Attributes:
        name: the name of `--verify-device`, also torch's device type.
        interpreted: kernels run on Triton's CPU interpreter.
        forkable: a process may be forked from one that has imported torch and triton.
    """

    name: ClassVar[str]
    interpreted: ClassVar[bool] = False
    forkable: ClassVar[bool] = True

    def environment(self) -> dict[str, str]:
        """Return variables that must stand in a process's environment from its start."""
        return {}

    def load(self) -> None:  # noqa: B027 - torch itself may have all that is needed
        """Import what torch needs for this device, before any user code runs."""

    def seed(self, seed: int = SEED) -> None:
        """Seed torch's generators on the CPU and on this device."""
        import torch

        torch.manual_seed(seed)

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Say what there is: `available`, and `name` and `count`, or the `reason` for none."""

    def synchronize(self) -> None:  # noqa: B027 - nothing to wait for is an answer
        """Wait for launched kernels, so that a device fault surfaces here."""

    def release(self) -> None:  # noqa: B027 - nothing to give back is an answer
        """Give unused device memory back between cases."""

"""The accelerator that is stood in for: its names, and which tensors are on it."""

from __future__ import annotations

from typing import Any

import torch

from pytest_tritonverify.standin.host_memory import HostMemory
from pytest_tritonverify.standin.refusals import StandinError

CPU = torch.device("cpu")


class Accelerator:
    """One device, number 0, of a kind.

    Attributes:
        kind: "cuda" or "npu".
        device: what a tensor on it answers when it is asked for its device.
        host: the tensors that aren't on it.
        names: the device types that lead to it. `torch_npu.contrib.transfer_to_npu` adds "cuda"
            to those of an NPU.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.device = torch.device(kind, 0)
        self.host = HostMemory()
        self.names = {kind}

    def answers(self, kind: str) -> bool:
        """Whether code may call the device by that name."""
        return kind in self.names

    def is_meant(self, device: Any) -> bool:
        """Whether a device, as code gives it, is the accelerator.

        Args:
            device: text such as "cuda:0", a torch.device, or a device's number.

        Raises:
            StandinError: it is another one of the accelerator's kind.
        """
        if isinstance(device, bool):
            return False
        if isinstance(device, int):
            self._check(device)
            return True
        if isinstance(device, str):
            kind, _, number = device.partition(":")
            index = int(number) if number.isdigit() else None
        elif isinstance(device, torch.device):
            kind, index = device.type, device.index
        else:
            return False
        if kind not in self.names:
            return False
        self._check(index)
        return True

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor, which is on the CPU in truth, counts as being on the accelerator."""
        return not self.host.holds(tensor)

    def _check(self, index: int | None) -> None:
        if index:
            raise StandinError(
                f"there is no device {self.kind}:{index}: the stand-in on the CPU has one, "
                f"{self.kind}:0; use that, or judge this code on a machine that has more"
            )


def is_host(device: Any) -> bool:
    """Whether a device, as code gives it, is the host."""
    if isinstance(device, torch.device):
        return device.type == "cpu"
    return isinstance(device, str) and device.partition(":")[0] == "cpu"

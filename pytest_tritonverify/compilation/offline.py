"""A driver of Triton for a device that isn't there: it answers what compiling asks, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tritonverify.compilation.targets import Target


class OfflineDriver:
    """Stands for a device while kernels are compiled for it, and while their module is imported.

    Args:
        target: what is compiled for.
        beneath: the driver that answers everything else; None where there is none.
    """

    def __init__(self, target: Target, beneath: Any = None) -> None:
        self._target = target
        self._beneath = beneath

    def get_current_target(self) -> Any:
        """Return backend, architecture and warp size."""
        from triton.backends.compiler import GPUTarget

        arch: Any = self._target.arch
        if self._target.kind == "cuda":
            arch = int(arch)
        return GPUTarget(self._target.kind, arch, self._target.warp_size)

    def get_current_device(self) -> int:
        """Return the device's number."""
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        """Return the default stream's handle."""
        del device
        return 0

    def get_active_torch_device(self) -> Any:
        """Return the device in torch's terms."""
        if self._beneath is not None:
            return self._beneath.get_active_torch_device()
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return the device's module in torch."""
        if self._beneath is not None:
            return self._beneath.get_device_interface()
        import torch

        return torch.cpu

    def get_benchmarker(self) -> Any:
        """Return what would time a function; autotuners take it when they are made."""
        import triton.testing

        return triton.testing.do_bench

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__dict__.get("_beneath") is None:
            raise AttributeError(f"there is no device here, so that the driver has no {name}")
        return getattr(self._beneath, name)


def install(target: Target, *, standin: bool) -> None:
    """Make an offline driver the active one.

    Args:
        target: what is compiled for.
        standin: a stand-in for a device has been installed; it answers everything else.
    """
    from triton.runtime.driver import driver

    driver.set_active(OfflineDriver(target, driver.active if standin else None))

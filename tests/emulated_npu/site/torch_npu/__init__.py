"""A stand-in for torch_npu, for tests: a device `npu` on the memory of the host.

It has what the product, and code that is judged in the tests, use of torch_npu: names, arguments
and what comes back are those of torch_npu 2.13. Its kernels are those of torch's CPU and of
Triton's interpreter, so that nothing is learned from it about an NPU's arithmetic.
"""

from __future__ import annotations

import os
from pathlib import Path

_AUTOLOAD = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch  # noqa: E402 - as torch_npu does it
from torch.utils import backend_registration  # noqa: E402 - as above

from torch_npu import _operators  # noqa: E402 - as above
from torch_npu.version import __version__ as __version__  # noqa: E402 - as above


class _Hook(backend_registration._DummyPrivateUse1Hook):
    def get_default_generator(self, device_index: int) -> torch.Generator:
        return _operators.generator


def _note_import() -> None:
    """Write down which process has imported this, where somebody wants to know."""
    log = os.environ.get("EMULATED_NPU_LOG")
    if log:
        with Path(log).open("a", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")


def _install() -> None:
    from torch_npu import _triton

    backend_registration.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)
    backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    torch._C._acc.register_python_privateuseone_hook(_Hook())
    torch._C._acc.register_python_privateuseone_device_guard(
        backend_registration._DummyDeviceGuard()
    )
    _operators.install()
    _triton.install()


_note_import()
from torch_npu import npu  # noqa: E402 - it needs the names above

_install()
from torch_npu import profiler  # noqa: E402, F401 - as above

npu_swiglu = torch.ops.npu.npu_swiglu


def _autoload() -> None:
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _AUTOLOAD


_autoload()

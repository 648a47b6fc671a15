"""Put the parts of the stand-in together."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from torch.utils import backend_registration

from pytest_tritonverify.standin import (
    torch_cuda,
    torch_functions,
    torch_npu,
)
from pytest_tritonverify.standin.accelerator import Accelerator
from pytest_tritonverify.standin.imports import Imports
from pytest_tritonverify.standin.patches import Patches
from pytest_tritonverify.standin.torch_devices import StandinMode

if TYPE_CHECKING:
    from types import ModuleType


def install(kind: str) -> Patches:
    """Install the stand-in for a kind, "cuda" or "npu", and return what takes it back."""
    patches = Patches()
    imports = Imports()
    if kind == "npu":
        backend_registration.rename_privateuse1_backend("npu")
    accelerator = Accelerator(kind)
    mode: Any = StandinMode(accelerator)
    imports.install(patches)
    if kind == "npu":
        torch_npu.install(accelerator, mode, imports, patches)
    torch_cuda.install(accelerator, patches)
    torch_functions.install(accelerator, mode, patches)

    def refuse_extensions(module: ModuleType) -> None:
        torch_functions.refuse_extensions(module, patches)

    imports.complete("torch.utils.cpp_extension", refuse_extensions)

    def keep_driver(module: ModuleType) -> None:
        # Generated kernels say at their beginning that they are for a GPU.
        for name in ("set_driver_to_gpu", "set_driver_to_cpu"):
            if hasattr(module, name):
                patches.set(module, name, lambda: None)

    imports.complete("torch._inductor.runtime.triton_helpers", keep_driver)
    if importlib.util.find_spec("triton") is not None:
        from pytest_tritonverify.standin import language_extra, platform_facts, triton_driver

        triton_driver.install(accelerator, patches)
        if kind == "npu":
            language_extra.install(imports, patches)
            platform_facts.install(imports)
    if kind == "npu":
        # Last, since it hides what is installed.
        imports.own("torch_npu")
    mode.__enter__()
    patches.later(lambda: mode.__exit__(None, None, None))
    return patches

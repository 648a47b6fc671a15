"""What a server of compiling processes does once so that they need not."""

from __future__ import annotations

import contextlib
import gc
import importlib

# Triton imports these in the middle of a first compilation; not every version has all of them.
_IMPORTS = (
    "pytest_tritonverify.compilation.role",
    "triton.compiler.code_generator",
    "triton.runtime.jit",
    "triton.testing",
)
# It reads the whole compiler to name it in keys of its cache.
_KEYS = (("triton.runtime.cache", "triton_key"), ("triton.compiler.compiler", "triton_key"))


def warm_up() -> None:
    """Import what compiling imports, and compute what does not depend on the kernel."""
    for name in _IMPORTS:
        with contextlib.suppress(Exception):  # whoever needs it will say so
            importlib.import_module(name)
    for module, name in _KEYS:
        with contextlib.suppress(Exception):
            getattr(importlib.import_module(module), name)()
            break
    gc.collect()
    gc.freeze()

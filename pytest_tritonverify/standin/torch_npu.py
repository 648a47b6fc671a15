"""torch.npu and the module torch_npu under the stand-in."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import device_module, facts, usage
from pytest_tritonverify.standin.refusals import StandinAttributeError, sentence

if TYPE_CHECKING:
    from pytest_tritonverify.standin.accelerator import Accelerator
    from pytest_tritonverify.standin.imports import Imports
    from pytest_tritonverify.standin.patches import Patches
    from pytest_tritonverify.standin.torch_devices import StandinMode

# torch_npu's number for a tensor that is laid out as torch lays it out.
_ND = 2
_WORD = "torch_npu"
# Functions of torch.npu that its parts have, too.
_PARTS = {
    "memory": (
        "empty_cache",
        "max_memory_allocated",
        "max_memory_reserved",
        "mem_get_info",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "reset_peak_memory_stats",
    ),
    "random": (
        "get_rng_state",
        "initial_seed",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "set_rng_state",
    ),
}


class StandinModule(ModuleType):
    """A module that says of names which it lacks that it is a stand-in."""

    def __init__(self, name: str, word: str, contents: dict[str, Any]) -> None:
        super().__init__(name)
        self.__doc__ = f"A stand-in for {name}, on the CPU."
        self.__dict__["_word"] = word
        self.__dict__["_contents"] = contents

    def __getattr__(self, name: str) -> Any:
        # Not kept in the module: each access is to be noticed.
        contents = self.__dict__["_contents"]
        if name in contents:
            usage.note(self.__dict__["_word"])
            return contents[name]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise StandinAttributeError(sentence(f"{self.__name__}.{name}"))

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__["_contents"])


def install(
    accelerator: Accelerator, mode: StandinMode, imports: Imports, patches: Patches
) -> None:
    """Give torch the NPU's names, and make torch_npu importable."""
    tensor = torch.Tensor
    patches.set(tensor, "npu", _method(mode.move))
    patches.set(tensor, "is_npu", property(mode.is_npu))
    patches.set(torch.nn.Module, "npu", _module_npu)
    patches.set(torch.nn.utils.rnn.PackedSequence, "npu", lambda self, *_: self)
    npu = StandinModule("torch.npu", "torch.npu", _npu_names(accelerator))
    patches.set(torch, "npu", npu)
    imports.provide("torch.npu", lambda: npu, "torch.npu")
    imports.provide("torch_npu", lambda: _torch_npu(npu), _WORD)
    imports.provide("torch_npu.npu", lambda: npu, _WORD)
    contrib = StandinModule("torch_npu.contrib", _WORD, {})
    contrib.__path__ = []
    imports.provide("torch_npu.contrib", lambda: contrib, _WORD)

    def transfer() -> ModuleType:
        accelerator.names.add("cuda")
        usage.note("transfer_to_npu")
        module = StandinModule("torch_npu.contrib.transfer_to_npu", "transfer_to_npu", {})
        contrib.__dict__["_contents"]["transfer_to_npu"] = module
        return module

    imports.provide("torch_npu.contrib.transfer_to_npu", transfer, "transfer_to_npu")
    patches.later(lambda: accelerator.names.discard("cuda"))


def _method(function: Any) -> Any:
    """Make a method of a function whose first argument is bound already."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


def _module_npu(self: Any, device: Any = None) -> Any:
    return self._apply(lambda tensor: tensor.npu(device))


def _npu_names(accelerator: Accelerator) -> dict[str, Any]:
    properties = facts.NpuProperties()
    limits = {
        "cube_core_num": properties.cube_core_num,
        "vector_core_num": properties.vector_core_num,
    }

    def get_device_limit(device: Any = 0) -> dict[str, int]:
        accelerator.is_meant(device)
        return dict(limits)

    def nothing(*_: Any, **__: Any) -> None:
        return None

    def autocast(*args: Any, **kwargs: Any) -> Any:
        return torch.autocast("npu", *args, **kwargs)

    names = device_module.names(accelerator)
    amp = StandinModule("torch.npu.amp", _WORD, {"autocast": autocast})
    parts = {
        part: StandinModule(f"torch.npu.{part}", _WORD, {name: names[name] for name in known})
        for part, known in _PARTS.items()
    }
    return {
        **names,
        **parts,
        "amp": amp,
        "clear_npu_overflow_flag": nothing,
        "config": SimpleNamespace(allow_internal_format=False),
        "conv": SimpleNamespace(allow_hf32=True),
        "get_device_limit": get_device_limit,
        "get_npu_overflow_flag": lambda: False,
        "get_soc_version": lambda: facts.NPU_SOC_VERSION,
        "is_jit_compile_false": lambda: True,
        "matmul": SimpleNamespace(allow_hf32=False),
        "npu_config": SimpleNamespace(get_device_limit=get_device_limit),
        "reset_device_limit": nothing,
        "set_compile_mode": nothing,
        "set_device_limit": nothing,
        "set_dump": nothing,
        "set_option": nothing,
        "utils": SimpleNamespace(
            get_soc_version=lambda: facts.NPU_SOC_VERSION,
            is_support_inf_nan=lambda: True,
            npu_check_overflow=lambda _: False,
        ),
        "version": SimpleNamespace(cann=None),
    }


def _torch_npu(npu: ModuleType) -> ModuleType:
    def keep(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return tensor

    names = {
        "npu": npu,
        "npu_format_cast": keep,
        "npu_format_cast_": keep,
        "get_npu_format": lambda _: _ND,
        "_C": SimpleNamespace(_npu_getCurrentRawStream=lambda *_: 0),
        "is_available": lambda: True,
    }
    module = StandinModule("torch_npu", _WORD, names)
    module.__path__ = []
    # The stand-in follows torch's own version, as torch_npu does.
    module.__dict__["__version__"] = torch.__version__.split("+")[0]
    return module

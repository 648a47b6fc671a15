"""The functions and classes that torch.cuda and torch.npu have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import facts, generators, streams
from pytest_tritonverify.standin.refusals import refuse, refusing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.standin.accelerator import Accelerator

_NOTHING = (
    "_lazy_init",
    "caching_allocator_delete",
    "empty_cache",
    "init",
    "ipc_collect",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "synchronize",
)
_NO_BYTES = (
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
)
_REFUSED = (
    "caching_allocator_alloc",
    "graph",
    "graph_pool_handle",
    "make_graphed_callables",
    "jiterator",
)


def names(accelerator: Accelerator) -> dict[str, Any]:
    """Return what a device's module offers, by name.

    Seeds are taken and forgotten: `torch.manual_seed` sets that of the CPU's generator, by which
    torch draws, and of the accelerator's.
    """
    kind = accelerator.kind
    module = f"torch.{kind}"
    classes = streams.classes(accelerator, module)
    default = classes["Stream"](accelerator.device)
    default.stream_id = 0

    def nothing(*_: Any, **__: Any) -> None:
        return None

    def always(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    properties: Any = facts.NpuProperties() if kind == "npu" else facts.CudaProperties()

    def of_device(answer: Any) -> Callable[..., Any]:
        def query(device: Any = None) -> Any:
            if device is not None and not accelerator.is_meant(device):
                raise refuse(f"device {device}")
            return answer

        return query

    class CUDAGraph:
        def __new__(cls, *_: Any, **__: Any) -> Any:
            raise refuse(f"{module}.{cls.__name__}")

    CUDAGraph.__name__ = "NPUGraph" if kind == "npu" else "CUDAGraph"
    total = properties.total_memory
    found: dict[str, Any] = {
        **dict.fromkeys(_NOTHING, nothing),
        **dict.fromkeys(_NO_BYTES, always(0)),
        **{name: refusing(f"{module}.{name}") for name in _REFUSED},
        CUDAGraph.__name__: CUDAGraph,
        **classes,
        "current_device": always(0),
        "current_stream": always(default),
        "default_stream": always(default),
        "_exchange_device": always(0),
        "_maybe_exchange_device": always(0),
        "can_device_access_peer": always(value=False),
        "device_count": always(1),
        "get_device_name": of_device(properties.name),
        "get_device_properties": of_device(properties),
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "get_sync_debug_mode": always(0),
        "initial_seed": torch.initial_seed,
        "is_available": always(value=True),
        "is_bf16_supported": always(value=True),
        "is_current_stream_capturing": always(value=False),
        "is_initialized": always(value=True),
        "_is_in_bad_fork": always(value=False),
        "mem_get_info": always((total, total)),
        "memory_snapshot": always([]),
        "memory_stats": lambda *_: {},
        "memory_summary": always(""),
        "utilization": always(0),
    }
    generator = generators.DeviceGenerator()
    found["default_generators"] = (generator,)
    found.update(
        dict.fromkeys(("manual_seed", "manual_seed_all", "seed", "seed_all"), generator.reset)
    )
    if kind == "cuda":
        found["get_device_capability"] = of_device(facts.CUDA_CAPABILITY)
        found["get_arch_list"] = always(["sm_{}{}".format(*facts.CUDA_CAPABILITY)])
        found["is_tf32_supported"] = always(value=True)
    return found

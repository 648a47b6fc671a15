"""torch.npu: devices, streams, events, seeds and memory."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from torch_npu import _faults, _memory, _operators

_NAME = "Ascend910B4"
_current = [0]
_initialized: list[int] = []


def _physical() -> list[int]:
    return list(range(int(os.environ.get("EMULATED_NPU_DEVICES", "2"))))


def _visible() -> list[int]:
    """Return the devices that this process may use: in ascending order, or none at all."""
    wanted = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if wanted is None:
        return _physical()
    chosen: list[int] = []
    for word in wanted.split(","):
        if not word.isdigit() or int(word) not in _physical():
            break
        if chosen and int(word) <= chosen[-1]:
            return []
        chosen.append(int(word))
    return chosen


def _is_in_bad_fork() -> bool:
    return bool(_initialized) and _initialized[0] != os.getpid()


def _lazy_init() -> None:
    if _is_in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize NPU in forked subprocess. To use NPU with "
            "multiprocessing, you must use the 'spawn' start method"
        )
    if not _initialized:
        _faults.open_device()
        if not _visible():
            raise RuntimeError("Invalid device ID.")
        _initialized.append(os.getpid())


def init() -> None:
    _lazy_init()


def is_initialized() -> bool:
    return bool(_initialized) and not _is_in_bad_fork()


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return len(_visible())


def current_device() -> int:
    _lazy_init()
    return _current[0]


def _index(device: Any) -> int:
    if device is None:
        return _current[0]
    if isinstance(device, int):
        return device
    index: int | None = torch.device(device).index
    return _current[0] if index is None else index


def set_device(device: Any) -> None:
    index = _index(device)
    if index >= device_count():
        raise RuntimeError("Invalid device ID.")
    _lazy_init()
    _current[0] = index


def get_device_name(device_name: Any = None) -> str:
    if _index(device_name) >= device_count():
        raise AssertionError("Invalid device id")
    return _NAME


def get_device_properties(device_name: Any = None) -> Any:
    if _index(device_name) >= device_count():
        raise AssertionError("Invalid device id")
    return SimpleNamespace(
        name=_NAME,
        total_memory=_memory.statistics.limit,
        cube_core_num=20,
        vector_core_num=40,
        L2_cache_size=100663296,
    )


def get_device_capability(device: Any = None) -> None:
    return None


def synchronize(device: Any = None) -> None:
    _lazy_init()
    _faults.raise_pending()


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16, torch.float32]


def manual_seed(seed: int) -> None:
    _operators.generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    _operators.generator.manual_seed(seed)


def initial_seed() -> int:
    return _operators.generator.initial_seed()


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    return _operators.generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    _operators.generator.set_state(new_state)


def empty_cache() -> None:
    if is_initialized():
        _faults.raise_pending()


def memory_allocated(device: Any = None) -> int:
    return _memory.statistics.allocated


def max_memory_allocated(device: Any = None) -> int:
    return _memory.statistics.peak


def memory_reserved(device: Any = None) -> int:
    return _memory.statistics.allocated


def max_memory_reserved(device: Any = None) -> int:
    return _memory.statistics.peak


def reset_peak_memory_stats(device: Any = None) -> None:
    _memory.statistics.peak = _memory.statistics.allocated


def mem_get_info(device: Any = None) -> tuple[int, int]:
    limit = _memory.statistics.limit
    return limit - _memory.statistics.allocated, limit


class Event:
    """An event, which is reached at once."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        return None

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        _faults.raise_pending()

    def elapsed_time(self, end_event: Event) -> float:
        if self._at is None or end_event._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1e3


class Stream:
    """A stream, on which everything happens at once."""

    npu_stream = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = torch.device("npu", _index(device))

    def synchronize(self) -> None:
        _faults.raise_pending()

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Stream) -> None:
        return None

    def wait_event(self, event: Event) -> None:
        return None

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


_default = Stream


def current_stream(device: Any = None) -> Stream:
    return Stream(device)


def default_stream(device: Any = None) -> Stream:
    return Stream(device)


def set_stream(stream: Stream) -> None:
    return None


@dataclass
class StreamContext:
    """Select a stream for a while."""

    stream: Stream | None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    return StreamContext(stream)


class device:
    """Select a device for a while."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _current[0]
        set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        set_device(self.prev_idx)


config = SimpleNamespace(allow_internal_format=False)
matmul = SimpleNamespace(allow_hf32=False)
conv = SimpleNamespace(allow_hf32=True)

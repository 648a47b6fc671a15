"""Streams, events and guards of the accelerator: on the CPU everything has happened already."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.standin import usage

if TYPE_CHECKING:
    from typing_extensions import Self

    from pytest_tritonverify.standin.accelerator import Accelerator

_numbers = itertools.count(1)


class _Noted:
    """Is noticed when it is made.

    Attributes:
        word: what is noted.
    """

    word = ""

    def __init__(self) -> None:
        if self.word:
            usage.note(self.word)


class Event(_Noted):
    """Remembers when it was recorded, by the wall clock."""

    def __init__(self, enable_timing: bool = False, *_: Any, **__: Any) -> None:  # noqa: FBT001, FBT002 - torch's signature
        super().__init__()
        self.enable_timing = enable_timing
        self._recorded: float | None = None
        self.cuda_event = self.npu_event = 0

    def record(self, stream: Any = None) -> None:
        """Remember the time."""
        del stream
        self._recorded = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing is left to wait for."""

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """Say that it has happened."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds of wall time up to another event.

        Raises:
            RuntimeError: one of them has not been recorded.
        """
        if self._recorded is None or end_event._recorded is None:
            raise RuntimeError("both events must be recorded before calculating elapsed time")
        return 1000 * (end_event._recorded - self._recorded)


class Stream(_Noted):
    """A queue that is always empty."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        super().__init__()
        self._number = next(_numbers)
        self.priority = priority
        self.device = device if isinstance(device, torch.device) else None
        self.device_index = 0
        self.stream_id = self._number

    @property
    def cuda_stream(self) -> int:
        """The handle; 0 is the default stream's."""
        return self.stream_id

    npu_stream = cuda_stream

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """Say that all work is done."""
        return True

    def wait_event(self, event: Event) -> None:
        """Nothing is left to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing is left to wait for."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Guard(_Noted):
    """A block in which a stream or a device is the current one.

    Args:
        accelerator: the device.
        chosen: a stream, a device, a device's number, or None.
    """

    def __init__(self, accelerator: Accelerator, chosen: Any = None) -> None:
        super().__init__()
        if isinstance(chosen, (int, str, torch.device)) and chosen != -1:
            accelerator.is_meant(chosen)
        self.idx = 0
        self.prev_idx = 0
        self.stream = chosen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        """Guard a function, as a decorator; there is nothing to guard."""
        return function


def classes(accelerator: Accelerator, word: str) -> dict[str, type]:
    """Return the classes of a device's module, such as torch.cuda, by name.

    Args:
        accelerator: the device.
        word: what is noted when user code makes an object of one.
    """

    class Bound(Guard):
        def __init__(self, chosen: Any = None) -> None:
            super().__init__(accelerator, chosen)

    guards = ("device", "device_of", "stream", "StreamContext", "_DeviceGuard")
    stream = type("Stream", (Stream,), {"word": word})
    return {
        "Event": type("Event", (Event,), {"word": word}),
        "Stream": stream,
        "ExternalStream": stream,
        **{name: type(name, (Bound,), {"word": word}) for name in guards},
    }

"""Surroundings that may change between runs without changing a right result.

A kernel may find anything in memory that nobody has written, programs of a grid run in any order,
and other work may keep a device busy. One of these is varied at a time, so that a difference tells
what it comes from.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pytest_tritonverify.execution import alarm
from pytest_tritonverify.interpreter import masked_lanes, ordering

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN, MEMORY, REUSE, BUSY = "plain", "memory", "reuse", "busy"
ORDERS = ordering.KINDS

# Bytes that fresh memory is filled with in turn: as numbers they are huge, small, and negative.
BYTES = (0x7B, 0x3C, 0x00, 0xBC, 0x01)

# A run in another order may wait for ever where one in the grid's order takes this many seconds.
_LEAST_PATIENCE = 20.0
_PATIENCE_FACTOR = 10.0
_FRESH = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    }
)
# Copies on another stream that take a GPU some milliseconds.
_NOISE_ELEMENTS = 1 << 22
_NOISE_OPERATIONS = 400


class WaitsForProgramsError(BaseException):
    """In another order a program waits for one that has not run yet.

    A device may run them at the same time, and then there is nothing wrong with that.
    """


def byte_of(seed: int) -> int:
    """Return what fresh memory is filled with in a run."""
    return BYTES[seed % len(BYTES)]


@contextlib.contextmanager
def applied(kind: str, seed: int, device: str, seconds: float) -> Iterator[None]:
    """Vary one thing while a forward runs.

    Args:
        kind: one of the names above.
        seed: chooses an order, or what is in memory.
        device: torch's name of the device.
        seconds: what a forward takes otherwise.

    Raises:
        WaitsForProgramsError: the programs can't run in another order.
    """
    if kind in ORDERS:
        surroundings: Any = _ordered(kind, seed, seconds)
    elif kind == MEMORY:
        surroundings = _filled(seed)
    elif kind == REUSE:
        surroundings = _left_as_it_was()
    elif kind == BUSY:
        surroundings = _kept_busy(device)
    else:
        surroundings = contextlib.nullcontext()
    with surroundings:
        yield


@contextlib.contextmanager
def _ordered(kind: str, seed: int, seconds: float) -> Iterator[None]:
    patience = max(_LEAST_PATIENCE, _PATIENCE_FACTOR * seconds)
    late = WaitsForProgramsError(
        f"in another order of programs the launch was not over after {patience:.0f} s"
    )
    ordering.choose((kind, seed))
    try:
        with alarm.raising(late, patience):
            yield
    finally:
        ordering.choose(None)


@contextlib.contextmanager
def _filled(seed: int) -> Iterator[None]:
    masked_lanes.shift(seed + 1)
    try:
        with _Filling(byte_of(seed)):
            yield
    finally:
        masked_lanes.shift(0)


class _Filling(TorchDispatchMode):
    """Fills what torch.empty and its kin return with a byte."""

    def __init__(self, byte: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch gives it no types
        self._byte = byte

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call an operator, and fill what it has made."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        # Neither meta nor sparse tensors have memory of their own to fill.
        if name in _FRESH and result.layout is torch.strided and not result.is_meta:
            storage = result.untyped_storage()
            if storage.nbytes():
                storage.fill_(self._byte)
        return result


@contextlib.contextmanager
def _left_as_it_was() -> Iterator[None]:
    """Let fresh memory hold what it held before; torch's algorithms stay the same."""
    switch = getattr(torch.utils, "deterministic", None)
    if switch is None:  # torch 2.1
        yield
        return
    before = switch.fill_uninitialized_memory
    switch.fill_uninitialized_memory = False
    try:
        yield
    finally:
        switch.fill_uninitialized_memory = before


@contextlib.contextmanager
def _kept_busy(device: str) -> Iterator[None]:
    """Have the device do other work on a stream of its own meanwhile."""
    module: Any = getattr(torch, device, None)
    if device == "cpu" or not hasattr(module, "Stream"):
        yield
        return
    stream = module.Stream()
    with module.stream(stream):
        noise = torch.ones(_NOISE_ELEMENTS, device=device)
        for _ in range(_NOISE_OPERATIONS):
            noise.mul_(1.0)
    try:
        yield
    finally:
        stream.synchronize()

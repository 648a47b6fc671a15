"""What torch's own profiler saw: below Python, in all threads, and on the device.

It notes operators in C++, where no code that switches dispatch modes off can keep them from it,
and the names of the kernels that ran on the device.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.autograd.profiler import profile

from pytest_tritonverify.evidence import operators
from pytest_tritonverify.observing.npu_kernels import NpuKernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_NAMES = 2000


class NativeProfile:
    """Profiles what runs in its context.

    Args:
        device: name of the device whose kernels are wanted; None for the CPU alone.
        problem: what keeps torch's profiler from recording operators here, as `obstacle` tells.
    """

    def __init__(self, device: str | None, problem: str | None = None) -> None:
        self._device = device
        self._profile: Any = None
        # torch's own profiler does not see what runs on an NPU.
        self._npu = NpuKernels() if device == "npu" else None
        self.problem = problem

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Profile for a while. Where that is impossible, `problem` says why."""
        try:
            with _quiet():
                self._profile = self._make()
                self._profile.__enter__()
        except (AttributeError, RuntimeError, TypeError) as error:
            self.problem, self._profile = repr(error), None
        try:
            with self._npu.running() if self._npu else contextlib.nullcontext():
                yield
        finally:
            if self._profile is not None:
                with _quiet():
                    self._profile.__exit__(None, None, None)

    def _make(self) -> Any:
        options: dict[str, Any] = {"use_cpu": True}
        with contextlib.suppress(ImportError, TypeError):
            from torch._C._profiler import _ExperimentalConfig

            # Torch before 2.6 sees the profiled thread alone.
            options["experimental_config"] = _ExperimentalConfig(profile_all_threads=True)
        try:
            return profile(use_device=None if self._npu else self._device, **options)
        except TypeError:  # torch 2.1
            return profile(use_cuda=self._device == "cuda", use_kineto=True, **options)

    def operators(self) -> list[dict[str, Any]]:
        """Return the operators with their counts.

        An operator that runs as a part of another one that is recorded for itself is left out.
        """
        if self._profile is None:
            return []
        return _counted(_outermost(self._events(on_device=False)))

    def device_kernels(self) -> list[dict[str, Any]]:
        """Return the names of what ran on the device, with their counts."""
        if self._npu is not None:
            return _counted(self._npu.names)
        if self._profile is None:
            return []
        return _counted(event.name() for event in self._events(on_device=True))

    def _events(self, *, on_device: bool) -> list[Any]:
        cpu: Any = DeviceType.CPU
        return [
            event
            for event in self._profile.kineto_results.events()
            if (event.device_type() != cpu) is on_device
        ]


def obstacle() -> str | None:
    """Find out whether torch's profiler records operators in this process, and say why not.

    A back end may bring a profiler along that leaves torch's own one empty. To be asked before user
    code runs, which could be the reason.
    """
    native = NativeProfile(None)
    with native.running():
        torch.ones(1).neg()
    if native.problem is None and not any(op["name"] == "aten::neg" for op in native.operators()):
        return "torch's profiler records no operators here"
    return native.problem


def _counted(names: Any) -> list[dict[str, Any]]:
    counts = Counter(names).most_common(_MOST_NAMES)
    return [{"name": name, "count": count} for name, count in counts]


def _outermost(events: list[Any]) -> Iterator[str]:
    """Yield the names of operators that are no part of another one that is named itself."""
    spans = []
    for event in events:
        if event.name().startswith("aten::"):
            begin, end = _span(event)
            # Negative, so that of two that begin together the longer one comes first.
            spans.append((event.start_thread_id(), begin, -end, event.name()))
    for _, of_thread in itertools.groupby(sorted(spans), key=lambda span: span[0]):
        yield from _outermost_of_thread((begin, -end, name) for _, begin, end, name in of_thread)


def _outermost_of_thread(spans: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    until = 0
    # An operator that may consist of others says something only where none of them computes.
    mixed: tuple[str, int] | None = None
    for begin, end, name in spans:
        if mixed is not None and begin >= mixed[1]:
            yield mixed[0]
            mixed = None
        if begin < until:
            continue
        computes = operators.kind(name) == operators.COMPUTING
        if computes:
            mixed = (name, end) if operators.may_be_parted(name) else None
        if not operators.may_be_parted(name):
            until = end
        if mixed is None or not computes:
            yield name
    if mixed is not None:
        yield mixed[0]


def _span(event: Any) -> tuple[int, int]:
    if hasattr(event, "start_ns"):
        start = int(event.start_ns())
        return start, start + int(event.duration_ns())
    start = int(event.start_us())
    return start, start + int(event.duration_us())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the profiler's own notices out of the output of user code."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

"""The role that observes an implementation at work: untrusted code, and instruments around it.

It sends what the instruments noted. What that means is for the judge to say: code in this process
could change any conclusion that was drawn here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify import interpreter
from pytest_tritonverify.execution import fresh_memory, loading, running
from pytest_tritonverify.execution.candidate import Candidate
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.observing import guarding, integrity, places, replaying
from pytest_tritonverify.observing.census import Census
from pytest_tritonverify.observing.launches import LaunchesSuppressedError, Watch
from pytest_tritonverify.observing.native import NativeProfile, obstacle
from pytest_tritonverify.observing.provenance import COUNTER, INPUT, PARAMETER, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase

# Here, so that a fork server does it once for all workers.
integrity.preload()

_DEEPEST = 6
_MOST_HELD = 10_000


def create(request: Message, phase: Phase) -> Observer:
    """Make the role."""
    return Observer(request, phase)


@dataclass
class _Held:
    """What a replay goes on with: the model, and the arguments with their memory."""

    model: Any
    call: Arguments
    contents: frozenset[str]
    seconds: float
    launches: int


class Observer(Candidate):
    """Runs `ModelNew` with instruments around it, in the surroundings of every other run."""

    def __init__(self, request: Message, phase: Phase) -> None:
        super().__init__(request, phase)
        if self._device.interpreted:
            # Before functions are looked at: it replaces some itself.
            interpreter.prepare(masked_lanes=self._masked_lanes)
        self._no_profile = obstacle() if self._device.name == "npu" else None
        self._folder = str(self._path.parent) + os.sep
        self._snapshot = integrity.Snapshot()
        self._changed_by_import: list[str] = []
        self._module: Any = None
        self._held: _Held | None = None

    def do_observe(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Run a case once under all instruments.

        The request's `marks` are operators that the recorder must see before and after the
        forward; its `nonce` chooses what is read of large tensors.
        """
        self._prepare()
        self._held = None
        told: dict[str, Any] = {}

        def body(model: Any, call: Arguments) -> Any:
            told.clear()
            return self._observed(model, call, request, told)

        answer, result = self._run(request, fd, body)
        return {**answer, "observed": told}, result

    def do_replay(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Call the observed model again, with other values in the same memory."""
        self._prepare()
        told: dict[str, Any] = {}

        def body(_: Any, values: Arguments) -> Any:
            told.clear()
            return self._replayed(values, request, told)

        answer, result = self._run(request, fd, body, build=False)
        return {**answer, "replayed": told}, result

    def do_endure(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Call the observed model some more times, as where nobody verifies.

        `launching` says whether launches have an effect. Fresh memory is not poisoned.
        """
        self._prepare()
        held = self._needed()
        native = NativeProfile(None, self._no_profile)
        limit = None if request["launching"] else 4 * held.launches + 64
        watch = Watch(self._folder, interpreted=self._device.interpreted, suppress_after=limit)
        calls = 0
        # Where launches count, each call takes as long as the observed one.
        expected = (request["calls"] if request["launching"] else 4) * held.seconds
        seconds = min(max(2.0, 2 * expected), 60.0)
        with fresh_memory.unpoisoned(), native.running(), torch.no_grad(), watch.installed():
            with (
                contextlib.suppress(Exception, LaunchesSuppressedError),
                guarding.bounded(seconds, self._spare(held.call)),
            ):
                while calls < request["calls"]:
                    watch.count = 0
                    self._device.seed()
                    _call(held.model, held.call)
                    calls += 1
            _mark(request["marks"][0])
        told = {"calls": calls, "native": native.operators(), "problem": native.problem}
        return {"endured": told}, None

    def do_knock_out(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int | None]:
        """Run a case with a model of its own, and no launch has any effect.

        A forward that can't end that way has no outputs; `broke_off` says what happened.
        """
        self._prepare()
        held = self._needed()
        watch = Watch(
            self._folder,
            interpreted=self._device.interpreted,
            suppress_after=4 * held.launches + 64,
        )

        def body(model: Any, call: Arguments) -> Any:
            seconds = min(max(2.0, 8 * held.seconds), 60.0)
            with guarding.bounded(seconds, self._spare(call)), watch.installed():
                return _call(model, call)

        try:
            answer, result = self._run(request, fd, body)
        except (Exception, LaunchesSuppressedError) as error:  # noqa: BLE001 - user code, on garbage
            kind = type(error).__name__
            return {"knocked_out": {"broke_off": kind, "launches": watch.count}}, None
        return {**answer, "knocked_out": {"broke_off": None, "launches": watch.count}}, result

    def _prepare(self) -> None:
        if self._device.interpreted:
            interpreter.prepare(masked_lanes=self._masked_lanes)
        if self._module is not None:
            return
        self._phase.enter("import")
        self._module = loading.load_module(self._path)
        self._model_class = loading.require(self._module, "ModelNew", self._path)
        self._changed_by_import = self._snapshot.changed()

    def _run(
        self,
        request: Message,
        fd: int | None,
        body: Callable[[Any, Arguments], Any],
        *,
        build: bool = True,
    ) -> tuple[dict[str, Any], int]:
        """Run a case as every case is run, with a call of `body` in place of the forward's."""

        def make(*args: Any, **kwargs: Any) -> Any:
            model = self._model_class(*args, **kwargs) if build else None
            if isinstance(model, torch.nn.Module):
                model = model.to(self._device.name)
            return lambda *args, **kwargs: body(model, Arguments(args, kwargs))

        side = running.Side(make, self._device, self._device, self._phase)
        return running.run_case(side, request["case"], fd)

    def _observed(self, model: Any, call: Arguments, request: Message, told: dict[str, Any]) -> Any:
        given = tuple(tensor for _, tensor in running.tensor_leaves(call.keyed(), "input"))
        ledger = Ledger(request["nonce"])
        ledger.know(given, INPUT)
        for tensor in _tensors_of(model):
            ledger.know([tensor], COUNTER if _counts(tensor) else PARAMETER)
        ledger.know(_tensors_of(vars(self._module)), PARAMETER)
        census = Census(self._folder, ledger, given)
        watch = Watch(
            self._folder, interpreted=self._device.interpreted, ledger=ledger, census=census
        )
        before = integrity.entry_facts(model, self._model_class)
        changed_before = self._snapshot.changed()
        started = time.perf_counter()
        with watch.installed(), census:
            _mark(request["marks"][0])
            outputs = _call(model, call)
            _mark(request["marks"][1])
        seconds = time.perf_counter() - started
        self._device.synchronize()
        told.update(
            launches=watch.recorded(),
            launch_count=watch.count,
            operators=census.recorded(),
            contents=watch.contents,
            outputs=self._origins(ledger, outputs, call),
            events=ledger.events,
            before=before,
            after=integrity.entry_facts(model, self._model_class),
            changed={
                "import": self._changed_by_import,
                "build": changed_before,
                "forward": self._snapshot.changed(),
            },
            launcher_intact=watch.intact,
            seconds=seconds,
        )
        contents = frozenset(watch.contents)
        self._held = _Held(model, call, contents, seconds, watch.count)
        return outputs

    def _origins(self, ledger: Ledger, outputs: Any, call: Arguments) -> list[dict[str, Any]]:
        """Say of each tensor that is an outcome of the call what its values may depend on."""
        leaves = [
            *running.tensor_leaves(outputs, "output"),
            *running.tensor_leaves(call.keyed(), "input"),
        ]
        origins = []
        for path, tensor in leaves[:_MOST_HELD]:
            odd = ledger.check(tensor, path, (None, 0))
            marks = sorted(ledger.marks(tensor))
            origins.append({"path": path, "marks": marks, "odd": odd})
        return origins

    def _replayed(self, values: Arguments, request: Message, told: dict[str, Any]) -> Any:
        held = self._needed()
        replaying.rewrite(held.call, values)
        device = None if self._device.interpreted else self._device.name
        native = NativeProfile(device, self._no_profile)
        watch = Watch(
            self._folder,
            interpreted=self._device.interpreted,
            ledger=Ledger(request["nonce"]),
            contents_of=held.contents,
        )
        with native.running(), watch.installed():
            outputs = _call(held.model, held.call)
            self._device.synchronize()
            _mark(request["marks"][0])
        told.update(
            launches=watch.recorded(),
            contents=watch.contents,
            native=native.operators(),
            device_kernels=native.device_kernels(),
            problem=native.problem,
        )
        with contextlib.suppress(replaying.NotReplayableError):
            # Where the caller looks for changes to its arguments.
            replaying.rewrite(values, held.call)
        return outputs

    def _needed(self) -> _Held:
        if self._held is None:
            raise LookupError("nothing was observed that could be run again")
        return self._held

    def _spare(self, call: Arguments) -> int | None:
        """Return how much memory a call on garbage may take; None where nothing bounds it."""
        if not self._device.interpreted:
            return None
        leaves = running.tensor_leaves(call.keyed(), "input")
        return 8 * sum(t.numel() * t.element_size() for _, t in leaves)


def _call(model: Any, call: Arguments) -> Any:
    run = model if callable(model) else model.forward
    return run(*call.args, **(call.kwargs or {}))


def _mark(name: str) -> None:
    """Issue an operator that the instruments must have seen."""
    getattr(torch.ops.aten, name)(torch.zeros(1))


def _counts(tensor: torch.Tensor) -> bool:
    """Whether a tensor of the model is a single integer, which can hold no weights."""
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    return whole and tensor.untyped_storage().nbytes() == tensor.element_size()


def _tensors_of(holder: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that an object holds, in attributes and containers of any depth."""
    seen: set[int] = set()
    pending: list[tuple[Any, int]] = [(holder, 0)]
    while pending and len(seen) < _MOST_HELD:
        value, depth = pending.pop()
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, dict):
            pending += [(item, depth + 1) for item in list(value.values())]
        elif isinstance(value, (list, tuple, set, frozenset)):
            pending += [(item, depth + 1) for item in value]
        elif isinstance(value, torch.nn.Module) or _from_user(value):
            yield from places.tensors_in(value)
            pending.append((dict(vars(value)), depth + 1))


def _from_user(value: Any) -> bool:
    """Whether a value is an instance of a plain class that no library defines."""
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None) or ""
    return hasattr(value, "__dict__") and bool(file) and "site-packages" not in file

"""The role that runs an implementation: untrusted code, one process per implementation."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import interpreter, standin
from pytest_tritonverify.compilation import recording
from pytest_tritonverify.execution import (
    errors,
    fresh_memory,
    guard_bands,
    launches,
    loading,
    probing,
    running,
    secrecy,
    varying,
)
from pytest_tritonverify.execution.confinement import Confinement
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.interpreter import autotune, block_pointers, bounds, masked_lanes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.timing.measuring import Measurer
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase


# More of them than anybody would read.
_MOST_LOADS = 64


def create(request: Message, phase: Phase) -> Candidate:
    """Make the role."""
    return Candidate(request, phase)


class Candidate:
    """Loads `ModelNew` and runs it on the inputs that the judge hands over."""

    def __init__(self, request: Message, phase: Phase) -> None:
        self._path = Path(request["implementation"])
        self._device = DEVICES[request["device"]]
        self._phase = phase
        self._model_class: Any = None
        self.user_files = (str(self._path.parent),)
        standin.install(request.get("standin", standin.OFF))
        if not self._device.interpreted and request.get("autotune") == "all":
            autotune.watch_devices()
        if request.get("confinement"):
            Confinement.of(request["confinement"]).enter()
        if request["guarded"]:
            secrecy.forbid_reading(Path(request["task"]))
        self._banded = bool(request.get("guard_bands")) and not request.get("timed")
        if request["guarded"] and not request.get("timed"):
            # Fills would be part of the times.
            fresh_memory.poison()
        if self._banded:
            guard_bands.install()
        self._seconds = 0.0
        self._measurer: Measurer | None = None
        if request.get("timed"):
            from pytest_tritonverify.execution.timing.measuring import Measurer

            # Now: it binds its clocks before there is any user code.
            self._measurer = Measurer(self._device.name)
        self._masked_lanes = request.get("masked_lanes", "zero")
        # A debugger sees nothing of what happens in other processes.
        self._jobs = request.get("interpreter_jobs", 1) if request["guarded"] else 1
        self._recording = bool(request.get("record")) and _has_triton()
        if self._recording:
            recording.prepare(
                self._path.parent,
                interpreted=self._device.interpreted,
                all_configurations=request["all_configurations"],
            )
        # It would be part of a launch's time.
        if not request.get("timed") and _has_triton():
            launches.record(interpreted=self._device.interpreted)

    def do_run(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Run one case; the module is loaded by the first one.

        The request's `variation` says what is other than usual: `kind` is one of the names in
        `varying`, `seed` says more of it.
        """
        variation = request.get("variation") or {"kind": varying.PLAIN, "seed": 0}
        # Other processes would run other programs at the same time.
        ordered = variation["kind"] in varying.ORDERS
        side = self._side(request.get("configuration"), 1 if ordered else self._jobs)
        side = self._varied(side, variation)
        try:
            answer, result = running.run_case(side, request["case"], fd)
        except RuntimeError as error:
            if side.bands is None or not guard_bands.is_fixed(error):
                raise
            # Torch can't give memory that begins in the middle of other memory another size.
            bare = dataclasses.replace(side, bands=None)
            answer, result = running.run_case(bare, request["case"], fd)
            answer["unguarded"] = errors.message_of(error)
        finally:
            if side.bands is not None:
                side.bands.close()
        return {**answer, **self.facts()}, result

    def _varied(self, side: running.Side, variation: dict[str, Any]) -> running.Side:
        """Return what runs with surroundings that are other than usual."""
        kind, seed = variation["kind"], variation["seed"]
        bands = None
        if self._banded:
            byte = varying.byte_of(seed) if kind == varying.MEMORY else None
            folder = str(self._path.parent) + os.sep
            bands = guard_bands.Bands(self._device.name, folder, byte)
        return dataclasses.replace(side, bands=bands, around=lambda: self._surroundings(kind, seed))

    @contextlib.contextmanager
    def _surroundings(self, kind: str, seed: int) -> Iterator[None]:
        started = time.perf_counter()
        with varying.applied(kind, seed, self._device.name, self._seconds):
            yield
        if kind == varying.PLAIN:
            self._seconds = max(self._seconds, time.perf_counter() - started)

    def do_measure(self, request: Message, fd: int | None) -> tuple[dict[str, Any], None]:
        """Time one case; for a worker that was started to be `timed`."""
        assert self._measurer is not None  # noqa: S101 - it was started to be `timed`
        answer, _ = self._measurer.measure(self._side, request, fd)
        return {**answer, **self.facts()}, None

    def do_kept(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int]:
        """Hand out what forward `number` of the last measurement returned."""
        assert self._measurer is not None  # noqa: S101 - it measured
        return self._measurer.kept(request["number"])

    def do_probe(self, request: Message, fd: int | None) -> tuple[dict[str, Any], None]:
        """Tell which tensors a new `ModelNew` holds; for a worker of its own."""
        return probing.ImplementationProbe(self._side(), self._path).survey(request, fd), None

    def do_tensors(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack tensors of a new `ModelNew` by name."""
        return probing.ImplementationProbe(self._side(), self._path).fetch(request, fd)

    def _side(self, configuration: Any = None, jobs: int | None = None) -> running.Side:
        """Return what runs, in surroundings that know nothing of an earlier run.

        Args:
            configuration: what autotuned kernels are to run, as `autotune.select` takes it.
            jobs: processes that a launch may use on the interpreter, if not what was asked for.
        """
        if self._device.interpreted:
            interpreter.prepare(masked_lanes=self._masked_lanes, jobs=jobs or self._jobs)
            autotune.select(configuration)
        elif configuration is not None:
            autotune.select(configuration)
        launches.reset()
        if self._recording:
            recording.watch(interpreted=self._device.interpreted)
            recording.reset()
        if self._model_class is None:
            self._phase.enter("import")
            module = loading.load_module(self._path)
            self._model_class = loading.require(module, "ModelNew", self._path)
            if self._recording:
                recording.imported()
        return running.Side(self._model_class, self._device, self._device, self._phase)

    def facts(self) -> dict[str, Any]:
        """Return what a diagnosis of the last run goes by, also where that run failed."""
        loads = masked_lanes.sites()[:_MOST_LOADS] if self._device.interpreted else None
        return {
            "launches": launches.recorded(),
            "masked_loads": loads,
            "strays": bounds.strays()[:_MOST_LOADS] if self._device.interpreted else [],
            "configurations": [asdict(choice) for choice in autotune.choices()],
            "standin": {"kind": standin.installed(), "used": standin.used()},
            "block_pointers": self._device.interpreted and block_pointers.met(),
            **({"recording": recording.recorded()} if self._recording else {}),
        }


def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None

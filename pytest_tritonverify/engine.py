"""The session's machinery: one fork server, the catalogue of cases, and the judges of pairs."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import ascend, detection
from pytest_tritonverify import own_cache as own_cache_of_run
from pytest_tritonverify.catalogue import Catalogue
from pytest_tritonverify.execution.devices import DEVICES, Device
from pytest_tritonverify.execution.host import Host, HostConfig, HostError
from pytest_tritonverify.judge import PairJudge
from pytest_tritonverify.own_cache import VARIABLE as CACHE_VARIABLE
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import cores
from pytest_tritonverify.supervision import VERIFIER, Failure, Process

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.benchmark.pair_benchmark import PairBenchmark
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.settings import Settings

# Devices in the order in which `auto` prefers them, as far as workers exist for them.
_ACCELERATORS = tuple(name for name in DEVICES if name != "cpu")
_PROBE_TIMEOUT = 120.0
_FINGERPRINT_TIMEOUT = 120.0
# A pair needs about twice as many processes; each of these takes hundreds of megabytes.
_MOST_SPARES = 4
# In a random order most pairs are begun at some time. Each holds memory, on its device too.
_MOST_AWAKE = 4


class DeviceMissingError(RuntimeError):
    """The device that was asked for is not there."""


class Engine:
    """Everything that outlives a single pair. Starts nothing before it is needed.

    Args:
        settings: the session's settings.
        cache_folder: where case listings are kept between runs, or None.
        private_dirs: folders of pairs, whose files no import of a worker may find first.
        device: name of a device that has been resolved already, or None.
        own_cache: folder for a fresh Triton cache that another process has made, or None.
    """

    def __init__(
        self,
        settings: Settings,
        cache_folder: Path | None,
        private_dirs: frozenset[Path],
        device: str | None = None,
        own_cache: str | None = None,
    ) -> None:
        self._settings = settings
        self._private_dirs = private_dirs
        self._removes_cache = own_cache is None
        self.own_cache = own_cache
        if settings.fresh_cache and own_cache is None:
            self.own_cache = own_cache_of_run.own_cache()
            if settings.keep_cache:
                own_cache_of_run.keep(self.own_cache)
        self._judges: dict[Path, PairJudge] = {}
        # Those whose processes may be running, the last one used at the end.
        self._awake: dict[Path, PairJudge] = {}
        self._benchmarks: dict[Path, PairBenchmark] = {}
        # By task, and by the device that it is stood in for.
        self._references: dict[tuple[Path, str], Process] = {}
        # The one of them that may be running.
        self._present: Process | None = None
        self._fingerprint: dict[str, Any] | None = None
        self.device_facts: dict[str, Any] = {}
        # Why accelerators that there seem to be are not used, by their name.
        self.passed_over: dict[str, str] = {}
        self.host: Any = None
        try:
            self.device: Device = self._resolve(device)
        except BaseException:
            self._remove_own_cache()
            raise
        if self.host is None:
            self.host = self._new_host(self.device)
        surroundings = f"{self.device.name} {settings.standin}"
        self.catalogue = Catalogue(self._ask_for_cases, cache_folder, surroundings)

    def _new_host(self, device: Device) -> Any:
        environment = {CACHE_VARIABLE: self.own_cache} if self.own_cache else {}
        if self._settings.in_process:
            from pytest_tritonverify.execution.in_process import LocalHost

            return LocalHost(device, environment)
        fork = device.forkable if self._settings.start == "auto" else self._settings.start == "fork"
        disposable = [self.own_cache] if self.own_cache and self._removes_cache else []
        return Host(
            HostConfig(
                device,
                fork,
                self._private_dirs,
                environment,
                process_limit=self._settings.limits.processes,
                disposable=() if self._settings.keep_cache else tuple(disposable),
            )
        )

    def _resolve(self, resolved: str | None) -> Device:
        """Decide on the device; an accelerator is asked whether it is there.

        Raises:
            DeviceMissingError: the one that was asked for isn't.
        """
        wanted = resolved or self._settings.device
        if resolved or wanted == "cpu":
            return DEVICES[wanted]
        for name in detection.likely(_ACCELERATORS) if wanted == "auto" else [wanted]:
            reason = self._obstacle(DEVICES[name])
            if reason is None:
                return DEVICES[name]
            if wanted != "auto":
                raise DeviceMissingError(
                    f"--verify-device={name}: there is none. {reason.rstrip('.')}. Looked for "
                    f"{detection.what_was_looked_for(name)} and found "
                    f"{detection.what_was_found(name)}. "
                    "Use --verify-device=cpu to judge on Triton's interpreter."
                )
            self.passed_over[name] = reason
        return DEVICES["cpu"]

    def _obstacle(self, device: Device) -> str | None:
        """Ask a worker whether a device is there, and say why not; its host is kept if it is."""
        self.host = self._new_host(device)
        try:
            facts = self._ask_surroundings("device", "facts", _PROBE_TIMEOUT)
        except (Failure, HostError) as error:
            # What a process that died had printed is too much for a sentence.
            text = str(getattr(error, "message", error)).partition("\n")[0]
            known = ascend.mismatch() if device.name == "npu" else None
            facts = {"available": False, "reason": f"{text}; {known}" if known else text}
        if facts["available"]:
            self.device_facts = facts
            return None
        self.host.close()
        self.host = None
        return str(facts["reason"])

    def problems(self) -> str | None:
        """Wait for the workers' imports; say in one sentence what is wrong with them."""
        problems = self.host.problems()
        if not problems:
            return None
        return "; ".join(f"`import {name}` fails: {text}" for name, text in problems.items())

    def spawn(self, start: Message) -> Any:
        """Start a worker.

        Raises:
            HostError: it can't be started, or what workers need can't be imported.
        """
        problem = self.problems()
        if problem:
            raise HostError(problem)
        return self.host.spawn(start)

    def processes(
        self, pair: Pair, settings: Settings | None = None, cache: str | None = None
    ) -> PairProcesses:
        """Return what makes a pair's processes; the one for its task is shared.

        Args:
            pair: the pair.
            settings: what it goes by instead of the session's settings.
            cache: folder that its own processes take for Triton's cache; None for the session's.
        """
        extra = _with_cache(cache)
        return PairProcesses(
            pair,
            settings or self._settings,
            self.device.name,
            lambda start: self.spawn({**start, **extra}),
            self._reference(pair),
        )

    def _ask_for_cases(self, pair: Pair) -> dict[str, Any]:
        """List a task's cases in a worker of its own; for real where fake tensors won't do."""
        answer: dict[str, Any] = {}
        for fake in (True, False):
            process = self._alone(pair).describe()
            try:
                process.post({"op": "describe", "fake": fake})
                deadline = time.monotonic() + self._settings.timeout
                message = process.result(deadline, f"{self._settings.timeout:g}秒").message
            except Failure as failure:
                answer = {"error": _as_error(failure)}
                if failure.phase != "inputs":
                    break
            else:
                return {key: message[key] for key in ("cases", "files", "looked_for")}
            finally:
                process.close()
        return answer

    def _ask_surroundings(
        self, op: str, key: str, timeout: float, cache: str | None = None
    ) -> dict[str, Any]:
        fresh = cache is not None or self._settings.fresh_cache
        start = {
            "role": "environment",
            "fresh_cache": fresh,
            "masked_lanes": self._settings.masked_lanes,
            **_with_cache(cache),
        }
        host = self.host
        process = Process(lambda: host.spawn(start), VERIFIER, "the environment's survey", "")
        try:
            process.post({"op": op})
            answer = process.result(time.monotonic() + timeout, f"{timeout:g}秒")
        finally:
            process.close()
        found: dict[str, Any] = answer.message[key]
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Return the environment sections of result files, gathered once."""
        if self._fingerprint is None:
            try:
                self._fingerprint = self._ask_surroundings(
                    "fingerprint", "environment", _FINGERPRINT_TIMEOUT
                )
            except (Failure, HostError) as error:
                self._fingerprint = {"error": str(getattr(error, "message", error))}
        return self._fingerprint

    def fingerprint_on(self, cache: str) -> dict[str, Any]:
        """Return the environment sections as they are with another Triton cache."""
        try:
            return self._ask_surroundings("fingerprint", "environment", _FINGERPRINT_TIMEOUT, cache)
        except (Failure, HostError) as error:
            return {"error": str(getattr(error, "message", error))}

    def another_judge(self, pair: Pair, settings: Settings, cache: str | None) -> PairJudge:
        """Return a judge that knows nothing of what the pair's own one has seen.

        Args:
            pair: the pair.
            settings: what it goes by instead of the session's settings.
            cache: folder that the implementation's processes take for Triton's cache; None for
                the session's.
        """
        judge = PairJudge(self.processes(pair, settings, cache))
        self._give_turn(judge.reference)
        return judge

    def judge(self, pair: Pair) -> PairJudge:
        """Return the pair's judge, making it where there is none."""
        if not self._judges and not self._settings.in_process:
            self._import_torch_ahead()
        self.host.spares = max(min(cores() // 2, _MOST_SPARES), 1)
        if pair.implementation not in self._judges:
            self._judges[pair.implementation] = PairJudge(self.processes(pair))
        judge = self._judges[pair.implementation]
        self._give_turn(judge.reference)
        self._awake.pop(pair.implementation, None)
        self._awake[pair.implementation] = judge
        if len(self._awake) > _MOST_AWAKE:
            self._awake.pop(next(iter(self._awake))).close()
        return judge

    def benchmark(self, pair: Pair) -> PairBenchmark:
        """Return what measures a pair, making it where there is none.

        The processes that judge end: nothing else of ours runs while a pair is measured.
        """
        from pytest_tritonverify.benchmark.pair_benchmark import PairBenchmark

        self.host.spares = 0
        while self._awake:
            self._awake.popitem()[1].close()
        for implementation, other in self._benchmarks.items():
            if implementation != pair.implementation:
                other.close()
        if pair.implementation not in self._benchmarks:
            self._benchmarks[pair.implementation] = PairBenchmark(self.processes(pair))
        benchmark = self._benchmarks[pair.implementation]
        self._give_turn(benchmark.inputs)
        return benchmark

    def last_cause(self, pair: Pair) -> BaseException | None:
        """Return the exception of a pair's last case, where everything runs in this process."""
        judge = self._judges.get(pair.implementation)
        return judge.last_cause if judge is not None else None

    def _reference(self, pair: Pair) -> Process:
        """Return the task's worker."""
        alone = self._alone(pair)
        key = (pair.task, alone.standin)
        if key not in self._references:
            self._references[key] = alone.reference()
        return self._references[key]

    def _give_turn(self, reference: Process) -> None:
        """End the worker of another task, as it holds all its inputs."""
        if self._present is not None and self._present is not reference:
            self._present.close()
        self._present = reference

    def _alone(self, pair: Pair) -> PairProcesses:
        return PairProcesses(pair, self._settings, self.device.name, self.spawn)

    def release(self, pair: Pair) -> None:
        """End the processes of an implementation; its judge remembers the time it has used."""
        if pair.implementation in self._awake:
            self._awake.pop(pair.implementation).close()
        if pair.implementation in self._benchmarks:
            self._benchmarks[pair.implementation].close()

    @staticmethod
    def _import_torch_ahead() -> None:
        """Import torch in a thread while the first workers are busy.

        A back end that torch would load by itself is kept out: the judge touches no device.
        """
        thread = threading.Thread(target=_import_torch, name="tritonverify-import", daemon=True)
        thread.start()

    def close(self) -> None:
        """End every process and remove what was made for this session."""
        for process in self._references.values():
            process.close()
        for judge in self._judges.values():
            judge.close()
        for benchmark in self._benchmarks.values():
            benchmark.close()
        self.host.close()
        self._remove_own_cache()

    def _remove_own_cache(self) -> None:
        if self.own_cache and self._removes_cache and not self._settings.keep_cache:
            own_cache_of_run.discard(self.own_cache)

    @property
    def kept_cache(self) -> str | None:
        """The absolute path of the Triton cache that this session leaves behind."""
        return self.own_cache if self._settings.keep_cache else None


def _with_cache(cache: str | None) -> Message:
    """Return what a start request says of a worker's Triton cache."""
    return {} if cache is None else {"environment": {CACHE_VARIABLE: cache}}


def _import_torch() -> None:
    # Read while torch is imported, and nobody else's business afterwards: no back end may load
    # itself here, and waiting threads must not spin.
    needed = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_WAIT_POLICY": "PASSIVE"}
    before = {name: os.environ.get(name) for name in needed}
    os.environ.update(needed)
    try:
        import torch  # noqa: F401 - for its side effect
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _as_error(failure: Failure) -> dict[str, Any]:
    return {
        "type": failure.error_type,
        "message": failure.message,
        "phase": failure.phase,
        "file": failure.file,
        "line": failure.line,
        "side": failure.side,
    }

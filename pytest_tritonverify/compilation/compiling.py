"""Have the kernels of pairs compiled, in processes of their own, and collect what comes of it."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import hints, isolation
from pytest_tritonverify.compilation import launches
from pytest_tritonverify.compilation.hosts import CompilerHosts
from pytest_tritonverify.compilation.outcomes import CompileReport, Outcome, Refusal
from pytest_tritonverify.compilation.refusals import NOT_COMPILED
from pytest_tritonverify.standin import choosing
from pytest_tritonverify.supervision import IMPLEMENTATION, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_tritonverify.compilation.launches import Launch, Recording
    from pytest_tritonverify.compilation.targets import Target
    from pytest_tritonverify.compilation.toolchains import Toolchain
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.settings import Settings

# What a compiling process gets beyond the time of one kernel, to end it and to answer.
_SLACK = 30.0
# Importing an implementation takes no longer.
_IMPORT_LIMIT = 300.0
_OUT_OF_TIME = "the time that the pair may take is used up (--verify-timeout)"


class Compilations:
    """Compiles what was recorded of a run's pairs.

    Args:
        settings: the session's settings, with wishes about compiling.
        toolchains: what compiles for each target.
        private_dirs: folders of pairs, whose files no import may find first.
    """

    def __init__(
        self,
        settings: Settings,
        toolchains: Mapping[Target, Toolchain],
        private_dirs: frozenset[Path],
    ) -> None:
        assert settings.compile is not None  # noqa: S101 - else there is nothing to compile
        self._settings = settings
        self._wishes = settings.compile
        self.toolchains = toolchains
        self._hosts = CompilerHosts(private_dirs)

    def described(self) -> list[str]:
        """Say what compiles for which targets, a line for each compiler."""
        of: dict[Toolchain, list[str]] = {}
        for target, toolchain in self.toolchains.items():
            of.setdefault(toolchain, []).append(target.name)
        return [f"compiling for {', '.join(names)} by {one}" for one, names in of.items()]

    def report(
        self,
        pair: Pair,
        known: Mapping[int, Recording],
        unknown: Mapping[int, str],
        deadline: float,
        say: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> CompileReport:
        """Compile the kernels of a pair, each distinct launch once for each target.

        Args:
            pair: the pair.
            known: the launches of its cases by number.
            unknown: why those of a case are not, or not all, known.
            deadline: on the clock of `time.monotonic`.
            say: is told how many of how many compilations are done, whenever one is.
        """
        started = time.monotonic()
        merged, left_out = launches.bounded(launches.merged(known))
        total = len(merged) * len(self.toolchains)
        outcomes: list[Outcome] = []
        for target in self.toolchains:
            for outcome in self._compiled(pair, target, merged, deadline):
                outcomes.append(outcome)
                say(len(outcomes), total)
        order = {launch: number for number, launch in enumerate(merged)}
        targets = list(self.toolchains)
        outcomes.sort(key=lambda one: (targets.index(one.target), order[one.launch]))
        return CompileReport(
            self.toolchains,
            tuple(outcomes),
            dict(unknown),
            left_out + sum(recording.left_out for recording in known.values()),
            time.monotonic() - started,
        )

    def _compiled(
        self, pair: Pair, target: Target, merged: Mapping[Launch, Sequence[int]], deadline: float
    ) -> Iterator[Outcome]:
        """Yield the outcomes for one target, as they come."""
        waiting = dict(enumerate(merged))
        process = self._process(pair, target)
        try:
            for told in self._told(process, list(merged), deadline):
                launch = waiting.pop(told.get("index", -1), None)
                if launch is not None:
                    yield Outcome.read(told, launch, target, merged[launch])
        except Failure as failure:
            late = time.monotonic() >= deadline
            refusal = _refusal(failure, self.toolchains[target], late=late)
            for launch in waiting.values():
                yield Outcome(launch, target, tuple(merged[launch]), refusal=refusal)
        finally:
            process.close()

    def _told(
        self, process: Process, wanted: Sequence[Launch], deadline: float
    ) -> Iterator[dict[str, Any]]:
        if not wanted:
            return
        limit = self._wishes.limit
        request = {
            "op": "begin",
            "launches": [dict(launch.entry) for launch in wanted],
            "limit": limit,
            "processes": self._settings.interpreter_jobs,
        }
        process.post(request)
        self._answer(process, min(deadline, time.monotonic() + _IMPORT_LIMIT))
        for _ in wanted:
            process.post({"op": "next"})
            answer = self._answer(process, min(deadline, time.monotonic() + limit + _SLACK))
            outcome = answer.get("outcome")
            yield outcome if isinstance(outcome, dict) else {}

    def _answer(self, process: Process, deadline: float) -> dict[str, Any]:
        answer = process.result(deadline, f"{self._settings.timeout:g}秒")
        return answer.message

    def _process(self, pair: Pair, target: Target) -> Process:
        start = {
            "role": "compiler",
            "implementation": str(pair.implementation),
            "task": str(pair.task),
            "confinement": isolation.confinement(pair, self._settings, target.kind),
            "target": dataclasses.asdict(target),
            "standin": choosing.choose(self._settings.standin, pair.task, pair.implementation),
        }
        python = self.toolchains[target].python
        name = pair.implementation.name
        return Process(lambda: self._hosts.spawn(python, start), IMPLEMENTATION, name, "cpu")

    def close(self) -> None:
        """End all processes."""
        self._hosts.close()


def _refusal(failure: Failure, toolchain: Toolchain, *, late: bool) -> Refusal:
    """Say why kernels that no outcome came of were not compiled."""
    first, _, rest = failure.message.partition("\n")
    if late:
        if failure.phase == "import":
            text = f"{_OUT_OF_TIME}, and was so while the implementation was imported"
            return Refusal(NOT_COMPILED, text, failure.message, failure.file, failure.line)
        # Where nothing has begun there is nothing to tell.
        said = "" if failure.phase == "start" else failure.message
        return Refusal(NOT_COMPILED, _OUT_OF_TIME, said)
    if failure.phase == "import":
        text = f"the implementation can't be imported where kernels are compiled: {first}"
        if toolchain.python is not None:
            # The advice is about this interpreter; another one compiles.
            rest = rest.replace(hints.MISSING_MODULE, hints.missing_module(str(toolchain.python)))
        return Refusal(NOT_COMPILED, text, rest, failure.file, failure.line)
    return Refusal(NOT_COMPILED, first, rest, failure.file, failure.line)

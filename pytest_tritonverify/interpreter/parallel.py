"""Spread a launch over the machine's cores.

The interpreter runs the programs of a grid one after another. When a launch turns out to be long,
forked helpers run programs from the end of the grid while the launch itself goes on from its
front, exactly as it would without them. Where both meet, what the helpers have stored is taken
over if no program has touched what another one wrote. Otherwise the launch just goes on by itself:
its memory is as if there had never been a helper.
"""

from __future__ import annotations

import copy
import inspect
import math
import operator
import time
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.interpreter import parallel_memory, parallel_team, patching
from pytest_tritonverify.interpreter.parallel_team import Memory, Team, Work
from pytest_tritonverify.interpreter.parallel_tracking import FrontWatch, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

_HOOKS = ("GridExecutor", "InterpreterBuilder", "_interpreter", "interpreter_builder")
_BUILDER_HOOKS = ("set_grid_dim", "set_grid_idx")
_MEMORY_HOOKS = ("load", "store")

# Marks for what a helper reads, writes, and hands over, and its own copy of the pages.
_BYTES_PER_BYTE = 4
# The first program of a launch may be slow for reasons of its own, such as imports.
_FEW_PROGRAMS = 8
_FORK_SECONDS = 0.01
# Seconds after which to look again for a free core.
_ASK_AGAIN = 0.02
# Then something in this process makes helpers hang, and waiting for them isn't worth it any more.
_MOST_TOO_LONG = 3


@dataclass(frozen=True)
class Limits:
    """When a launch is worth being spread.

    Attributes:
        launch: seconds that the rest of it takes at least; 0 spreads it whatever that costs.
        program: seconds that one of its programs takes at least; below, noting what each load and
            store touches outweighs the gain.
        memory: the part of the available memory that helpers may take, from 0 to 1.
        patience: seconds to wait, beyond what their last programs should take, for helpers.
    """

    launch: float = 0.1
    program: float = 0.001
    memory: float = 0.25
    patience: float = 0.25


@dataclass(frozen=True)
class Outcome:
    """How a launch was run.

    Attributes:
        programs: how many programs it had.
        helpers: how many helpers took part.
        by_helpers: how many programs were run by helpers and counted.
        reason: why none was, if so.
    """

    programs: int = 0
    helpers: int = 0
    by_helpers: int = 0
    reason: str | None = None


@dataclass
class _State:
    """What holds for this process.

    Attributes:
        jobs: how many processes a launch may use.
        limits: when it may use them.
        outcome: how the last launch was run that was not left to Triton from its start.
        given_up: kernels that turned out not to be fit.
        too_long: how often a helper did not come to an end.
        fork_seconds: what the last fork took.
    """

    jobs: int = 1
    limits: Limits = field(default_factory=Limits)
    outcome: Outcome = field(default_factory=Outcome)
    given_up: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    too_long: int = 0
    fork_seconds: float = _FORK_SECONDS


_state = _State()
_installed: list[Any] = []


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps launches from being spread in this version of Triton, if anything."""
    if not parallel_team.can_fork():
        return "it takes Linux with /proc"
    absent = patching.missing(interpreter, _HOOKS)
    if not absent:
        absent = patching.missing(interpreter.InterpreterBuilder, _BUILDER_HOOKS)
        absent += patching.missing(interpreter._interpreter, _MEMORY_HOOKS)  # noqa: SLF001 - the module is what is changed
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def spread(jobs: int, limits: Limits | None = None) -> str | None:
    """Let the launches of this process use several processes.

    Args:
        jobs: how many at most; 1 leaves launches to Triton as they are.
        limits: when a launch is worth it.

    Returns:
        What keeps launches from being spread in this version of Triton, if anything; then they
        are left as they are.

    Raises:
        ValueError: there are fewer than 1.
    """
    if jobs < 1:
        raise ValueError(f"a launch needs at least one process, not {jobs}")
    _state.jobs = jobs
    _state.limits = limits or Limits()
    if jobs > 1 and not _installed:
        from triton.runtime import interpreter

        reason = obstacle(interpreter)
        if reason is not None:
            return reason
        patching.replace(interpreter.GridExecutor, "__call__", lambda f: _make(f, interpreter))
        _installed.append(interpreter)
    return None


def outcome() -> Outcome:
    """Return how the last launch was run that had a chance of being spread."""
    return _state.outcome


def _make(original: Any, interpreter: Any) -> Any:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        _state.outcome = Outcome()
        if (
            _state.jobs == 1
            or _state.too_long >= _MOST_TOO_LONG
            or self.fn in _state.given_up
            or parallel_team.other_threads()
            or parallel_team.debugged()
        ):
            return original(self, *args, **kwargs)
        launch = _Launch(interpreter, self.fn, (*args, *kwargs.values()))
        executor = copy.copy(self)
        executor.fn = launch
        try:
            return original(executor, *args, **kwargs)
        finally:
            launch.close()

    return __call__


class _Launch:
    """Stands for the kernel in one launch: called for each program, in order."""

    def __init__(self, interpreter: Any, kernel: Any, arguments: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self.__signature__ = inspect.signature(kernel, follow_wrapped=False)
        self._arguments = arguments
        self._interpreter = interpreter
        self._builder = interpreter.interpreter_builder
        self._cplusplus = interpreter._interpreter  # noqa: SLF001 - the module is what is changed
        self._grid: tuple[int, int, int] = (0, 0, 0)
        self._count = 0
        self._done = 0
        self._seconds = 0.0
        self._recorder = Recorder(self._cplusplus)
        self._team: Team | None = None
        self._watch: FrontWatch | None = None
        self._claimed = 0
        self._started = 0.0
        self._asked = -math.inf
        self._next: Callable[[dict[str, Any]], None] = self._first

    def __call__(self, **kwargs: Any) -> None:
        self._next(kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def _plain(self, kwargs: dict[str, Any]) -> None:
        self._kernel(**kwargs)

    def _skip(self, _: dict[str, Any]) -> None:
        """Pass over a program that a helper has run."""

    def _give_up(self, reason: str) -> None:
        """Run the rest as Triton does."""
        _state.outcome = replace(_state.outcome, reason=reason)
        self.close()
        self._next = self._plain

    def _first(self, kwargs: dict[str, Any]) -> None:
        # A grid function may have returned what only an index can be made of.
        x, y, z = self._builder.grid_dim
        self._grid = operator.index(x), operator.index(y), operator.index(z)
        self._count = math.prod(self._grid)
        _state.outcome = Outcome(programs=self._count)
        if self._count < 3:  # noqa: PLR2004 - one to look at, and two to be shared
            self._give_up("too few programs")
            self._plain(kwargs)
            return
        self._interpreter._interpreter = self._recorder.memory  # noqa: SLF001 - as above
        try:
            self._timed(kwargs)
        finally:
            self._interpreter._interpreter = self._cplusplus  # noqa: SLF001 - as above
        if self._recorder.refused:
            self._give_up(f"a program called {self._recorder.refused}")
        else:
            self._next = self._measured

    def _timed(self, kwargs: dict[str, Any]) -> None:
        started = time.perf_counter()
        self._kernel(**kwargs)
        took = time.perf_counter() - started
        # Once there is another one, the first no longer counts.
        self._seconds = took if self._done <= 1 else self._seconds + took
        self._done += 1

    def _measured(self, kwargs: dict[str, Any]) -> None:
        rest = self._count - self._done
        each = self._seconds / max(1, self._done - 1)
        known = self._done > 1 or self._count <= _FEW_PROGRAMS
        worth = each >= _state.limits.program and each * rest >= _state.limits.launch
        if rest < 2:  # noqa: PLR2004 - nothing to share
            self._give_up("no core was free" if self._asked > 0 else "too short")
        elif known and worth and (spare := self._spare_processes()):
            reason = self._gather(kwargs, each * rest, spare)
            if reason is not None:
                self._give_up(reason)
            else:
                self._next = self._in_front
        else:
            self._timed(kwargs)
            return
        self._next(kwargs)

    def _spare_processes(self) -> int:
        """Return how many helpers would find a core to run on."""
        if not _state.limits.launch:
            return _state.jobs - 1
        now = time.perf_counter()
        if now - self._asked < _ASK_AGAIN:
            return 0
        self._asked = now
        return max(0, min(_state.jobs - 1, parallel_team.free_cores()))

    def _gather(self, kwargs: dict[str, Any], seconds: float, spare: int) -> str | None:
        """Fork the helpers, or say why not."""
        try:
            memory = self._memory()
        except (parallel_memory.UnknownMemoryError, OSError) as error:
            return str(error)
        if memory.watched & memory.forbidden:
            return "a program stored into memory that processes share"
        size = sum(memory.regions.size(region) for region in memory.watched)
        if size * _BYTES_PER_BYTE > parallel_memory.available_bytes() * _state.limits.memory:
            return "too little memory"

        def run(program: int) -> None:
            _, ys, zs = self._grid
            self._builder.set_grid_idx(program // (ys * zs), program // zs % ys, program % zs)
            self._kernel(**kwargs)

        try:
            team = self._team = Team(Work(run, self._done, self._count), memory, self._interpreter)
            wanted = min(spare, team.work.chunks - 1)
            while len(team) < wanted:
                # One more has to shorten the launch by more than it takes to fork it.
                saved = seconds / (len(team) + 1) / (len(team) + 2)
                if _state.limits.launch and saved < _state.fork_seconds:
                    break
                started = time.perf_counter()
                team.add_helper()
                took = time.perf_counter() - started
                _state.fork_seconds = (_state.fork_seconds + took) / 2
        except (OSError, MemoryError, ValueError) as error:
            if self._team is None or not len(self._team):
                return f"no process could be forked: {error}"
        if not len(self._team):
            return "too short"
        self._watch = FrontWatch(self._cplusplus, memory.regions, self._team.written)
        self._interpreter._interpreter = self._watch.memory  # noqa: SLF001 - as above
        self._claimed = self._done
        self._started = time.perf_counter()
        _state.outcome = replace(_state.outcome, helpers=len(self._team))
        return None

    def _memory(self) -> Memory:
        regions = parallel_memory.Regions.of_arguments(self._arguments)
        watched = set()
        for start, stop in self._recorder.ranges:
            region = regions.holding(start, stop)
            if region is None:
                raise parallel_memory.UnknownMemoryError(
                    "a program stored outside of the launch's tensors"
                )
            watched.add(region)
        return Memory(regions, frozenset(watched), parallel_memory.shared_regions(regions))

    def _in_front(self, kwargs: dict[str, Any]) -> None:
        """Run the next program if no helper has claimed it."""
        team, watch = self._team, self._watch
        if team is None or watch is None:
            raise AssertionError("there are helpers while this runs")
        if self._done == self._claimed:
            reason = watch.broken or team.failure()
            chunk = None if reason else team.claims.take(front=True)
            if chunk is None:
                self._meet(team, watch, reason)
                self._next(kwargs)
                return
            self._claimed = team.work.programs(chunk).stop
        self._kernel(**kwargs)
        self._done += 1

    def _meet(self, team: Team, watch: FrontWatch, reason: str | None) -> None:
        """Take over what the helpers have done, or go on alone."""
        now = time.perf_counter()
        chunk = (now - self._started) / max(1, team.claims.front)
        patience = max(4 * chunk, (now - self._started) / 10) + _state.limits.patience
        reason = reason or team.take_over(watch.trace, patience)
        if reason is not None:
            if reason == parallel_team.TOO_LONG:
                _state.too_long += 1
            self._refuse(reason)
            return
        _state.outcome = replace(_state.outcome, by_helpers=self._count - self._done)
        self.close()
        self._next = self._skip

    def _refuse(self, reason: str) -> None:
        _state.given_up.add(self._kernel)
        self._give_up(reason)

    def close(self) -> None:
        """Leave the interpreter as it was, and no helper behind."""
        self._interpreter._interpreter = self._cplusplus  # noqa: SLF001 - as above
        if self._team is not None:
            self._team.close()
            self._team = None
        # This object lives on until the garbage collector meets it; tensors and notes must not.
        self._watch = None
        self._arguments = ()

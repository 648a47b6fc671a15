"""Autotuned kernels without their tuner: which configuration runs is decided here.

A tuner times all configurations on the device and takes the fastest. The interpreter has no device
("0 active drivers"), and its times would mean nothing; and a verdict is wanted for configurations
that would not be the fastest here but may be elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Selection = int | Literal["all"] | None

# More kernels than any forward tunes.
_MOST_CHOICES = 64
_ALL: Literal["all"] = "all"


@dataclass(frozen=True)
class Choice:
    """What ran of an autotuned kernel.

    Attributes:
        kernel: the kernel's name.
        file: where it is defined.
        line: of its first line there.
        count: how many configurations there were after pruning.
        index: which of them ran, from 0; None where all did.
        name: of that configuration, such as "BLOCK=64, num_warps=4"; "all" where all ran, and
            "all, up to BLOCK=64, num_warps=4" where that one raised.
    """

    kernel: str
    file: str
    line: int
    count: int
    index: int | None
    name: str


class _State:
    """What this process is to run, and what it ran."""

    def __init__(self) -> None:
        self.selection: Selection = None
        # On devices nothing is done to tuners until a configuration is selected.
        self.tunes_itself = False
        self.choices: dict[tuple[Any, ...], Choice] = {}
        self.tuners: weakref.WeakSet[Any] = weakref.WeakSet()


_state = _State()
_installed: list[bool] = []


def take_first_configuration() -> None:
    """Let autotuned kernels run with the first configuration that is left after pruning.

    That is the interpreter's way until `select` says otherwise. A second call changes nothing.

    Raises:
        ModuleNotFoundError: triton is not installed.
    """
    if _install():
        _drop_launch_options()
    _state.tunes_itself = False


def watch_devices() -> None:
    """Let `select` decide on a device too, where tuners tune until it does.

    To be called before the kernels' modules are imported.

    Raises:
        ModuleNotFoundError: triton is not installed.
    """
    _install()
    _state.tunes_itself = True


def select(selection: Selection) -> None:
    """Decide which configuration runs from now on, and forget which ones ran.

    Nothing is timed where one is selected. A kernel that has fewer of them runs with its first.

    Args:
        selection: the index among those left after pruning, from 0; None for the first one on the
            interpreter, and for the tuner's own choice on a device; or "all", see
            `run_all_on_same_buffers`.
    """
    _state.selection = selection
    _state.choices.clear()
    for tuner in list(_state.tuners):
        with contextlib.suppress(AttributeError):
            tuner.cache.clear()


def run_all_on_same_buffers() -> None:
    """Run every configuration once in each first call, one after the other, as a tuner does.

    All of them write to the buffers of that call, and the first one runs again at the end. The
    tuner's hooks are at work: what `reset_to_zero` and `restore_value` name is put right before
    each run, and what they should have named but don't is not.
    """
    select(_ALL)


def choices() -> list[Choice]:
    """Return which configurations ran since the last `select`, in order.

    A kernel that has only one does not take part, nor does a launch by a tuner that tunes itself.
    """
    return list(_state.choices.values())


def most_configurations() -> int:
    """Return how many configurations must be selected, one by one, until all have run."""
    return max((choice.count for choice in _state.choices.values()), default=1)


def name_of(config: Any, among: Sequence[Any] = ()) -> str:
    """Name a configuration by its parameters, and by the options that tell it from others.

    Args:
        config: a triton.Config.
        among: the configurations of its kernel.
    """
    every = [_options(other) for other in among]

    def tells(option: str, value: Any) -> bool:
        always = option == "num_warps" and value is not None
        return always or any(other.get(option) != value for other in every)

    options = {name: value for name, value in _options(config).items() if tells(name, value)}
    parts = {**config.kwargs, **options}
    return ", ".join(f"{key}={value}" for key, value in parts.items())


def _options(config: Any) -> dict[str, Any]:
    return {k: v for k, v in config.all_kwargs().items() if k not in config.kwargs}


def _install() -> bool:
    """Change Triton's tuner for good; return whether that was still to be done."""
    from triton.runtime import autotuner

    if _installed:
        return False
    _installed.append(True)
    tuner = autotuner.Autotuner
    tuner.__init__ = _constructing(tuner.__init__)
    tuner.prune_configs = _pruning(tuner.prune_configs)
    tuner._bench = _benching(autotuner, tuner._bench)  # noqa: SLF001 - the one place where every version times
    return True


def _constructing(construct: Any) -> Any:
    parameters = inspect.signature(construct).parameters

    @functools.wraps(construct)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        _state.tuners.add(self)
        if _state.tunes_itself or "do_bench" not in parameters:
            construct(self, *args, **kwargs)
            return
        # Otherwise some versions look for a device's benchmarker right here.
        bound = inspect.signature(construct).bind(self, *args, **kwargs)
        bound.arguments["do_bench"] = _untimed
        for name in ("warmup", "rep", "use_cuda_graph"):
            # They would put a benchmarker into its place.
            bound.arguments.pop(name, None)
        construct(*bound.args, **bound.kwargs)

    return __init__


def _pruning(prune: Any) -> Any:
    @functools.wraps(prune)
    def prune_configs(self: Any, kwargs: dict[str, Any]) -> Any:
        left = prune(self, kwargs)
        selected = _selected()
        if selected is None or not left:
            return left
        if selected == _ALL:
            _remember(self, left, None, _ALL)
            return left
        index = selected if selected < len(left) else 0
        _remember(self, left, index, name_of(left[index], left))
        return [left[index]]

    return prune_configs


def _benching(autotuner: Any, bench: Any) -> Any:
    @functools.wraps(bench)
    def _bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        selected = _selected()
        if selected is None:
            return bench(self, *args, config=config, **meta)
        if selected != _ALL:
            return _untimed()
        try:
            with _benchmarker(autotuner, self, _once):
                times: Any = bench(self, *args, config=config, **meta)
        except BaseException:
            # Only now: naming is not free, and all goes well as a rule.
            configs = list(self.configs)
            _remember(self, configs, None, f"{_ALL}, up to {name_of(config, configs)}")
            raise
        return times

    return _bench


def _selected() -> Any:
    """Return the selection, or None where the tuner is to choose."""
    if _state.selection is None:
        return None if _state.tunes_itself else 0
    return _state.selection


def _untimed(*_: Any, **__: Any) -> list[float]:
    return [0.0, 0.0, 0.0]


def _once(call: Any, *_: Any, **__: Any) -> list[float]:
    """Run a configuration once. Equal times for all leave the first one best."""
    call()
    return _untimed()


@contextlib.contextmanager
def _benchmarker(autotuner: Any, tuner: Any, bench: Any) -> Iterator[None]:
    """Have a tuner time by a function of ours; versions before 3.2 take one from the module."""
    owners = [vars(tuner)]
    if "do_bench" in vars(autotuner):
        owners.append(vars(autotuner))
    before = [dict(owner) for owner in owners]
    for owner in owners:
        owner["do_bench"] = bench
    try:
        yield
    finally:
        for owner, values in zip(owners, before, strict=True):
            del owner["do_bench"]
            if "do_bench" in values:
                owner["do_bench"] = values["do_bench"]


def _remember(tuner: Any, configs: Sequence[Any], index: int | None, name: str) -> None:
    if len(configs) < 2 or len(_state.choices) >= _MOST_CHOICES:  # noqa: PLR2004 - there is a choice
        return
    function = getattr(tuner, "base_fn", tuner.fn)
    code = getattr(function, "__code__", None)
    place = (
        getattr(function, "__name__", "?"),
        getattr(code, "co_filename", "?"),
        getattr(code, "co_firstlineno", 0),
    )
    key = place if index is None else (*place, name)
    _state.choices[key] = Choice(*place, len(configs), index, name)


def _drop_launch_options() -> None:
    """Keep the launch options of a configuration from kernels.

    Some versions (3.2, triton-ascend 3.2.0) pass options of `triton.Config` on that the list of
    those to leave out has been forgotten in. Later ones go by the kernel's parameters.
    """
    from triton import Config
    from triton.runtime import interpreter

    left_out = getattr(interpreter, "RESERVED_KWS", None)
    if left_out is not None:
        left_out += [name for name in Config({}).all_kwargs() if name not in left_out]

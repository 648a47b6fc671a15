"""Autotuned kernels on a machine that has no device to time them on."""

from __future__ import annotations

import inspect
from typing import Any


def take_first_configuration() -> None:
    """Let autotuned kernels run with the first configuration that is left after pruning.

    A tuner times every configuration on the device; the interpreter has none ("0 active
    drivers"), and its times would mean nothing. Equal times for all leave the first one best.

    Raises:
        ModuleNotFoundError: triton is not installed.
    """
    from triton.runtime.autotuner import Autotuner

    construct = Autotuner.__init__
    parameters = inspect.signature(construct).parameters

    def untimed(*_: Any, **__: Any) -> list[float]:
        return [0.0, 0.0, 0.0]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        if "do_bench" in parameters:
            # Otherwise some versions look for a device's benchmarker right here.
            bound = inspect.signature(construct).bind(self, *args, **kwargs)
            bound.arguments["do_bench"] = untimed
            construct(*bound.args, **bound.kwargs)
        else:
            construct(self, *args, **kwargs)

    Autotuner.__init__ = __init__
    Autotuner._bench = untimed  # noqa: SLF001 - the one place where every version times
    _drop_launch_options()


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

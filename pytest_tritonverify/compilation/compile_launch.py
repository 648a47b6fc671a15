"""Compile one recorded launch for one target, and describe what came of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import finding, npu, refusals, restoring, words
from pytest_tritonverify.compilation.targets import CUDA, HIP, NPU, Target
from pytest_tritonverify.execution import errors
from pytest_tritonverify.execution.worker_handle import describe_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO

_MOST_PRINTED = 1 << 20
# What `triton.Config` adds to every launch, asked for or not; not every back end knows them.
_DEFAULTS = {"num_ctas": 1, "num_warps": 4, "num_stages": 3}
# Back ends' names of their stages, and the names under which outcomes tell of them.
_STAGES = {"ttadapter": "linalg", "npubin": "binary", "cubin": "binary", "hsaco": "binary"}
_UNSET = object()


class Progress:
    """How far a compilation has come.

    Attributes:
        stage: the last one that was finished; None before the first.
        mix_mode: of a kernel for an NPU: "aiv", "aic" or "mix".
        said: what a compiler that is a command of its own has printed.
        died: how it was ended by a signal.
    """

    def __init__(self) -> None:
        self.stage: str | None = None
        self.mix_mode: str | None = None
        self.said = ""
        self.died: str | None = None


def outcome(entry: dict[str, Any], target: Target, output: IO[bytes]) -> dict[str, Any]:
    """Compile, and return what came of it as plain data.

    Args:
        entry: the launch, as `recording` noted it.
        target: what to compile for.
        output: the file into which this process's standard output and error go.

    Returns:
        `stage`, `mix_mode`, `figures`, and `error`: None, or `subkind`, `message`, `words`,
        `file` and `line`.
    """
    progress = Progress()
    figures: dict[str, Any] = {}
    error: dict[str, Any] | None = None
    try:
        kernel = finding.kernel(entry)
        arguments = {n: restoring.restore(data, finding.at) for n, data in entry["args"].items()}
        options = {n: restoring.restore(data, finding.at) for n, data in entry["options"].items()}
        backend = _backend()
        with _watched(type(backend), progress):
            compiled = kernel.run(
                grid=(1, 1, 1), warmup=True, **arguments, **_accepted(options, backend)
            )
        figures = _figures(compiled, target, _printed(output))
        error = _too_much(figures, target)
    except (finding.NotFoundError, restoring.OpaqueError) as raised:
        error = refusals.not_compiled(errors.message_of(raised))
    except BaseException as raised:  # noqa: BLE001 - compilers raise anything
        reached = target.kind == NPU and npu.reached_code_generator(progress.said)
        if reached and progress.died is None:
            progress.stage = npu.LAST_STAGE
        else:
            said = "\n".join(text for text in (progress.said, _printed(output)) if text)
            error = refusals.described(
                raised, entry, said, front_end=progress.stage is None, died=progress.died
            )
    if target.kind == NPU:
        figures.update(npu.figures(progress.said))
    return {
        "stage": progress.stage,
        "mix_mode": progress.mix_mode,
        "figures": figures,
        "error": error,
    }


def _backend() -> Any:
    from triton.compiler.compiler import make_backend
    from triton.runtime.driver import driver

    return make_backend(driver.active.get_current_target())


def _accepted(options: dict[str, Any], backend: Any) -> dict[str, Any]:
    """Leave out options that every tuned launch has and that the back end does not know."""
    known = vars(backend.parse_options({}))
    return {
        name: value
        for name, value in options.items()
        if name in known or _DEFAULTS.get(name, _UNSET) != value
    }


@contextlib.contextmanager
def _watched(backend: Any, progress: Progress) -> Iterator[None]:
    """Note the stages of a back end as they are finished."""
    add_stages = backend.add_stages

    def adding(self: Any, stages: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        add_stages(self, stages, *args, **kwargs)
        for name, stage in list(stages.items()):
            stages[name] = _noting(name, stage, progress)

    backend.add_stages = adding
    try:
        yield
    finally:
        backend.add_stages = add_stages


def _noting(name: str, run: Callable[..., Any], progress: Progress) -> Callable[..., Any]:
    def stage(source: Any, metadata: Any) -> Any:
        if _STAGES.get(name) == "binary" and isinstance(source, str):
            progress.mix_mode = words.mix_mode(source)
        try:
            result = run(source, metadata)
        except Exception as error:
            # Of a command that failed; what Triton makes of it holds only a part.
            said = [getattr(error, stream, None) for stream in ("stdout", "stderr")]
            progress.said = "\n".join(_decoded(text) for text in said if text)
            progress.died = _death(error)
            raise
        progress.stage = _STAGES.get(name, name)
        return result

    return stage


def _death(error: Exception) -> str | None:
    """Say by which signal a command was ended, where one was."""
    if not isinstance(error, subprocess.CalledProcessError) or error.returncode >= 0:
        return None
    command = error.cmd[0] if isinstance(error.cmd, (list, tuple)) else str(error.cmd)
    return f"{Path(str(command)).name}: {describe_status(-error.returncode)}"


def _decoded(text: Any) -> str:
    plain = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)
    return errors.printable(plain)


def _printed(output: IO[bytes]) -> str:
    """Return the end of what this process has printed, in whatever language it was done."""
    size = os.fstat(output.fileno()).st_size
    return _decoded(os.pread(output.fileno(), _MOST_PRINTED, max(size - _MOST_PRINTED, 0)))


def _figures(compiled: Any, target: Target, printed: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if target.shared is not None:
        shared = getattr(getattr(compiled, "metadata", None), "shared", None)
        if isinstance(shared, int):
            figures["shared_bytes"] = shared
        figures["shared_bytes_available"] = target.shared
    if target.kind == CUDA:
        figures.update(words.ptxas_figures(printed))
    elif target.kind == HIP:
        figures.update(words.amd_figures(_decoded(compiled.asm.get("amdgcn", ""))))
    return figures


def _too_much(figures: Mapping[str, Any], target: Target) -> dict[str, Any] | None:
    """Say what Triton says when it loads a kernel: that the device has not so much."""
    needed, available = figures.get("shared_bytes", 0), target.shared
    if available is None or needed <= available:
        return None
    text = (
        f"out of resource: shared memory, {needed} bytes are required, and a block on "
        f"{target.name} has {available}; reduce block sizes or num_stages"
    )
    return refusals.error(words.OUT_OF_RESOURCES, text)
